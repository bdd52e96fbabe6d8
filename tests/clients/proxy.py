"""A TCP proxy that cuts connections where it hurts a producer most.

It stands between client and broker, follows the frames of both directions and rewrites the broker's port
in answers (host and port stand side by side in Metadata and FindCoordinator), so that clients keep coming
through it. Every n-th Produce request is cut, in turns:

    swallowed   the broker appends the batch and answers, the client never hears of it
    torn        half of the request reaches the broker, then the connection ends
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")

PRODUCE = 0


class CuttingProxy:
    """`cuts` counts what was done so far; without `cut_every` it only forwards."""

    def __init__(self, host: str, port: int, cut_every: int = 0) -> None:
        self.upstream = (host, port)
        self.cut_every = cut_every
        self.cuts = {"swallowed": 0, "torn": 0}
        self.port = 0
        self._produce_requests = 0

    @property
    def bootstrap(self) -> str:
        return f"{self.upstream[0]}:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self.upstream[0], 0, limit=1 << 26)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(*self.upstream, limit=1 << 26)
        link = _Link(self, writer, up_writer)
        both = [asyncio.create_task(link.requests(reader)), asyncio.create_task(link.answers(up_reader))]
        with suppress(asyncio.CancelledError):  # at the test's end
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in both:
            task.cancel()
        for end in (writer, up_writer):
            end.transport.abort()

    async def close(self) -> None:
        self._server.close()
        await asyncio.sleep(0.05)  # connections that were just accepted get their tasks
        links = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in links:
            task.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    def next_cut(self) -> str | None:
        """What happens to the next Produce request: None, "swallowed" or "torn"."""
        self._produce_requests += 1
        if not self.cut_every or self._produce_requests % self.cut_every:
            return None
        kind = "swallowed" if self.cuts["swallowed"] <= self.cuts["torn"] else "torn"
        self.cuts[kind] += 1
        return kind

    def redirect(self, answer: bytes) -> bytes:
        host = self.upstream[0].encode()
        return answer.replace(host + struct.pack(">i", self.upstream[1]), host + struct.pack(">i", self.port))


class _Link:
    """One client's connection and its twin to the broker."""

    def __init__(
        self, proxy: CuttingProxy, client: asyncio.StreamWriter, broker: asyncio.StreamWriter
    ) -> None:
        self.proxy = proxy
        self.client = client
        self.broker = broker
        self.swallow: int | None = None  # the correlation id whose answer ends the connection

    async def requests(self, reader: asyncio.StreamReader) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                frame = await _frame(reader)
                api_key, _, correlation_id = struct.unpack_from(">hhi", frame)
                cut = self.proxy.next_cut() if api_key == PRODUCE else None
                if cut == "torn":
                    self.broker.write(struct.pack(">i", len(frame)) + frame[: len(frame) // 2])
                    await self.broker.drain()
                    return
                if cut == "swallowed":
                    self.swallow = correlation_id
                self.broker.write(struct.pack(">i", len(frame)) + frame)
                await self.broker.drain()

    async def answers(self, reader: asyncio.StreamReader) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                frame = await _frame(reader)
                (correlation_id,) = struct.unpack_from(">i", frame)
                if correlation_id == self.swallow:
                    return
                self.client.write(struct.pack(">i", len(frame)) + self.proxy.redirect(frame))
                await self.client.drain()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(length)


@contextmanager
def cutting_proxy(host: str, port: int, cut_every: int = 0) -> Iterator[CuttingProxy]:
    """The proxy on an event loop of its own, in a thread, for clients that block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="cutting-proxy")
    thread.start()

    def run(step: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(step, loop).result(30)

    proxy = CuttingProxy(host, port, cut_every)
    try:
        run(proxy.start())
        yield proxy
        run(proxy.close())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
