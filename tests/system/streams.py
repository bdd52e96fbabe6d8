"""Two ends of a TCP connection of this machine, as streams; and one that takes and gives little at a time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from random import Random

from postroad.system.sockets import SocketStream
from postroad.system.stream import Buffer, SentFile, Stream


def pair_of_streams() -> tuple[SocketStream, SocketStream]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    return SocketStream(near), SocketStream(far)


class Moody:
    """A stream that does a part of what it is asked for, or nothing at all, as chance has it."""

    def __init__(self, stream: Stream, random: Random) -> None:
        self._stream = stream
        self._random = random
        self.fileno = stream.fileno
        self.close = stream.close
        self.start_reading = stream.start_reading
        self.stop_reading = stream.stop_reading
        self.expect = stream.expect
        self.call_from = stream.call_from

    def receive_into(self, space: memoryview, /) -> int:
        return self._stream.receive_into(space[: self._some(len(space))])

    def send(self, data: Buffer, flags: int = 0, /) -> int:
        return self._stream.send(data[: self._some(len(data))], flags)

    def send_pieces(self, pieces: Sequence[Buffer], /) -> int:
        return self.send(b"".join(pieces))

    def send_file(self, file: SentFile, position: int, length: int) -> int:
        raise AssertionError("bytes of a file must not pass by TLS")

    def _some(self, size: int) -> int:
        if self._random.random() < 0.3:
            raise BlockingIOError("not now")
        return max(1, self._random.randrange(size + 1)) if self._random.random() < 0.5 else size


class Sender:
    """Sends as connections do: what was not taken is offered again when the loop says so."""

    def __init__(self, stream: Stream, loop: asyncio.AbstractEventLoop) -> None:
        self._stream = stream
        self._loop = loop

    async def send(self, step: Callable[[int], int], size: int) -> None:
        """`step` sends from a position on, and says how many bytes were taken."""
        done = 0
        while done < size:
            try:
                done += step(done)
            except BlockingIOError:
                await self._writable()

    async def _writable(self) -> None:
        ready = asyncio.Event()
        self._loop.add_writer(self._stream.fileno(), ready.set)
        await ready.wait()
        self._loop.remove_writer(self._stream.fileno())


async def receive(stream: Stream, size: int, space: int = 16 * 1024, at_once: int = 1 << 30) -> bytes:
    """Receive so many bytes, or those until the end; one `receive_into` for each call of the loop."""
    loop = asyncio.get_running_loop()
    received = bytearray()
    buffer = memoryview(bytearray(space))
    finished: asyncio.Future[None] = loop.create_future()

    def readable() -> None:
        if finished.done():
            return
        try:
            count = stream.receive_into(buffer[: min(space, at_once, size - len(received))])
        except BlockingIOError:
            return
        except OSError as error:
            finished.set_exception(error)
            return
        received.extend(buffer[:count])
        if not count or len(received) == size:
            finished.set_result(None)

    stream.start_reading(loop, readable)
    try:
        async with asyncio.timeout(10):
            await finished
    finally:
        stream.stop_reading(loop)
    return bytes(received)
