"""The latest revisions' events, kept so that watches can be resumed. Pure and bounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from postroad.cluster.store import Event
from postroad.errors import HistoryCompacted

# A watch reads on at once unless its reader is stuck, so minutes of changes are plenty; whoever falls
# behind further lists again, which costs as much as a restart.
REVISIONS_MAX: Final = 10_000
BYTES_MAX: Final = 16 * 1024 * 1024


class History:
    """Revisions `compacted + 1` to `revision`, each with its events.

    H1 There is no gap: each revision follows the one before it.
    H2 At most `revisions_max` revisions and `bytes_max` bytes of values are kept; the newest always is.
    """

    def __init__(self, revision: int, revisions_max: int = REVISIONS_MAX, bytes_max: int = BYTES_MAX) -> None:
        self.revision = revision
        self.compacted = revision
        self._events: dict[int, Sequence[Event]] = {}
        self._bytes = 0
        self._revisions_max = revisions_max
        self._bytes_max = bytes_max

    def append(self, revision: int, events: Sequence[Event]) -> None:
        assert revision == self.revision + 1, f"revision {revision} after {self.revision}"
        self.revision = revision
        self._events[revision] = events
        self._bytes += _size(events)
        while len(self._events) > 1 and self._too_much():
            self.compacted += 1
            self._bytes -= _size(self._events.pop(self.compacted))

    def at(self, revision: int) -> Sequence[Event]:
        """The events of one revision up to the newest; raises HistoryCompacted if they are gone."""
        if revision <= self.compacted:
            raise HistoryCompacted(
                f"Changes are kept from revision {self.compacted + 1} on; {revision} was asked for."
            )
        return self._events[revision]

    def _too_much(self) -> bool:
        return len(self._events) > self._revisions_max or self._bytes > self._bytes_max


def _size(events: Sequence[Event]) -> int:
    return sum(len(event.value or b"") + len(event.key) for event in events)
