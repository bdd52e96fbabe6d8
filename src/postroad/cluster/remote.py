"""The coordination store of another process of this machine (`store_server`), at a Unix socket.

Calls share one connection, each watch has its own: so a slow reader of a watch holds up nobody, and no buffer
is needed but the socket's. A connection that is lost is made anew with the next call. Calls that were under
way raise StoreUnavailable, and leases have ended with it; watches go on where they were.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final, TypeVar

from msgspec.msgpack import Decoder

from postroad.cluster import store_frames as frames
from postroad.cluster.store import Compare, Events, Operation, Snapshot, StoreEntry
from postroad.cluster.store_address import SocketAddress
from postroad.cluster.store_frames import LENGTH_BYTES, Reply
from postroad.errors import StoreUnavailable

T = TypeVar("T")

CALL_S: Final = 5.0  # the other process is held up, or its disk is; a commit takes some 10 ms
PAUSE_S: Final = 0.1  # between two tries to connect a watch

_ENTRY: Final[Decoder[StoreEntry | None]] = Decoder(StoreEntry | None)
_SNAPSHOT: Final = Decoder(Snapshot)
_REVISION: Final[Decoder[int | None]] = Decoder(int | None)
_LEASE: Final = Decoder(int)
_NOTHING: Final[Decoder[None]] = Decoder(None)
_EVENTS: Final[Decoder[Events]] = Decoder(Events)


class RemoteStore:
    """The Store port. Make it within the loop that will use it; it connects with the first call."""

    def __init__(self, address: SocketAddress) -> None:
        self._path = address.path
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()
        self._calls = 0  # under way
        self._idle = asyncio.Event()
        self._idle.set()
        self._watches: dict[asyncio.StreamWriter, None] = {}
        self._closed = asyncio.Event()

    async def get(self, key: str) -> StoreEntry | None:
        return await self._call("get", [key], _ENTRY)

    async def list(self, prefix: str) -> Snapshot:
        return await self._call("list", [prefix], _SNAPSHOT)

    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> int | None:
        keys = [operation.key for operation in operations]
        assert len(set(keys)) == len(keys), f"a key stands in a commit once: {keys}"
        return await self._call("commit", [compares, frames.sent_operations(operations)], _REVISION)

    async def watch(self, prefix: str, after: int) -> AsyncIterator[Events]:
        while not self._closed.is_set():
            try:
                async with aclosing(self._watched(prefix, after)) as watched:
                    async for events in watched:
                        after = events[0].revision
                        yield events
            except (OSError, asyncio.IncompleteReadError):
                await self._pause()

    async def grant(self, ttl_ms: int) -> int:
        assert ttl_ms > 0
        return await self._call("grant", [ttl_ms], _LEASE)

    async def keep_alive(self, lease: int) -> None:
        await self._call("keep_alive", [lease], _NOTHING)

    async def revoke(self, lease: int) -> None:
        await self._call("revoke", [lease], _NOTHING)

    async def close(self) -> None:
        self._closed.set()
        for writer in list(self._watches):
            writer.close()
        await self._idle.wait()
        if self._connection is not None:
            await self._connection.close()

    # --- calls

    async def _call(self, method: str, arguments: Sequence[Any], result: Decoder[T]) -> T:
        if self._closed.is_set():
            raise StoreUnavailable("The coordination store is closed.")
        self._calls += 1
        self._idle.clear()
        try:
            async with asyncio.timeout(CALL_S):
                connection = await self._connected()
                return frames.result_of(await connection.call(method, arguments), result)
        except TimeoutError:
            raise StoreUnavailable(f"The process that serves {self._path} did not answer in time.") from None
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def _connected(self) -> _Connection:
        async with self._connecting:
            if self._connection is None or self._connection.lost:
                if self._connection is not None:
                    await self._connection.close()
                try:
                    reader, writer = await asyncio.open_unix_connection(self._path)
                except OSError as error:
                    raise StoreUnavailable(
                        f"No process serves its coordination store at {self._path}: {error}."
                    ) from error
                self._connection = _Connection(self._path, reader, writer)
            return self._connection

    # --- watches

    async def _watched(self, prefix: str, after: int) -> AsyncGenerator[Events, None]:
        """The events of one connection. Raises OSError or IncompleteReadError at its end."""
        reader, writer = await asyncio.open_unix_connection(self._path)
        self._watches[writer] = None
        try:
            if self._closed.is_set():
                return
            writer.write(frames.frame_of_call(0, "watch", [prefix, after]))
            while True:
                yield frames.result_of(await _reply(reader), _EVENTS)
        finally:
            del self._watches[writer]
            writer.close()

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PAUSE_S):
                await self._closed.wait()


class _Connection:
    """The connection that calls share; `lost` once it can't be used any more."""

    def __init__(self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.lost = False
        self._path = path
        self._reader = reader
        self._writer = writer
        self._last_id = 0
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._reading = asyncio.create_task(self._read(), name="store-replies")

    async def call(self, method: str, arguments: Sequence[Any]) -> Reply:
        """Raises StoreUnavailable if the connection ends before the reply comes."""
        if self.lost:
            raise self._lost()
        self._last_id = number = self._last_id + 1
        self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(frames.frame_of_call(number, method, arguments))
            return await self._waiting[number]
        finally:
            del self._waiting[number]

    async def close(self) -> None:
        self._reading.cancel()
        self._writer.close()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            while True:
                reply = await _reply(self._reader)
                waiting = self._waiting.get(reply.id)  # None: its caller has given up
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.lost = True
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(self._lost())

    def _lost(self) -> StoreUnavailable:
        return StoreUnavailable(f"The process that served {self._path} has ended the connection.")


async def _reply(reader: asyncio.StreamReader) -> Reply:
    head = await reader.readexactly(LENGTH_BYTES)
    return frames.decode(await reader.readexactly(frames.length_of(head)), Reply)
