"""Deadlines by key: a heap whose entries may be out of date, and a dict that is right.

Moving a deadline later (each heartbeat does) is one dict write: the old heap entry stays, and when it comes
up it is pushed again with the time that the dict says. So the heap holds about one entry for each key,
whatever the traffic.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple


class Key(NamedTuple):
    """Names a deadline: its group, what it is for, and the member (empty: the group as a whole)."""

    group_id: str
    what: str
    member_id: str


class Deadlines:
    """All deadlines of one coordinator. Soft state: after a restart they are set anew."""

    def __init__(self) -> None:
        self._at: dict[Key, int] = {}
        self._queued: dict[Key, int] = {}  # the earliest heap entry of each key
        self._heap: list[tuple[int, Key]] = []
        self._ripe: dict[str, list[Key]] = {}  # taken from the heap by `due`, not yet handled

    def __len__(self) -> int:
        """Queued entries, those that are out of date included."""
        return len(self._heap)

    def set(self, key: Key, at_ms: int) -> None:
        self._at[key] = at_ms
        queued = self._queued.get(key)
        if queued is None or at_ms < queued:
            self._push(key, at_ms)

    def get(self, key: Key) -> int | None:
        return self._at.get(key)

    def cancel(self, key: Key) -> None:
        self._at.pop(key, None)

    def next(self) -> int | None:
        """The earliest deadline that has not been handed out by `due`; None if there is none."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> list[str]:
        """The groups in which something has come due since the last call; each must then be asked with
        `take`."""
        groups: dict[str, None] = {}
        while True:
            self._drop_stale()
            if not self._heap or self._heap[0][0] > now_ms:
                return list(groups)
            _, key = heappop(self._heap)
            self._queued.pop(key, None)
            self._ripe.setdefault(key.group_id, []).append(key)
            groups[key.group_id] = None

    def take(self, group_id: str, now_ms: int) -> list[Key]:
        """Take the deadlines of a group that have passed. One that was moved since `due` saw it is queued
        again."""
        taken = []
        for key in self._ripe.pop(group_id, ()):
            at_ms = self._at.get(key)
            if at_ms is None:
                continue
            if at_ms > now_ms:
                self.set(key, at_ms)
                continue
            del self._at[key]
            taken.append(key)
        return taken

    def _drop_stale(self) -> None:
        """Bring an entry to the top of the heap that the dict agrees with."""
        heap = self._heap
        while heap:
            queued_ms, key = heap[0]
            at_ms = self._at.get(key)
            if at_ms == queued_ms and self._queued.get(key) == queued_ms:
                return
            heappop(heap)
            if self._queued.get(key) == queued_ms:
                del self._queued[key]
                if at_ms is not None:
                    self._push(key, at_ms)

    def _push(self, key: Key, at_ms: int) -> None:
        self._queued[key] = at_ms
        heappush(self._heap, (at_ms, key))


class Timers:
    """The deadlines of one group."""

    __slots__ = ("_deadlines", "_group_id")

    def __init__(self, deadlines: Deadlines, group_id: str) -> None:
        self._deadlines = deadlines
        self._group_id = group_id

    def set(self, what: str, at_ms: int, member_id: str = "") -> None:
        self._deadlines.set(Key(self._group_id, what, member_id), at_ms)

    def get(self, what: str, member_id: str = "") -> int | None:
        return self._deadlines.get(Key(self._group_id, what, member_id))

    def cancel(self, what: str, member_id: str = "") -> None:
        self._deadlines.cancel(Key(self._group_id, what, member_id))
