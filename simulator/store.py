"""The coordination store as a service of its own, as etcd is: one truth for all nodes, and the ways it fails.

`StoreServer` holds the truth, with leases on virtual time. `session(process)` is the Store port for one
process (`store_session`). Between the two lies a network of the store's own: it takes time, loses requests
and answers, and a watch may lag. What goes wrong and when is said by `faults` and by the methods for
outages; chance comes from the world's generators "store …", so a seed decides all of it.

An outage is one of the whole store: nobody is answered, and no lease ends, since there is no leader to end
it. When it is over each lease has its whole time again, as a new leader of etcd gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from postroad.cluster.store import (
    ABSENT,
    NO_LEASE,
    OPERATIONS_MAX,
    PROGRESS,
    VALUE_BYTES_MAX,
    Compare,
    Delete,
    Event,
    Events,
    Operation,
    Put,
    Snapshot,
    Store,
    StoreEntry,
)
from postroad.errors import HistoryCompacted, LeaseLost
from simulator.store_session import StoreSession

if TYPE_CHECKING:
    from simulator.process import Process
    from simulator.world import World

LEASE_CHECK_S: Final = 0.5  # etcd looks for leases that have ended this often: they end late, never early
MARK_S: Final = 0.25  # a revision that is not ours is followed by a mark of progress after this time


@dataclass
class StoreFaults:
    """How often the way to the store fails. Chances hold for each request; all may be changed at any time."""

    latency_s: float = 0.003  # the longest that a request, an answer or an event takes on its way
    request_lost: float = 0.0
    request_late: float = 0.0  # it takes effect after its sender has given up
    answer_lost: float = 0.0
    refused: float = 0.5  # in an outage: told at once, instead of waiting in vain
    watch_lag_s: float = 0.0  # the longest that an event is late
    watch_broken: float = 0.5  # an outage or a cut ends a session's watches, instead of leaving them silent
    patience_s: float = 2.0  # a session then gives up: StoreUnavailable
    neighbour: float = 0.0  # a commit is followed by one of another cluster in the same store


@dataclass
class _Lease:
    ttl_s: float
    ends_at: float


class StoreServer:
    def __init__(self, world: World, faults: StoreFaults | None = None) -> None:
        self.world = world
        self.faults = faults or StoreFaults()
        self.down = False
        self.revision = 1
        self.latencies = world.random("store latencies")
        self.chances = world.random("store faults")
        self.lags = world.random("store watches")
        self._lease_ends = world.random("store leases")
        self._neighbours = world.random("store neighbours")
        self._deaf_to: dict[str, None] = {}  # hosts whose requests don't arrive
        self._mute_to: dict[str, None] = {}  # hosts that answers and events don't reach
        self.observers: list[Callable[[int, Events], None]] = []  # each hears of each revision, at once
        # Each hears of commits that were refused: which key was another, and what should have been written.
        self.refusals: list[Callable[[str, Sequence[Operation]], None]] = []
        self._sessions: dict[StoreSession, None] = {}
        self._entries: dict[str, StoreEntry] = {}
        self._lease_of: dict[str, int] = {}  # by key
        self._leases: dict[int, _Lease] = {}
        self._last_lease = NO_LEASE
        self._history: dict[int, Events] = {}
        self._compacted = self.revision

    def session(self, process: Process) -> Store:
        """The store as this process sees it."""
        made = StoreSession(self, process)
        self._sessions[made] = None
        process.when_ended(lambda _: self.forget(made))
        return made

    # --- faults

    def begin_outage(self) -> None:
        """Nobody reaches the store until `end_outage`."""
        if not self.down:
            self.down = True
            self.world.note("store", "outage begins")
            self._disturb(list(self._sessions))

    def end_outage(self) -> None:
        if self.down:
            self.down = False
            self.world.note("store", "outage ends")
            for lease in self._leases.values():
                self._give_time(lease)

    def cut(self, host: str, *, requests: bool = True, answers: bool = True) -> None:
        """Cut one host off, both ways or one way: what it sends is lost, or what it is sent."""
        self.world.note("store", "cut", f"{host} requests={requests} answers={answers}")
        self._deaf_to |= {host: None} if requests else {}
        self._mute_to |= {host: None} if answers else {}
        self._disturb([session for session in self._sessions if session.host == host])

    def heal(self, host: str | None = None) -> None:
        """End the host's cut; without a host, all cuts and the outage."""
        self.world.note("store", "heal", host or "all")
        for cut in (self._deaf_to, self._mute_to):
            for healed in list(cut) if host is None else [host]:
                cut.pop(healed, None)
        if host is None:
            self.end_outage()

    def compact(self, keep: int = 0) -> None:
        """Forget the history but for the latest `keep` revisions: watches that are behind must list again."""
        oldest = max(self._compacted, self.revision - keep)
        for revision in range(self._compacted + 1, oldest + 1):
            del self._history[revision]
        self._compacted = oldest
        self.world.note("store", "compacted", oldest)

    def commit_elsewhere(self) -> None:
        """Another cluster that shares the store commits: the revision rises, and nobody here has events."""
        if self.down:
            return
        self._publish(self.revision + 1, [])
        self.world.after(MARK_S, self._mark, self.revision)

    def _mark(self, revision: int) -> None:
        """Some node writes a mark of progress, unless all have heard of something later meanwhile."""
        if any(self._history.get(later) for later in range(revision + 1, self.revision + 1)):
            return
        if self.down:
            self.world.after(MARK_S, self._mark, revision)
            return
        self.world.sometimes("mark of progress")
        self._publish(self.revision + 1, [Event(PROGRESS, None, self.revision + 1)])

    def _disturb(self, sessions: Sequence[StoreSession]) -> None:
        """Watches break, sooner or later, or hang."""
        for session in sessions:
            if self.chances.random() < self.faults.watch_broken:
                self.world.after(self.chances.uniform(0, self.faults.patience_s), session.break_watches)

    # --- what sessions ask

    def receives_from(self, host: str) -> bool:
        return not self.down and host not in self._deaf_to

    def reaches(self, host: str) -> bool:
        return not self.down and host not in self._mute_to

    def forget(self, session: StoreSession) -> None:
        self._sessions.pop(session, None)

    def get(self, key: str) -> StoreEntry | None:
        return self._entries.get(key)

    def list(self, prefix: str) -> Snapshot:
        keys = sorted((key for key in self._entries if key.startswith(prefix)), key=str.encode)
        return Snapshot([self._entries[key] for key in keys], self.revision)

    def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> int | None:
        _check_size(compares, operations)
        for operation in operations:
            if isinstance(operation, Put) and operation.lease != NO_LEASE:
                self._alive(operation.lease)
        for key, revision in compares:
            if (self._entries[key].revision if key in self._entries else ABSENT) != revision:
                for hear in self.refusals:
                    hear(key, operations)
                return None
        self._write(operations)
        return self.revision

    def events(self, revision: int) -> Events:
        """What one revision changed. Raises HistoryCompacted if that is forgotten."""
        self.check_kept(revision - 1)
        return self._history[revision]

    def check_kept(self, after: int) -> None:
        """Raise HistoryCompacted unless every revision after this one is kept."""
        if after < self._compacted:
            self.world.sometimes("history compacted")
            raise HistoryCompacted(
                f"Changes are kept from revision {self._compacted + 1} on, not {after + 1}."
            )

    def grant(self, ttl_ms: int) -> int:
        assert ttl_ms > 0
        self._last_lease += 1
        lease = self._leases[self._last_lease] = _Lease(ttl_ms / 1000, 0.0)
        self._give_time(lease)
        self.world.at(lease.ends_at, self._check_lease, self._last_lease)
        return self._last_lease

    def keep_alive(self, lease: int) -> None:
        self._give_time(self._alive(lease))

    def revoke(self, lease: int) -> None:
        if self._leases.pop(lease, None) is not None:
            self._write([Delete(key) for key in sorted(self._lease_of) if self._lease_of[key] == lease])

    def is_alive(self, lease: int) -> bool:
        """The lease has been granted and has not ended."""
        return lease in self._leases

    # --- commits and leases

    def _write(self, operations: Sequence[Operation]) -> None:
        revision = self.revision + 1
        events = [event for operation in operations if (event := self._do(operation, revision))]
        if not events:
            return
        self._publish(revision, events)
        if self.faults.neighbour and self._neighbours.random() < self.faults.neighbour:
            self.world.after(self._neighbours.uniform(0, MARK_S), self.commit_elsewhere)

    def _publish(self, revision: int, events: Events) -> None:
        self.revision = revision
        self._history[revision] = events
        changed = ", ".join(("" if event.value is not None else "-") + event.key for event in events)
        self.world.note("store", "commit", f"{revision}: {changed}")
        for observe in self.observers:
            observe(revision, events)
        for session in list(self._sessions):
            session.announce(revision)

    def _do(self, operation: Operation, revision: int) -> Event | None:
        key = operation.key
        if isinstance(operation, Put):
            self._entries[key] = StoreEntry(key, operation.value, revision)
            self._lease_of[key] = operation.lease
            return Event(key, operation.value, revision)
        self._lease_of.pop(key, None)
        return Event(key, None, revision) if self._entries.pop(key, None) else None

    def _alive(self, lease: int) -> _Lease:
        if lease not in self._leases:
            raise LeaseLost(f"Lease {lease} has ended.")
        return self._leases[lease]

    def _give_time(self, lease: _Lease) -> None:
        late_s = self._lease_ends.uniform(0, LEASE_CHECK_S)
        lease.ends_at = self.world.now + lease.ttl_s + late_s

    def _check_lease(self, number: int) -> None:
        lease = self._leases.get(number)
        if lease is None:
            return
        due = self.world.now + lease.ttl_s if self.down else lease.ends_at
        if due > self.world.now:
            self.world.at(due, self._check_lease, number)
            return
        self.world.sometimes("lease expired")
        self.world.note("store", "lease expired", number)
        self.revoke(number)


def _check_size(compares: Sequence[Compare], operations: Sequence[Operation]) -> None:
    """What etcd would refuse is a fault of the node."""
    assert len(operations) <= OPERATIONS_MAX, f"{len(operations)} operations in a commit"
    assert len(compares) <= OPERATIONS_MAX, f"{len(compares)} compares in a commit"
    size = sum(len(operation.value) for operation in operations if isinstance(operation, Put))
    assert size <= VALUE_BYTES_MAX, f"{size} bytes of values in a commit"
