"""The binary format, read by a client that was written from its description."""

from __future__ import annotations

import asyncio
import struct
from typing import Any, NamedTuple

from websockets.asyncio.client import connect

from postroad.gateway.gateway import Message
from tests.gateway.push.conftest import Queue

BINARY: Any = ["postroad.v1.binary"]
AS_CONFIGURED = 0xFFFFFFFF
SOON_S = 30.0


class Read(NamedTuple):
    id: int
    partition: int
    offset: int
    timestamp: int
    attempt: int
    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    receipt: str


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(">" + layout, self.data, self.at)
        self.at += struct.calcsize(">" + layout)
        return values

    def some(self, length: int) -> bytes | None:
        if length < 0:
            return None
        self.at += length
        return self.data[self.at - length : self.at]

    def text(self, layout: str = "H") -> str:
        return (self.some(*self.take(layout)) or b"").decode()


def read_messages(frame: bytes) -> list[Read]:
    reader = Reader(frame)
    assert reader.take("B") == (0x10,)
    messages = []
    while reader.at < len(frame):
        number, partition, offset, timestamp, attempt, header_count = reader.take("QiqqII")
        topic, key, value = reader.text(), reader.some(*reader.take("i")), reader.some(*reader.take("i"))
        headers = [(reader.text("i"), reader.some(*reader.take("i"))) for _ in range(header_count)]
        messages.append(
            Read(number, partition, offset, timestamp, attempt, topic, key, value, headers, reader.text())
        )
    return messages


def settle(kind: int, *ids: int, request: int = 0, ms: int = AS_CONFIGURED) -> bytes:
    return struct.pack(f">BII{len(ids)}Q", kind, request, ms, *ids)


async def hear(socket: Any) -> bytes:
    async with asyncio.timeout(SOON_S):
        frame: bytes = await socket.recv()
        return frame


async def publish(queue: Queue, *messages: Message) -> None:
    await asyncio.to_thread(queue.publish, messages)


async def test_messages_of_all_shapes_arrive_and_are_settled(queue: Queue) -> None:
    await publish(
        queue,
        Message(b"\x00\xff", b"k", [("a", b"1"), ("ü", None)], 1_767_225_600_000),
        Message(None),
        Message(b"", b""),
    )
    async with connect(f"{queue.url}?batch=10&receipts=true", subprotocols=BINARY) as socket:
        assert socket.subprotocol == BINARY[0]
        await socket.send(struct.pack(">BI", 1, 3))
        first, second, third = read_messages(await hear(socket))
        assert first[:-1] == (
            1, 0, 0, 1_767_225_600_000, 1, queue.topic, b"k", b"\x00\xff", [("a", b"1"), ("ü", None)],
        )  # fmt: skip
        assert (second.id, second.key, second.value, second.headers) == (2, None, None, [])
        assert (third.key, third.value) == (b"", b"")

        await socket.send(settle(2, 1, request=9))
        assert await hear(socket) == struct.pack(">BI", 0x11, 9)
        receipt = second.receipt.encode()
        await socket.send(struct.pack(">BIIH", 0x82, 10, AS_CONFIGURED, len(receipt)) + receipt)
        assert await hear(socket) == struct.pack(">BI", 0x11, 10)
        await socket.send(settle(5, 3, request=11, ms=60_000))
        assert await hear(socket) == struct.pack(">BI", 0x11, 11)
        await socket.send(settle(4, 3, request=12))
        assert await hear(socket) == struct.pack(">BI", 0x11, 12)
    assert await asyncio.to_thread(queue.pull) == []


async def test_what_could_not_be_settled_is_told_with_its_reason(queue: Queue) -> None:
    async with connect(queue.url, subprotocols=BINARY) as socket:
        await socket.send(settle(3, 7, 8, ms=0))
        reader = Reader(await hear(socket))
        assert reader.take("BI") == (0x11, 0)
        assert "Not held" in reader.text()
        assert reader.take("IQQI") == (2, 7, 8, 0)


async def test_a_frame_that_cant_be_read_ends_the_connection_with_a_text(queue: Queue) -> None:
    for frame in (
        b"",
        b"\x63",
        b"\x01\x00",
        settle(2, 1)[:-1],
        settle(9, 1),
        b"\x82" + bytes(8) + b"\xff\xff",
    ):
        async with connect(queue.url, subprotocols=BINARY) as socket:
            await socket.send(frame)
            reader = Reader(await hear(socket))
            assert reader.take("BH") == (0x13, 4000)
            assert reader.data[reader.at :]
