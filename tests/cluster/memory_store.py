"""The coordination store's model in a few lines, for tests that need neither a disk nor a clock."""

from __future__ import annotations

from collections.abc import Sequence

from postroad.cluster.store import (
    ABSENT,
    NO_LEASE,
    Compare,
    Delete,
    Event,
    Operation,
    Put,
    Snapshot,
    StoreEntry,
)


class MemoryStore:
    """R1 to R5 of the port, all at once: a commit is there or refused when the call returns."""

    def __init__(self) -> None:
        self.revision = 0
        self.entries: dict[str, StoreEntry] = {}
        self.history: dict[int, list[Event]] = {}
        self._lease_of: dict[str, int] = {}
        self._leases: dict[int, None] = {}
        self._granted = NO_LEASE

    def grant(self) -> int:
        self._granted += 1
        self._leases[self._granted] = None
        return self._granted

    def end(self, lease: int) -> None:
        """End the lease; its keys go in one revision."""
        if lease in self._leases:
            del self._leases[lease]
            self._write([Delete(key) for key, holder in self._lease_of.items() if holder == lease])

    def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> bool:
        """False: a compare failed, or a lease that is named has ended, and nothing was changed."""
        leases = {operation.lease for operation in operations if isinstance(operation, Put)}
        if not leases - {NO_LEASE} <= self._leases.keys():
            return False
        if any(self._revision_of(key) != revision for key, revision in compares):
            return False
        self._write(operations)
        return True

    def snapshot(self) -> Snapshot:
        return Snapshot([self.entries[key] for key in sorted(self.entries)], self.revision)

    def _revision_of(self, key: str) -> int:
        return self.entries[key].revision if key in self.entries else ABSENT

    def _write(self, operations: Sequence[Operation]) -> None:
        revision, events = self.revision + 1, []
        for operation in operations:
            self._lease_of.pop(operation.key, None)
            if isinstance(operation, Put):
                self.entries[operation.key] = StoreEntry(operation.key, operation.value, revision)
                events.append(Event(operation.key, operation.value, revision))
                if operation.lease != NO_LEASE:
                    self._lease_of[operation.key] = operation.lease
            elif self.entries.pop(operation.key, None) is not None:
                events.append(Event(operation.key, None, revision))
        if events:
            self.revision = revision
            self.history[revision] = events
