"""Partitions added and records deleted over REST, seen by a stock client."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.gateway.conftest import RunningGateway
from tests.gateway.rest.conftest import Api


def watermarks(gateway: RunningGateway, name: str, partition: int = 0) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": gateway.bootstrap, "group.id": name})
    try:
        found = consumer.get_watermark_offsets(TopicPartition(name, partition), timeout=30)
        return int(found[0]), int(found[1])
    finally:
        consumer.close()


async def test_partitions_are_added(api: Api, name: str, gateway: RunningGateway) -> None:
    await api.post("/v1/topics", {"name": name, "partitions": 2}, status=201)
    grown = await api.post(f"/v1/topics/{name}/partitions", {"count": 5})
    assert len(grown["partitions"]) == 5
    admin = AdminClient({"bootstrap.servers": gateway.bootstrap})
    assert len(admin.list_topics(name, timeout=30).topics[name].partitions) == 5
    assert "5" in (await api.post(f"/v1/topics/{name}/partitions", {"count": 3}, status=422))["detail"]
    await api.post(f"/v1/topics/{name}-none/partitions", {"count": 3}, status=404)


async def test_the_oldest_records_are_deleted(api: Api, name: str, gateway: RunningGateway) -> None:
    await api.post("/v1/topics", {"name": name}, status=201)
    await api.publish(name, *map(str, range(10)))
    path = f"/v1/topics/{name}/delete-records"
    planned = await api.post(path, {"offsets": {"0": 4}, "dry_run": True})
    assert (planned["records"], planned["dry_run"]) == (4, True)
    assert watermarks(gateway, name) == (0, 10)
    done = await api.post(path, {"offsets": {"0": 4}})
    assert done["partitions"] == [
        {"partition": 0, "start_before": 0, "start_after": 4, "end": 10, "records": 4}
    ]
    assert watermarks(gateway, name) == (4, 10)
    page = await api.get(f"/v1/topics/{name}/messages?limit=2")
    assert [message["value"] for message in page["messages"]] == ["4", "5"]
    assert (await api.post(path, {"offsets": {"0": 1}}))["records"] == 0
    fifth = (await api.get(f"/v1/topics/{name}/messages?from=-1"))["messages"][0]["timestamp_ms"]
    assert (await api.post(path, {"time_ms": fifth + 1, "dry_run": True}))["records"] == 6
    assert (await api.post(path, {"all": True}))["records"] == 6
    assert watermarks(gateway, name) == (10, 10)


async def test_which_records_must_be_said(api: Api, name: str) -> None:
    await api.post("/v1/topics", {"name": name}, status=201)
    path = f"/v1/topics/{name}/delete-records"
    for body in ({}, {"all": True, "time_ms": 5}, {"dry_run": True}):
        assert "give one of" in (await api.post(path, body, status=422))["detail"]
    assert "ends at 0, before 7" in (await api.post(path, {"offsets": {"0": 7}}, status=422))["detail"]
    for wrong in ("1", "-1", "x"):
        assert "not a partition" in (await api.post(path, {"offsets": {wrong: 0}}, status=422))["detail"]
