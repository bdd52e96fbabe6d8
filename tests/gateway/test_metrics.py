"""`/metrics`: what the gateway and the nodes tell, as Prometheus would read it."""

from __future__ import annotations

import base64
import re
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from postroad.client.share_message import AckType
from postroad.gateway import health, metrics
from postroad.gateway.gateway import Message
from postroad.testing import node

from .conftest import RunningGateway, StartGateway, gateway_in_thread
from .processes import eventually, get

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
LABEL = re.compile(r'([a-z_]+)="((?:\\.|[^"\\])*)"')


def read(page: str) -> Samples:
    """Every sample of a page, which must be as the format wants it: names together, each typed once."""
    samples: Samples = {}
    typed: list[str] = []
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            typed.append(line.split()[2])
        elif not line.startswith("#"):
            name, given, value = re.fullmatch(r"([a-z_]+)(?:\{(.*)\})? (\S+)", line).groups()  # type: ignore[union-attr]
            assert name.startswith(typed[-1]), f"{name} stands below {typed[-1]}"
            key = name, frozenset(LABEL.findall(given or ""))
            assert key not in samples, f"{line} is there twice"
            samples[key] = float(value)
    assert len(typed) == len(set(typed))
    return samples


def value(samples: Samples, name: str, **given: Any) -> float | None:
    """The value of the sample with at least these labels."""
    wanted = {(label, str(text)) for label, text in given.items()}
    found = [number for (known, labels), number in samples.items() if known == name and wanted <= labels]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([metrics.routes, health.routes])


def scrape(running: RunningGateway) -> Samples:
    status, page = get(running.url + "/metrics")
    assert status == 200
    return read(page)


async def publish(running: RunningGateway, topic: str, count: int, timestamp: int | None = None) -> None:
    await running.gateway.publish(topic, [Message(b"m%d" % n, timestamp=timestamp) for n in range(count)])


def test_requests_are_counted_by_what_they_asked_for(gateway: RunningGateway) -> None:
    before = value(scrape(gateway), "postroad_http_requests_total", action="healthz", status=200) or 0
    for _ in range(3):
        get(gateway.url + "/healthz")
    get(gateway.url + "/nowhere")
    after = scrape(gateway)
    assert value(after, "postroad_http_requests_total", dialect="health", status=200) == before + 3
    assert value(after, "postroad_http_requests_total", dialect="none", status=404) == 1
    took = value(after, "postroad_http_request_seconds_bucket", dialect="health", action="healthz", le="+Inf")
    assert took == value(after, "postroad_http_request_seconds_count", action="healthz") == before + 3


def test_messages_of_a_topic_are_counted(gateway: RunningGateway, name: str) -> None:
    before = scrape(gateway)
    gateway.run(publish(gateway, name, 5))
    after = scrape(gateway)
    assert value(after, "postroad_partition_end_offset", node=1, topic=name, partition=0) == 5
    assert value(after, "postroad_partition_start_offset", topic=name) == 0
    assert (value(after, "postroad_partition_size_bytes", topic=name) or 0) > 5
    counted = [value(samples, "postroad_http_messages_in_total") or 0 for samples in (before, after)]
    assert counted[1] - counted[0] == 5


def test_transactions_are_told_while_they_are_open_and_counted_when_they_end(
    gateway: RunningGateway, name: str
) -> None:
    def now(what: str) -> float:
        return value(scrape(gateway), f"postroad_transactions_{what}") or 0

    def begin() -> Producer:
        made = Producer({"bootstrap.servers": gateway.bootstrap, "transactional.id": name})
        made.init_transactions(60)
        made.begin_transaction()
        made.produce(name, b"x")
        made.flush()
        return made

    before = {what: now(what) for what in ("open", "committed_total", "aborted_total", "fenced_total")}
    gateway.run(publish(gateway, name, 1))
    first = begin()
    assert now("open") == before["open"] + 1
    assert 0 < now("oldest_seconds") < 3600
    second = begin()
    assert now("aborted_total") == before["aborted_total"] + 1, "what the first one had open"
    with pytest.raises(KafkaException):
        first.commit_transaction(60)
    assert now("fenced_total") > before["fenced_total"]
    second.commit_transaction(60)
    assert now("committed_total") == before["committed_total"] + 1
    eventually(lambda: now("open") == before["open"], "its markers were not written")


def test_lag_of_a_group_is_told_in_messages_and_seconds(gateway: RunningGateway, name: str) -> None:
    producer = Producer({"bootstrap.servers": gateway.bootstrap})
    hour_ago = int((time.time() - 3600) * 1000)
    for number in range(10):
        producer.produce(name, b"x", timestamp=hour_ago + number)
        producer.flush()  # a batch for each
    consumer = Consumer({"bootstrap.servers": gateway.bootstrap, "group.id": name})
    consumer.commit(offsets=[TopicPartition(name, 0, 4)], asynchronous=False)
    samples = scrape(gateway)
    assert value(samples, "postroad_group_lag_messages", group=name, topic=name, partition=0) == 6
    assert 3600 <= (value(samples, "postroad_group_lag_seconds", group=name) or 0) < 3700
    consumer.commit(offsets=[TopicPartition(name, 0, 10)], asynchronous=False)
    samples = scrape(gateway)
    assert value(samples, "postroad_group_lag_messages", group=name) == 0
    assert value(samples, "postroad_group_lag_seconds", group=name) == 0
    consumer.close()


