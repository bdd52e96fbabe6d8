"""A proxy for TCP connections whose answers can be lost on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class LossyProxy:
    """Make it with `before`. What clients send always arrives; what comes back may not."""

    def __init__(self, target: str) -> None:
        self.endpoint = ""
        self._host, _, self._port = target.rpartition(":")
        self._losing = 0  # how many answers, or connections' answers, are still to be lost
        self._losing_all = False
        self._writers: dict[asyncio.StreamWriter, None] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}

    @classmethod
    @asynccontextmanager
    async def before(cls, target: str) -> AsyncIterator[LossyProxy]:
        proxy = cls(target)
        server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
        proxy.endpoint = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield proxy
        finally:
            server.close()
            proxy.end_connections()
            await asyncio.gather(*proxy._tasks, return_exceptions=True)

    def lose_answers(self, count: int | None = None) -> None:
        """Drop what comes back from now on; with a count, so many pieces of it and their connections."""
        self._losing_all = count is None
        self._losing = count or 0

    def end_connections(self) -> None:
        for writer in list(self._writers):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks[task] = self._writers[writer] = None
        there_reader, there = await asyncio.open_connection(self._host, int(self._port))
        try:
            await asyncio.gather(self._send(reader, there), self._return(there_reader, writer))
        except OSError:
            pass
        finally:
            for end in (writer, there):
                end.close()
            self._writers.pop(writer, None)
            del self._tasks[task]

    async def _send(self, reader: asyncio.StreamReader, there: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            there.write(data)
        there.close()

    async def _return(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            if self._losing:
                self._losing -= 1
                break
            if not self._losing_all:
                writer.write(data)
        writer.close()
