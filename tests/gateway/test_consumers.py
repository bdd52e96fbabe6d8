"""Who receives over HTTP is remembered for a while, and while a stream is open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
import boto3
import pytest
from botocore.config import Config
from confluent_kafka import ShareConsumer
from websockets.sync.client import connect

from postroad.gateway import consumers as registry
from postroad.gateway import push, rest, sqs
from postroad.gateway.consumers import Consumers, consumer_of
from tests.clients.wait import until_async
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.rest.conftest import Api

CAT = consumer_of("rest", "10.0.0.1", "cat/1", "")
DOG = consumer_of("sqs", "10.0.0.2", "dog/1", "User:dog")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_consumer_is_forgotten_after_a_while() -> None:
    clock = Clock()
    consumers = Consumers(clock)
    consumers.note("jobs", CAT)
    clock.now += 60
    consumers.note("jobs", DOG)
    assert [(each.consumer, each.last_seen_ms) for each in consumers.of("jobs")] == [
        (CAT, 1_000_000),
        (DOG, 1_060_000),
    ]
    clock.now += 60
    assert [each.consumer for each in consumers.of("jobs")] == [DOG]
    assert consumers.of("others") == []


def test_a_stream_is_there_as_long_as_it_is_open() -> None:
    clock = Clock()
    consumers = Consumers(clock)
    with consumers.connected("jobs", CAT), consumers.connected("jobs", CAT):
        clock.now += 1000
        assert [(each.consumer, each.connections) for each in consumers.of("jobs")] == [(CAT, 2)]
    assert [(each.consumer, each.connections) for each in consumers.of("jobs")] == [(CAT, 0)]
    clock.now += 1000
    assert consumers.of("jobs") == []


def test_so_many_are_remembered_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "CONSUMERS_MAX", 2)
    monkeypatch.setattr(registry, "SUBSCRIPTIONS_MAX", 2)
    consumers = Consumers(Clock())
    names = [consumer_of("rest", f"10.0.0.{number}", "x" * 1000, "") for number in range(4)]
    for each in (*names, names[2]):
        consumers.note("jobs", each)
    assert [each.consumer for each in consumers.of("jobs")] == names[2:]
    assert len(names[0].client) == 200
    for subscription in ("a", "b", "c"):
        consumers.note(subscription, CAT)
    assert [bool(consumers.of(each)) for each in ("jobs", "a", "b", "c")] == [False, False, True, True]


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([rest.routes, push.routes, sqs.routes])


@contextmanager
def share_consumer(gateway: RunningGateway, name: str) -> Iterator[None]:
    consumer = ShareConsumer(
        {"bootstrap.servers": gateway.bootstrap, "group.id": name, "client.id": "the-cat"}
    )
    consumer.subscribe([name])
    try:
        consumer.poll(timeout=1)
        yield
    finally:
        consumer.close()


async def test_consumers_of_all_kinds_are_listed(gateway: RunningGateway, name: str) -> None:
    async with aiohttp.ClientSession(gateway.url, headers={"User-Agent": "lister/1"}) as session:
        api = Api(session)
        await api.queue(name)
        assert (await api.get(f"/v1/subscriptions/{name}/consumers"))["consumers"] == []
        await api.post(f"/v1/subscriptions/{name}/receive", {"wait_ms": 0})
        client = boto3.client(
            "sqs", endpoint_url=gateway.url, region_name="us-east-1", aws_access_key_id="x",
            aws_secret_access_key="y", config=Config(user_agent="boto/cat"),
        )  # fmt: skip
        client.receive_message(QueueUrl=f"{gateway.url}/000000000000/{name}", WaitTimeSeconds=0)
        url = gateway.url.replace("http", "ws")

        async def all_four() -> list[dict[str, object]] | None:
            found = (await api.get(f"/v1/subscriptions/{name}/consumers"))["consumers"]
            return (
                found if {each["kind"] for each in found} == {"kafka", "rest", "sqs", "websocket"} else None
            )

        with (
            connect(f"{url}/v1/subscriptions/{name}/stream", user_agent_header="socket/1"),
            share_consumer(gateway, name),
        ):
            found = await until_async(all_four, "all have come", 50)
        by_kind = {each["kind"]: each for each in found}
        assert {each["address"] for each in found} == {"127.0.0.1"}
        assert by_kind["kafka"]["client"] == "the-cat"
        assert by_kind["kafka"]["topics"] == [name]
        assert (by_kind["rest"]["client"], by_kind["rest"]["connections"]) == ("lister/1", 0)
        assert "boto/cat" in str(by_kind["sqs"]["client"])
        assert (by_kind["websocket"]["client"], by_kind["websocket"]["connections"]) == ("socket/1", 1)
        await api.get(f"/v1/subscriptions/{name}-none/consumers", status=404)