def test_life_of_a_subscription_can_be_followed(gateway: RunningGateway, name: str) -> None:
    def now(what: str) -> float | None:
        return value(scrape(gateway), f"postroad_subscription_{what}", subscription=name, topic=name)

    async def begin() -> None:
        await publish(gateway, name, 1)
        await gateway.gateway.directory.create(name, [name], {"share.auto.offset.reset": "earliest"})
        await publish(gateway, name, 3, timestamp=int((time.time() - 600) * 1000))

    async def receive(count: int) -> list[Any]:
        found = await gateway.gateway.receive(name, count, 10_000, lock_ms=600_000)
        assert found
        return [each.receipt for each in found]

    gateway.run(begin())
    assert now("lag_messages") == 4
    assert now("in_flight") == 0
    first = gateway.run(receive(1))
    assert now("in_flight") == 1
    assert (now("oldest_seconds") or 0) < 300, "the first message is young"
    assert 600 <= (now("lag_seconds") or 0) < 700, "the next one, which nobody holds, is not"
    gateway.run(gateway.gateway.settle(first, AckType.ACCEPT))
    assert now("lag_messages") == 3
    assert 600 <= (now("oldest_seconds") or 0) < 700
    rest: list[Any] = []
    while len(rest) < 3:
        rest += gateway.run(receive(3))
    assert now("in_flight") == 3
    assert now("lag_seconds") == 0, "all of them are held"
    gateway.run(gateway.gateway.settle(rest, AckType.ACCEPT))
    assert now("lag_messages") == now("oldest_seconds") == now("in_flight") == 0
    samples = scrape(gateway)
    assert value(samples, "postroad_subscription_accepted_total", subscription=name) == 4
    assert (value(samples, "postroad_subscription_delivered_total", subscription=name) or 0) >= 4


def test_node_tells_of_itself(gateway: RunningGateway) -> None:
    samples = scrape(gateway)
    assert value(samples, "postroad_node_up", node=1) == 1
    assert value(samples, "postroad_node_info", node=1) == 1
    assert (value(samples, "postroad_node_connections") or 0) >= 1
    assert (value(samples, "postroad_node_memory_bytes") or 0) > 10_000_000
    free, whole = (value(samples, f"postroad_node_{name}") for name in ("disk_free_bytes", "disk_bytes"))
    assert free is not None
    assert whole is not None
    assert 0 < free <= whole
    assert (value(samples, "postroad_requests_total", api="metadata") or 0) >= 1


def test_requests_to_a_node_are_counted_and_timed(gateway: RunningGateway) -> None:
    """Not timed are those of others that are under way just now, or whose connection ended before."""

    def untimed_and_timed() -> tuple[float, float]:
        samples = scrape(gateway)
        timed = value(samples, "postroad_request_seconds_count", api="metadata") or 0
        return (value(samples, "postroad_requests_total", api="metadata") or 0) - timed, timed

    def one_more_is_timed() -> bool:
        before = untimed_and_timed()
        gateway.run(gateway.gateway.client.cluster([]))
        after = untimed_and_timed()
        return after[0] == before[0] and after[1] > before[1]

    eventually(one_more_is_timed, "they are not timed")


def test_produces_of_every_kind_are_counted(gateway: RunningGateway, name: str) -> None:
    """One by one, many at once, and without an answer."""

    def produced() -> tuple[float, float]:
        samples = scrape(gateway)
        requests = value(samples, "postroad_requests_total", api="produce") or 0
        return requests, value(samples, "postroad_request_seconds_count", api="produce") or 0

    gateway.run(publish(gateway, name, 1))
    requests, timed = produced()
    for acks in ("all", "1", "0"):
        producer = Producer(
            {"bootstrap.servers": gateway.bootstrap, "acks": acks, "linger.ms": 0, "batch.num.messages": 1}
        )
        for _ in range(50):
            producer.produce(name, b"x")
        producer.flush()
    eventually(lambda: produced() == (requests + 150, timed + 150), f"counted {produced()}")


def test_node_that_is_away_is_said_to_be_down() -> None:
    with node() as own, gateway_in_thread(own.bootstrap, [metrics.routes]) as running:
        assert value(scrape(running), "postroad_node_up", node=1) == 1
        own.stop()
        samples = scrape(running)
        assert value(samples, "postroad_gateway_info") == 1, "the gateway still tells of itself"
        assert not value(samples, "postroad_node_up", node=1)


def test_pages_of_a_foreign_name_are_told_nothing(gateway: RunningGateway) -> None:
    assert get(gateway.url + "/metrics", Host="evil.example")[0] == 403


def test_key_is_asked_for_where_there_are_keys(start_gateway: StartGateway) -> None:
    url = start_gateway([metrics.routes], access_keys="watcher:word").url
    for wrong in (
        dict[str, Any](),
        _basic("watcher:wrong"),
        _basic("who:word"),
        {"Authorization": "Basic !"},
    ):
        status, text = get(url + "/metrics", **wrong)
        assert status == 401
        assert "postroad_" not in text
    assert get(url + "/metrics", **_basic("watcher:word"))[0] == 200


def _basic(name_and_password: str) -> dict[str, Any]:
    return {"Authorization": "Basic " + base64.b64encode(name_and_password.encode()).decode()}
