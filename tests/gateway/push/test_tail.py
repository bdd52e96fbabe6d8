"""Tails of topics as Server-Sent Events, read by aiohttp's client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from aiohttp import ClientError, ClientResponse, ClientSession, web

from postroad.client import topics
from postroad.gateway.gateway import Gateway, Message
from postroad.gateway.push.tail import Tails
from tests.clients.wait import until_async
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.push.conftest import Queue

SOON_S = 30.0


class Event(NamedTuple):
    id: str
    data: dict[str, Any]


class Reader:
    def __init__(self, response: ClientResponse) -> None:
        self.response = response

    async def block(self) -> dict[str, str]:
        """The fields of one event; a comment is the field "" ."""
        async with asyncio.timeout(SOON_S):
            text = (await self.response.content.readuntil(b"\n\n")).decode()
        fields = [line.partition(": ") for line in text.strip().split("\n")]
        return {name.strip(": "): value for name, _, value in fields}

    async def event(self) -> Event:
        while True:
            block = await self.block()
            if "data" in block:
                return Event(block["id"], json.loads(block["data"]))

    async def values(self, count: int) -> list[str]:
        return [(await self.event()).data["value"] for _ in range(count)]


@asynccontextmanager
async def tail(queue: Queue, query: str = "", last: str = "", at: str = "v1") -> AsyncIterator[Reader]:
    url = f"{queue.running.url}/{at}/topics/{queue.topic}/tail?{query}"
    headers = {"Last-Event-ID": last} if last else {}
    async with ClientSession() as session, session.get(url, headers=headers) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "text/event-stream"
        reader = Reader(response)
        assert "retry" in await reader.block()  # from here on it listens
        yield reader


async def publish(queue: Queue, *values: bytes | Message) -> None:
    await asyncio.to_thread(queue.publish, values)


async def status_of(queue: Queue, query: str, last: str = "", topic: str = "") -> int:
    url = f"{queue.running.url}/v1/topics/{topic or queue.topic}/tail?{query}"
    headers = {"Last-Event-ID": last} if last else {}
    async with ClientSession() as session, session.get(url, headers=headers) as response:
        problem = await response.json(content_type="application/problem+json")
        assert problem["detail"]
        return response.status


async def test_a_tail_begins_at_the_end_and_shows_what_is_written_from_then_on(queue: Queue) -> None:
    await publish(queue, b"before")
    async with tail(queue) as reader:
        await publish(queue, Message(b"\n\xc3\xbc", b"k", [("h", b"1")], 1_767_225_600_000))
        event = await reader.event()
    assert event.id == "0:2"
    assert event.data == {
        "topic": queue.topic,
        "partition": 0,
        "offset": 1,
        "timestamp": 1_767_225_600_000,
        "key": "k",
        "value": "\nü",
        "headers": [["h", "1"]],
    }


async def test_a_tail_takes_nothing_from_subscriptions(queue: Queue) -> None:
    await publish(queue, b"1")
    async with tail(queue, "from=beginning") as one, tail(queue, "from=beginning") as other:
        assert await one.values(1) == await other.values(1) == ["1"]
    assert await asyncio.to_thread(queue.pull, 20_000) == [b"1"]


async def test_it_goes_on_after_the_last_event_id(queue: Queue) -> None:
    await publish(queue, *(b"%d" % n for n in range(10)))
    async with tail(queue, "from=beginning") as reader:
        events = [await reader.event() for _ in range(4)]
    async with tail(queue, "from=beginning", last=events[-1].id) as reader:
        assert await reader.values(6) == [str(n) for n in range(4, 10)]


async def test_all_partitions_are_read_and_each_goes_on_where_it_was(
    gateway: RunningGateway, name: str
) -> None:
    queue = Queue(gateway, name)
    await asyncio.to_thread(queue.create, 3)
    await publish(queue, *(Message(b"%d" % n, b"%d" % n) for n in range(60)))
    async with tail(queue, "from=beginning") as reader:
        events = [await reader.event() for _ in range(35)]
    async with tail(queue, last=events[-1].id) as reader:
        rest = await reader.values(25)
    seen = [event.data["value"] for event in events] + rest
    assert sorted(seen, key=int) == [str(n) for n in range(60)]
    assert len({event.data["partition"] for event in events}) > 1


async def test_it_begins_where_it_is_told(queue: Queue) -> None:
    await publish(queue, *(Message(b"%d" % n, timestamp=1_767_225_600_000 + n * 1000) for n in range(6)))
    for begin in ("4", "0:4", "2026-01-01T00:00:04Z", "2026-01-01T01:00:03.5%2B01:00", "2026-01-01T00:00:04"):
        async with tail(queue, f"from={begin}") as reader:
            assert await reader.values(2) == ["4", "5"]
    async with tail(queue, "from=0&partition=0") as reader:
        assert await reader.values(1) == ["0"]


async def test_a_place_beyond_the_end_is_the_end(queue: Queue) -> None:
    await publish(queue, b"before")
    for begin in ("99999999999999999999", "0:77", "2999-01-01T00:00:00Z"):
        async with tail(queue, f"from={begin}") as reader:
            await publish(queue, b"after")
            assert await reader.values(1) == ["after"]


@pytest.mark.parametrize(
    "query", ["from=nowhere", "from=-1", "from=0:", "from=1:2:3", "from=%C2%B2", "partition=1", "partition=x"]
)
async def test_wrong_places_are_refused(queue: Queue, query: str) -> None:
    assert await status_of(queue, query) == 400


async def test_a_wrong_last_event_id_is_refused(queue: Queue) -> None:
    assert await status_of(queue, "", last="the last one") == 400


async def test_an_offset_needs_a_partition_where_there_are_several(
    gateway: RunningGateway, name: str
) -> None:
    queue = Queue(gateway, name)
    await asyncio.to_thread(queue.create, 2)
    assert await status_of(queue, "from=0") == 400


async def test_an_unknown_topic_is_refused(queue: Queue) -> None:
    assert await status_of(queue, "", topic="nobody-knows-it") == 404


async def test_a_tail_ends_with_an_event_when_its_topic_is_deleted(queue: Queue) -> None:
    client = queue.running.gateway.client
    async with tail(queue) as reader:
        await asyncio.to_thread(queue.running.run, topics.delete(client, [queue.topic]))
        block = await reader.block()
        assert block["event"] == "error"
        assert json.loads(block["data"])["error"]


@pytest.fixture(scope="module")
def impatient_gateway(start_gateway: StartGateway) -> RunningGateway:
    def routes(gateway: Gateway) -> list[web.RouteDef]:
        return [
            web.get("/v1/topics/{topic}/tail", Tails(gateway, heartbeat_s=0.5).tail),
            web.get("/impatient/topics/{topic}/tail", Tails(gateway, stuck_s=1).tail),
        ]

    return start_gateway([routes])


@pytest.fixture
def impatient(impatient_gateway: RunningGateway, name: str) -> Queue:
    queue = Queue(impatient_gateway, name)
    queue.create()
    return queue


async def test_without_news_there_are_comments(impatient: Queue) -> None:
    async with tail(impatient) as reader:
        assert "" in await reader.block()


async def test_a_reader_that_takes_nothing_is_cut_off_and_slows_nobody(impatient: Queue) -> None:
    await publish(impatient, *[b"x" * 500_000] * 40)
    connections = impatient.running.door.connections
    async with (
        tail(impatient, "from=beginning", at="impatient") as stuck,
        tail(impatient, "from=beginning") as other,
    ):
        assert len(await other.values(40)) == 40
        await until_async(lambda: len(connections) == 1, "the one that takes nothing is cut off")
        with pytest.raises((ClientError, asyncio.IncompleteReadError)):
            await stuck.values(40)
