"""Transactions over a WebSocket: what is held is accepted and other messages are published, at once."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from postroad.client import browse, topics
from postroad.client.metadata import TopicPartition
from postroad.gateway.push import binary_frames
from tests.clients.wait import until_async
from tests.gateway.push.conftest import Queue
from tests.gateway.push.test_websocket import SOON_S, end_of, hear, hear_messages, publish, pull, say

BINARY = [Subprotocol(binary_frames.SUBPROTOCOL)]
BAD_FRAME = 4000


def answers_of(queue: Queue) -> str:
    return f"{queue.name}-answers"


@pytest.fixture
def answered(queue: Queue) -> Queue:
    """A queue, and a topic for what comes of its messages."""
    queue.running.run(topics.create(queue.running.gateway.client, answers_of(queue)))
    return queue


async def stored(queue: Queue, *offsets: int) -> list[tuple[bytes | None, bytes | None, Any]]:
    """Key, value and headers of these answers."""

    async def read() -> Any:
        part = TopicPartition(answers_of(queue), 0)
        records, _ = await browse.read(queue.running.gateway.client, part, list(offsets))
        return [(records[at].key, records[at].value, list(records[at].headers)) for at in offsets]

    found: list[Any] = await asyncio.to_thread(lambda: queue.running.run(read()))
    return found


async def hold(socket: ClientConnection, queue: Queue, *values: bytes) -> list[dict[str, Any]]:
    await say(socket, "credit", messages=len(values))
    await publish(queue, *values)
    return await hear_messages(socket, len(values))


async def test_what_is_held_is_accepted_with_its_answer(answered: Queue) -> None:
    async with connect(answered.url) as socket:
        first, second, third = await hold(socket, answered, b"a", b"b", b"c")
        message = {"topic": answers_of(answered), "value": "done", "key": "k", "headers": {"h": "1"}}
        await say(socket, "transaction", ids=[first["id"], third["id"]], publish=[message], request=7)
        said = await hear(socket)
        (where,) = said.pop("messages")
        assert said == {"type": "committed", "request": 7}
        assert (where["topic"], where["partition"], where["offset"]) == (answers_of(answered), 0, 0)
        assert await stored(answered, 0) == [(b"k", b"done", [("h", b"1")])]
        await say(socket, "accept", ids=[first["id"]], request=8)
        assert (await hear(socket))["failed"][0]["ids"] == [first["id"]], "it is done"
        await say(socket, "release", ids=[second["id"]], request=9)
        assert (await hear(socket))["failed"] == []
    assert await pull(answered, 5000) == [b"b"]


async def test_nothing_happens_where_an_id_is_not_held_and_the_others_stay_so(answered: Queue) -> None:
    async with connect(answered.url) as socket:
        (held,) = await hold(socket, answered, b"a")
        message = {"topic": answers_of(answered), "value": "done"}
        await say(socket, "transaction", ids=[held["id"], 99], publish=[message], request=1)
        said = await hear(socket)
        assert (said["type"], said["request"], said["problem"]["status"]) == ("refused", 1, 409)
        assert "99" in said["problem"]["detail"]
        await say(socket, "transaction", ids=[held["id"]], publish=[message], request=2)
        assert (await hear(socket))["type"] == "committed"
    assert await stored(answered, 0) == [(None, b"done", [])]


async def test_receipts_of_elsewhere_may_be_named_too(answered: Queue) -> None:
    running = answered.running
    await publish(answered, b"a")
    (received,) = await asyncio.to_thread(
        lambda: running.run(running.gateway.receive(answered.name, 1, 5000, 60_000))
    )
    receipt = running.gateway.receipts.write(received.receipt)
    async with connect(answered.url) as socket:
        await say(socket, "transaction", receipts=[receipt], request=1)
        assert await hear(socket) == {"type": "committed", "request": 1, "messages": []}
        await say(socket, "transaction", receipts=["nonsense"], request=2)
        assert (await hear(socket))["problem"]["status"] == 422
        await say(socket, "transaction", request=3)
        assert "empty" in (await hear(socket))["problem"]["detail"]
        await say(socket, "transaction", publish=[{"topic": "t", "value": {"base64": "?"}}], request=4)
        assert (await hear(socket))["problem"]["status"] == 422


async def test_a_frame_that_does_not_fit_ends_the_connection(answered: Queue) -> None:
    async with connect(answered.url) as socket:
        await say(socket, "transaction", ids=[1])
        assert (await hear(socket))["code"] == BAD_FRAME
        assert await end_of(socket) == BAD_FRAME


async def test_a_transaction_that_was_asked_for_is_carried_out_though_the_client_goes(
    answered: Queue,
) -> None:
    async with connect(answered.url) as socket:
        (held,) = await hold(socket, answered, b"a")
        message = {"topic": answers_of(answered), "value": "done"}
        await say(socket, "transaction", ids=[held["id"]], publish=[message], request=1)

    async def is_done() -> bool:
        return await asyncio.to_thread(answered_so_far, answered) == 2

    await until_async(is_done, "a message and a marker")
    assert await pull(answered, 200) == []


def answered_so_far(queue: Queue) -> int:
    from postroad.client import offsets

    part = TopicPartition(answers_of(queue), 0)

    async def end() -> int:
        return (await offsets.latest(queue.running.gateway.client, [part]))[part]

    return queue.running.run(end())


# --- the binary format


def binary(
    ids: list[int], messages: list[bytes], request: int = 5, receipts: list[bytes] | None = None
) -> bytes:
    receipts = receipts or []
    named = b"".join(struct.pack(">H", len(each)) + each for each in receipts)
    return (
        struct.pack(f">BII{len(ids)}Q", 6, request, len(ids), *ids)
        + struct.pack(">I", len(receipts))
        + named
        + struct.pack(">I", len(messages))
        + b"".join(messages)
    )


def binary_message(topic: str, key: bytes | None, value: bytes | None, partition: int = -1) -> bytes:
    def nullable(data: bytes | None) -> bytes:
        return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data

    name = topic.encode()
    headers = struct.pack(">I", 1) + struct.pack(">I", 1) + b"h" + nullable(b"\xff")
    return (
        struct.pack(">H", len(name)) + name + struct.pack(">i", partition)
        + nullable(key) + nullable(value) + headers
    )  # fmt: skip


async def hear_bytes(socket: ClientConnection) -> bytes:
    async with asyncio.timeout(SOON_S):
        frame = await socket.recv()
        assert isinstance(frame, bytes)
        return frame


async def test_the_same_in_binary_frames(answered: Queue) -> None:
    async with connect(f"{answered.url}?credit=10", subprotocols=BINARY) as socket:
        await publish(answered, b"a")
        assert (await hear_bytes(socket))[0] == 0x10
        topic = answers_of(answered)
        sent = [binary_message(topic, None, b"\xfe"), binary_message(topic, b"k", None, 0)]
        await socket.send(binary([1], sent))
        assert await hear_bytes(socket) == struct.pack(">BIiqiq", 0x14, 5, 0, 0, 0, 1)
        await socket.send(binary([1], sent, request=6))
        refused = await hear_bytes(socket)
        assert struct.unpack_from(">BIH", refused) == (0x15, 6, 409)
        assert b"not held" in refused
    assert await stored(answered, 0, 1) == [(None, b"\xfe", [("h", b"\xff")]), (b"k", None, [("h", b"\xff")])]
    assert await pull(answered, 200) == []


@pytest.mark.parametrize(
    "frame",
    [
        bytes([6]),
        binary([1], [])[:-1],
        binary([1], []) + b"x",
        binary([], [binary_message("a b", None, b"x")]),
        binary([], [binary_message("t", None, b"x", -7)]),
        binary([], [binary_message("t", None, b"x")[:-3]]),
        binary([1] * 1001, []),
        binary([], [b"\x00\x01\xff" + binary_message("", None, b"x")[2:]]),
        binary([], [], receipts=[b"\xff"]),
        struct.pack(">BIIII", 6, 1, 0, 0, 2**32 - 1),
    ],
)
async def test_a_binary_frame_that_does_not_fit_ends_the_connection(answered: Queue, frame: bytes) -> None:
    async with connect(answered.url, subprotocols=BINARY) as socket:
        await socket.send(frame)
        assert struct.unpack_from(">BH", await hear_bytes(socket)) == (0x13, BAD_FRAME)
        assert await end_of(socket) == BAD_FRAME
