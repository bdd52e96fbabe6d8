"""The port to the coordination store: SQLite when embedded, etcd in a cluster.

The model is etcd's, so that either fits behind it unchanged:

- R1 One counter, the revision, rises with every commit that changes something, by one or by more: an
  etcd that others use too counts their commits as well. A commit of ours that changes nothing (no
  operations, or only deletes of absent keys) does not raise it.
- R2 Each key knows the revision that last wrote it; a key that is deleted and written anew has a new
  one. Comparing it is therefore enough to know that nothing happened in between.
- R3 A commit is all or nothing, and durable when it returns. A key stands in it at most once.
- R4 A watch yields each revision's events together, in order, none left out and none twice. It may be
  resumed after any revision whose history is still kept; else it raises HistoryCompacted, and the
  caller lists again.
- R5 A lease that ends, for whatever reason, takes its keys with it in one revision. A lease is not a
  lock: its holder may hear of the end late. Fence by comparing revisions, never by "I hold it".

- R6 A watch of everything ("") reaches every revision that `commit`, `list` or an event has named: it
  yields events of that revision or of a later one. Where the revision was somebody else's, so that it
  has no events here, that is a mark of progress: one event with the key PROGRESS and no value. Nothing
  has happened to any key then. Whoever ignores keys that it does not know need not look for marks; whoever
  counts revisions or events must.

A commit that raises may have happened or not. Never repeat it blindly: read, then decide anew.
Keys are non-empty text without NUL, ordered by their UTF-8 bytes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

NO_LEASE: Final = 0
ABSENT: Final = 0
PROGRESS: Final = ""  # the key of a mark of progress (R6); keys are not empty

# etcd's own defaults (--max-txn-ops, --max-request-bytes); decisions stay below them on any adapter,
# so that what works embedded works in a cluster.
OPERATIONS_MAX: Final = 128
VALUE_BYTES_MAX: Final = 1024 * 1024


class StoreEntry(NamedTuple):
    key: str
    value: bytes
    revision: int  # the one that last wrote the key


class Snapshot(NamedTuple):
    """Entries in the order of their keys, all as they stood at one revision."""

    entries: list[StoreEntry]
    revision: int


class Event(NamedTuple):
    key: str
    value: bytes | None  # None: deleted
    revision: int


class Compare(NamedTuple):
    """Holds if the key was last written by this revision; ABSENT: if there is no such key."""

    key: str
    revision: int


class Put(NamedTuple):
    """Writes the key. Without a lease it also frees the key from the one that it had."""

    key: str
    value: bytes
    lease: int = NO_LEASE


class Delete(NamedTuple):
    key: str


Operation: TypeAlias = Put | Delete
Events: TypeAlias = list[Event]  # of one revision, in the order of its operations


class Store(Protocol):
    """Every method may raise StoreUnavailable; on `commit` that leaves the outcome unknown."""

    async def get(self, key: str) -> StoreEntry | None: ...

    async def list(self, prefix: str) -> Snapshot:
        """All keys that begin with the prefix ("" for all)."""
        ...

    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> int | None:
        """The store's revision afterwards, or None if a compare failed and so nothing was changed.

        Raises LeaseLost if a Put names a lease that has ended, StorageFailed if the disk is full:
        in both cases nothing was changed either.
        """
        ...

    def watch(self, prefix: str, after: int) -> AsyncIterator[Events]:
        """The events of each later revision, as it comes; ends when the store is closed.

        Raises HistoryCompacted if revisions after `after` are no longer kept, at once or when a slow
        reader has fallen behind.
        """
        ...

    async def grant(self, ttl_ms: int) -> int:
        """A new lease, which ends unless kept alive within `ttl_ms` (an adapter may round that up)."""
        ...

    async def keep_alive(self, lease: int) -> None:
        """The lease's time begins anew. Raises LeaseLost if it has ended: its keys are gone."""
        ...

    async def revoke(self, lease: int) -> None:
        """Ends the lease and deletes its keys; a lease that has ended already is no error."""
        ...

    async def close(self) -> None:
        """Waits for what is under way and ends watches. Leases are kept alive no more, so they end too."""
        ...
