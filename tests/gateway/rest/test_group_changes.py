"""Consumer groups moved and deleted over REST, seen by a stock consumer."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

from tests.clients.wait import until
from tests.gateway.conftest import RunningGateway
from tests.gateway.rest.conftest import Api


def consumer(gateway: RunningGateway, group: str) -> Consumer:
    return Consumer(
        {"bootstrap.servers": gateway.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    )


def committed(gateway: RunningGateway, group: str, topic: str, *partitions: int) -> list[int]:
    reader = consumer(gateway, group)
    try:
        found = reader.committed([TopicPartition(topic, each) for each in partitions], timeout=30)
        return [each.offset for each in found]
    finally:
        reader.close()


def commit(gateway: RunningGateway, group: str, *positions: TopicPartition) -> None:
    reader = consumer(gateway, group)
    reader.commit(offsets=list(positions), asynchronous=False)
    reader.close()


async def group_at(api: Api, gateway: RunningGateway, name: str) -> None:
    """A topic with ten messages in each of two partitions, and the group at 3 and 7."""
    await api.post("/v1/topics", {"name": name, "partitions": 2}, status=201)
    for partition in (0, 1):
        messages = [{"value": str(n), "partition": partition} for n in range(10)]
        await api.post(f"/v1/topics/{name}/messages", messages, status=201)
    commit(gateway, name, TopicPartition(name, 0, 3), TopicPartition(name, 1, 7))


async def test_a_group_is_moved_after_it_was_shown_what_changes(
    api: Api, name: str, gateway: RunningGateway
) -> None:
    await group_at(api, gateway, name)
    path = f"/v1/consumer-groups/{name}/reset"
    planned = await api.post(path, {"to": "earliest", "dry_run": True})
    assert [(each["before"], each["after"], each["messages"]) for each in planned["partitions"]] == [
        (3, 0, 3),
        (7, 0, 7),
    ]
    assert committed(gateway, name, name, 0, 1) == [3, 7]
    await api.post(path, {"shift": -2, "partitions": [[name, 1]]})
    assert committed(gateway, name, name, 0, 1) == [3, 5]
    await api.post(path, {"shift": 100})
    assert committed(gateway, name, name, 0, 1) == [10, 10]
    await api.post(path, {"offset": 4, "topics": [name]})
    assert committed(gateway, name, name, 0, 1) == [4, 4]
    await api.post(path, {"time_ms": 0})
    assert committed(gateway, name, name, 0, 1) == [0, 0]
    await api.post(path, {"to": "latest"})
    assert committed(gateway, name, name, 0, 1) == [10, 10]
    assert (await api.get(f"/v1/consumer-groups/{name}"))["lag"] == 0


async def test_a_group_with_members_is_neither_moved_nor_deleted(
    api: Api, name: str, gateway: RunningGateway
) -> None:
    await group_at(api, gateway, name)
    reader = consumer(gateway, name)
    reader.subscribe([name])
    until(lambda: reader.poll(1) is not None, "the consumer has joined")
    try:
        for method, path in (("POST", "/reset"), ("DELETE", "")):
            body = {"to": "latest"} if path else None
            problem = await api.call(method, f"/v1/consumer-groups/{name}{path}", body, status=409)
            assert problem["detail"] == f"The group {name} has members: stop them first."
    finally:
        reader.close()


async def test_a_group_is_deleted(api: Api, name: str, gateway: RunningGateway) -> None:
    await group_at(api, gateway, name)
    await api.call("DELETE", f"/v1/consumer-groups/{name}", status=204)
    await api.get(f"/v1/consumer-groups/{name}", status=404)
    assert committed(gateway, name, name, 0) == [-1001]  # librdkafka's word for none
    await api.call("DELETE", f"/v1/consumer-groups/{name}", status=404)
    await api.post(f"/v1/consumer-groups/{name}/reset", {"to": "latest"}, status=404)


async def test_a_subscription_is_no_group_to_delete(api: Api, name: str) -> None:
    await api.queue(name)
    await api.call("DELETE", f"/v1/consumer-groups/{name}", status=404)
    await api.get(f"/v1/subscriptions/{name}")


async def test_what_to_move_where_must_be_said(api: Api, name: str, gateway: RunningGateway) -> None:
    await group_at(api, gateway, name)
    path = f"/v1/consumer-groups/{name}/reset"
    for body in ({}, {"to": "latest", "shift": 1}):
        assert "give one of" in (await api.post(path, body, status=422))["detail"]
    await api.post(path, {"to": "somewhere"}, status=400)
    await api.post(path, {"to": "latest", "partitions": [[name, 2]]}, status=404)
    await api.post(path, {"to": "latest", "topics": [name + "-none"]}, status=404)
