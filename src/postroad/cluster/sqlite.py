"""The coordination store of an embedded node: one SQLite file, owned by one process.

Statements run one after another in a single worker thread, which also owns the connection. Each commit
that changed something is handed to the loop before its caller resumes; watches read it there from the
bounded `History`. Leases live in memory, timed by the loop: when the process ends so do all of
them, and the next open deletes the keys that they left behind.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from postroad.cluster.history import History
from postroad.cluster.sqlite_file import check_entry, checksum, is_full, open_database
from postroad.cluster.store import (
    ABSENT,
    NO_LEASE,
    Compare,
    Delete,
    Event,
    Events,
    Operation,
    Put,
    Snapshot,
    StoreEntry,
)
from postroad.errors import LeaseLost, StorageFailed, StoreUnavailable

logger = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_SECONDS: Final = 1.0  # a lease whose keys could not be deleted (disk full) is tried again


class Committed(NamedTuple):
    revision: int
    events: Events


class SqliteStore:
    """The Store port on one file. Make it with `open`, within the loop that will use it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="postroad-store")
        self._connection: sqlite3.Connection  # touched by the worker only
        self._history = History(0)
        self._changed = asyncio.Event()  # set and replaced with each revision
        self._leases: dict[int, _Lease] = {}
        self._last_lease = NO_LEASE
        self._ending: dict[int, asyncio.Task[None]] = {}
        self._failed: str | None = None  # sticky, like any write error
        self._closed = False

    @classmethod
    async def open(cls, path: str | Path) -> SqliteStore:
        """Opens or creates the file; raises ConfigurationError if it is not ours, damaged or in use."""
        store = cls(Path(path))
        try:
            store._history = History(await store._call(store._open))
        except BaseException:
            store._worker.shutdown(wait=True)
            raise
        return store

    async def get(self, key: str) -> StoreEntry | None:
        return await self._call(partial(self._get, key))

    async def list(self, prefix: str) -> Snapshot:
        return await self._call(partial(self._list, prefix))

    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> int | None:
        keys = [operation.key for operation in operations]
        assert len(set(keys)) == len(keys), f"a key stands in a commit once: {keys}"
        for operation in operations:
            if isinstance(operation, Put) and operation.lease != NO_LEASE:
                self._alive(operation.lease)
        return await self._call(partial(self._commit, tuple(compares), tuple(operations)))

    async def watch(self, prefix: str, after: int) -> AsyncIterator[Events]:
        seen = after
        while not self._closed:
            changed = self._changed
            while seen < self._history.revision and not self._closed:
                seen += 1
                events = [event for event in self._history.at(seen) if event.key.startswith(prefix)]
                if events:
                    yield events
            await changed.wait()

    async def grant(self, ttl_ms: int) -> int:
        assert ttl_ms > 0
        self._check_open()
        self._last_lease += 1
        self._leases[self._last_lease] = lease = _Lease(ttl_ms / 1000)
        self._start_timer(self._last_lease, lease)
        return self._last_lease

    async def keep_alive(self, lease: int) -> None:
        self._check_open()
        self._start_timer(lease, self._alive(lease))

    async def revoke(self, lease: int) -> None:
        self._check_open()
        if lease in self._leases:
            self._forget(lease)
            await self._call(partial(self._delete_leased, lease))

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for lease in list(self._leases):
            self._forget(lease)
        self._changed.set()
        await asyncio.gather(*self._ending.values(), return_exceptions=True)
        await self._run(self._close)
        self._worker.shutdown(wait=True)

    # --- on the loop ---------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("The coordination store is closed.")
        if self._failed is not None:
            raise StoreUnavailable(self._failed)

    async def _call(self, job: Callable[[], T]) -> T:
        self._check_open()
        try:
            return await self._run(job)
        except sqlite3.Error as error:
            raise self._translate(error) from error

    async def _run(self, job: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._worker, job)

    def _translate(self, error: sqlite3.Error) -> StorageFailed | StoreUnavailable:
        if is_full(error):
            return StorageFailed(f"The disk is full: {self._path} is unchanged. Make room, then try again.")
        self._failed = f"{self._path} failed ({error}); the node must be restarted."
        logger.error("%s", self._failed)
        return StoreUnavailable(self._failed)

    def _publish(self, committed: Committed) -> None:
        self._history.append(committed.revision, committed.events)
        self._changed.set()
        self._changed = asyncio.Event()

    def _alive(self, lease: int) -> _Lease:
        if lease not in self._leases:
            raise LeaseLost(f"Lease {lease} has ended.")
        return self._leases[lease]

    def _start_timer(self, number: int, lease: _Lease) -> None:
        if lease.timer is not None:
            lease.timer.cancel()
        lease.timer = self._loop.call_later(lease.seconds, self._expire, number)

    def _forget(self, lease: int) -> None:
        timer = self._leases.pop(lease).timer
        if timer is not None:
            timer.cancel()

    def _expire(self, lease: int) -> None:
        """From here on the lease is refused; commits that name it already are in the queue before its end."""
        self._leases.pop(lease, None)
        task = self._loop.create_task(self._end(lease), name=f"lease {lease} ends")
        self._ending[lease] = task
        task.add_done_callback(lambda _: self._ending.pop(lease))

    async def _end(self, lease: int) -> None:
        try:
            await self._call(partial(self._delete_leased, lease))
        except StorageFailed:
            self._loop.call_later(RETRY_SECONDS, self._expire, lease)
        except StoreUnavailable:
            logger.debug("lease %d ends with the store", lease)

    # --- in the worker -------------------------------------------------------------------------

    def _open(self) -> int:
        self._connection = open_database(self._path)
        try:
            self._transact(self._deletes("lease != ?", NO_LEASE))
            return self._revision()
        except BaseException:
            self._connection.close()
            raise

    def _close(self) -> None:
        self._connection.close()

    def _get(self, key: str) -> StoreEntry | None:
        row = self._connection.execute("SELECT * FROM entries WHERE key = ?", (key.encode(),)).fetchone()
        return _entry(row) if row else None

    def _list(self, prefix: str) -> Snapshot:
        rows = self._connection.execute(
            "SELECT * FROM entries WHERE key >= ? AND key < ? ORDER BY key",
            (prefix.encode(), _end_of(prefix)),
        )
        return Snapshot([_entry(row) for row in rows], self._revision())

    def _commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> int | None:
        if any(self._mod_revision(key) != revision for key, revision in compares):
            return None
        return self._write(operations)

    def _delete_leased(self, lease: int) -> None:
        self._write(self._deletes("lease = ?", lease))

    def _deletes(self, condition: str, lease: int) -> Sequence[Delete]:
        rows = self._connection.execute(f"SELECT key FROM entries WHERE {condition} ORDER BY key", (lease,))
        return [Delete(key.decode()) for (key,) in rows]

    def _write(self, operations: Sequence[Operation]) -> int:
        committed = self._transact(operations)
        if committed is None:
            return self._revision()
        # Before the caller's own answer, and even if the caller was cancelled: watches skip nothing (R4).
        self._loop.call_soon_threadsafe(self._publish, committed)
        return committed.revision

    def _transact(self, operations: Sequence[Operation]) -> Committed | None:
        """One transaction, or None if it changes nothing.

        This thread is the only writer, so what it read before the transaction began still holds.
        """
        revision = self._revision() + 1
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            events = [event for operation in operations if (event := self._do(operation, revision))]
            if events:
                self._connection.execute("UPDATE counters SET value = ? WHERE name = 'revision'", (revision,))
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return Committed(revision, events) if events else None

    def _do(self, operation: Operation, revision: int) -> Event | None:
        key = operation.key.encode()
        if isinstance(operation, Put):
            row = (key, operation.value, revision, operation.lease)
            entry = (*row, checksum(*row))
            self._connection.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", entry)
            return Event(operation.key, operation.value, revision)
        deleted = self._connection.execute("DELETE FROM entries WHERE key = ?", (key,)).rowcount
        return Event(operation.key, None, revision) if deleted else None

    def _revision(self) -> int:
        row = self._connection.execute("SELECT value FROM counters WHERE name = 'revision'").fetchone()
        return int(row[0])

    def _mod_revision(self, key: str) -> int:
        entry = self._get(key)
        return entry.revision if entry else ABSENT


class _Lease:
    __slots__ = ("seconds", "timer")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.timer: asyncio.TimerHandle | None = None


def _entry(row: tuple[bytes, bytes, int, int, int]) -> StoreEntry:
    """Raises sqlite3.DatabaseError if it is not what was committed."""
    check_entry(*row)
    return StoreEntry(row[0].decode(), row[1], row[2])


def _end_of(prefix: str) -> bytes:
    """The first bytes behind everything that begins with the prefix (UTF-8 holds no 0xFF)."""
    encoded = prefix.encode()
    return encoded[:-1] + bytes([encoded[-1] + 1]) if encoded else b"\xff"
