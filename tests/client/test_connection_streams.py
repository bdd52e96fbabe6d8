"""A connection over streams that take and give little at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from postroad.client.connection import open_connection
from postroad.errors import RequestTimedOut
from postroad.system.sockets import connect
from postroad.system.stream import Buffer, Connect, SentFile, Stream
from postroad.testing import Node
from postroad.wire.messages import metadata
from tests.client.test_connection import ALL_METADATA, frame, greet, listening

LARGE = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="n" * 30_000)] * 800)
LARGE_BYTES = 800 * 30_000


class Narrow:
    """A stream that takes and gives at most so many bytes at once, and counts the sends."""

    def __init__(self, stream: Stream, width: int) -> None:
        self._stream = stream
        self._width = width
        self.sends = 0

    def receive_into(self, space: memoryview, /) -> int:
        return self._stream.receive_into(space[: self._width])

    def send(self, data: Buffer, flags: int = 0, /) -> int:
        self.sends += 1
        return self._stream.send(data[: self._width], flags)

    def send_pieces(self, pieces: Sequence[Buffer], /) -> int:
        return self.send(b"".join(pieces))

    def send_file(self, file: SentFile, position: int, length: int) -> int:
        raise NotImplementedError

    def start_reading(self, loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
        self._stream.start_reading(loop, call)

    def stop_reading(self, loop: asyncio.AbstractEventLoop) -> None:
        self._stream.stop_reading(loop)

    def expect(self, count: int) -> None:
        self._stream.expect(count)

    def call_from(self, count: int) -> None:
        self._stream.call_from(count)

    def fileno(self) -> int:
        return self._stream.fileno()

    def close(self) -> None:
        self._stream.close()


def through(width: int, made: list[Narrow]) -> Connect:
    async def narrow(host: str, port: int) -> Stream:
        made.append(Narrow(await connect(host, port), width))
        return made[-1]

    return narrow


async def test_short_sends_and_receives_lose_nothing(postroad_session: Node) -> None:
    host, port = postroad_session.bootstrap.split(":")
    connection = await open_connection(through(7, []), host, int(port), "test")
    answers = await asyncio.gather(*(connection.call(metadata, ALL_METADATA, 20) for _ in range(100)))
    assert all(answer.brokers for answer in answers)
    connection.close()


async def test_requests_of_one_turn_share_a_send(postroad_session: Node) -> None:
    host, port = postroad_session.bootstrap.split(":")
    made: list[Narrow] = []
    connection = await open_connection(through(1 << 20, made), host, int(port), "test")
    before = made[0].sends
    await asyncio.gather(*(connection.call(metadata, ALL_METADATA, 20) for _ in range(50)))
    assert made[0].sends - before == 2  # the first at once, as nothing was under way
    connection.close()


async def test_a_large_request_arrives_whole_at_a_peer_that_reads_slowly() -> None:
    sizes: list[int] = []

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        for _ in range(2):
            size = int.from_bytes(await reader.readexactly(4), "big")
            request = await reader.readexactly(size)
            sizes.append(size)
            answer = metadata.encode_response(metadata.MetadataResponse(), 13)
            writer.write(frame(int.from_bytes(request[4:8], "big"), b"\0" + answer))
        await reader.read()
        writer.close()

    async with listening(peer) as port:
        connection = await open_connection(connect, "127.0.0.1", port, "test")
        await asyncio.gather(
            connection.call(metadata, LARGE, 20), connection.call(metadata, ALL_METADATA, 20)
        )
        assert sizes[0] > LARGE_BYTES
        connection.close()


async def test_callers_wait_while_the_peer_takes_nothing() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        await asyncio.Event().wait()

    async with listening(peer) as port:
        connection = await open_connection(connect, "127.0.0.1", port, "test")
        await connection.post(metadata, LARGE, 20)
        with pytest.raises(RequestTimedOut, match="took no bytes"):
            await connection.post(metadata, ALL_METADATA, 0.05)
        assert connection.is_open
        connection.close()
