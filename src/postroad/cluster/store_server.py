"""Serves a store that this process owns to other processes of the machine, at a Unix socket.

So several nodes can share the SQLite file of their parent process. Their side is `remote`; what is said is in
`store_frames`. A connection between two processes of one machine ends only when one of them does, so a lease
ends with the connection that asked for it: the death of a node is known at once.

Buffers are bounded by the sockets. Replies wait until the client reads, calls are not read while CALLS_MAX
are under way, and a watch whose reader is slow falls behind in the store's own history.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from postroad.cluster import store_frames as frames
from postroad.cluster.store import Compare, Store
from postroad.cluster.store_frames import LENGTH_BYTES, Call, SentOperation
from postroad.errors import PostroadError

CALLS_MAX: Final = 64  # of one connection at a time
BACKLOG: Final = 64

logger = logging.getLogger(__name__)


class StoreServer:
    """Make it with `open`. It does not own the store: whoever opened that closes it, afterwards."""

    def __init__(self, store: Store, path: Path) -> None:
        self._store = store
        self._path = path
        self._server: asyncio.Server
        self._connections: dict[asyncio.Task[None], None] = {}

    @classmethod
    async def open(cls, store: Store, path: str | Path) -> StoreServer:
        """Listen at the path; a socket that a dead process left there is replaced. OSError if that fails."""
        server = cls(store, Path(path))
        server._server = await asyncio.start_unix_server(server._serve, sock=_listening(server._path))
        return server

    async def close(self) -> None:
        """End all connections, with their leases, and remove the socket."""
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = None
        try:
            await _Connection(self._store, reader, writer).run()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has ended
        except asyncio.CancelledError:
            pass  # the server has
        finally:
            del self._connections[task]
            writer.close()


class _Connection:
    """One client's connection: of calls, or of one watch."""

    def __init__(self, store: Store, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._store = store
        self._reader = reader
        self._writer = writer
        self._leases: dict[int, None] = {}
        self._free = asyncio.Semaphore(CALLS_MAX)
        self._calls: dict[asyncio.Task[None], None] = {}
        self._methods: dict[str, Callable[[msgspec.Raw], Awaitable[Any]]] = {
            "get": self._get,
            "list": self._list,
            "commit": self._commit,
            "grant": self._grant,
            "keep_alive": self._keep_alive,
            "revoke": self._revoke,
        }

    async def run(self) -> None:
        """Answer until the client closes the connection."""
        try:
            while True:
                head = await self._reader.readexactly(LENGTH_BYTES)
                call = frames.decode(await self._reader.readexactly(frames.length_of(head)), Call)
                if call.method == "watch":
                    await self._watch_until_closed(call)
                    return
                await self._free.acquire()
                self._start(self._answer(call))
        finally:
            await self._end()

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work, name="store-call")
        self._calls[task] = None
        task.add_done_callback(self._calls.pop)

    async def _answer(self, call: Call) -> None:
        try:
            reply = frames.frame_of_result(call.id, await self._methods[call.method](call.arguments))
        except PostroadError as error:
            reply = frames.frame_of_error(call.id, error)
        try:
            self._writer.write(reply)
            with suppress(OSError):  # the client has gone
                await self._writer.drain()
        finally:
            self._free.release()

    async def _end(self) -> None:
        """What is under way takes effect; then the client's leases end."""
        await asyncio.gather(*self._calls, return_exceptions=True)
        for lease in self._leases:
            try:
                await self._store.revoke(lease)
            except PostroadError as error:  # it runs out by itself
                logger.warning("a lease of a process that ended stays for a while: %s", error)

    # --- watches

    async def _watch_until_closed(self, call: Call) -> None:
        watching = asyncio.create_task(self._watch(call), name="store-watch")
        closed = asyncio.create_task(self._reader.read(1), name="store-watch-end")
        try:
            await asyncio.wait((watching, closed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            closed.cancel()
            await asyncio.gather(watching, closed, return_exceptions=True)

    async def _watch(self, call: Call) -> None:
        prefix, after = msgspec.msgpack.decode(call.arguments, type=tuple[str, int])
        try:
            async for events in self._store.watch(prefix, after):
                self._writer.write(frames.frame_of_result(call.id, events))
                await self._writer.drain()
        except PostroadError as error:
            self._writer.write(frames.frame_of_error(call.id, error))
            await self._writer.drain()

    # --- calls

    async def _get(self, arguments: msgspec.Raw) -> Any:
        (key,) = msgspec.msgpack.decode(arguments, type=tuple[str])
        return await self._store.get(key)

    async def _list(self, arguments: msgspec.Raw) -> Any:
        (prefix,) = msgspec.msgpack.decode(arguments, type=tuple[str])
        return await self._store.list(prefix)

    async def _commit(self, arguments: msgspec.Raw) -> Any:
        kind = tuple[list[Compare], list[SentOperation]]
        compares, operations = msgspec.msgpack.decode(arguments, type=kind)
        return await self._store.commit(compares, frames.received_operations(operations))

    async def _grant(self, arguments: msgspec.Raw) -> Any:
        (ttl_ms,) = msgspec.msgpack.decode(arguments, type=tuple[int])
        lease = await self._store.grant(ttl_ms)
        self._leases[lease] = None
        return lease

    async def _keep_alive(self, arguments: msgspec.Raw) -> Any:
        (lease,) = msgspec.msgpack.decode(arguments, type=tuple[int])
        await self._store.keep_alive(lease)

    async def _revoke(self, arguments: msgspec.Raw) -> Any:
        (lease,) = msgspec.msgpack.decode(arguments, type=tuple[int])
        await self._store.revoke(lease)
        self._leases.pop(lease, None)


def _listening(path: Path) -> socket.socket:
    """A socket that only this user may connect to, from its first moment on."""
    if path.is_socket():
        path.unlink()
    made = socket.socket(socket.AF_UNIX)
    try:
        made.bind(str(path))
        os.chmod(path, 0o600)
        made.listen(BACKLOG)  # nobody could connect before
    except BaseException:
        made.close()
        raise
    return made
