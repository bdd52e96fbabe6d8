"""`Duplicates`: which messages of a partition say the same as one shortly before, by the ids they carry.

The first message with an id counts; one with the same id within the window of its timestamp is a duplicate,
which neither counts nor makes the window longer. So what is a duplicate follows from the log alone, and is
decided alike by whoever reads it again, from far enough back (`lookback`). Reading begins somewhere, though,
and the first message that is met there may be a duplicate itself, whose first lies further back. Whoever
repeats an id without a pause may leave that open; when in doubt a message is delivered.

X1 a duplicate's first is a message before it, less than a window away, that is no duplicate.
X2 no more than `ids_max` ids are known: the oldest are forgotten, and repeated ones delivered.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

IDS_MAX: Final = 500_000  # some 300 bytes each
FORGOTTEN_AT_ONCE: Final = 2  # for each that comes, so that a single odd timestamp makes nobody forgotten

_IN_DOUBT: Final = -1  # instead of an offset: this one may be a duplicate itself


class Duplicates:
    def __init__(self, window_ms: int, ids_max: int = IDS_MAX) -> None:
        self.window_ms = window_ms
        self.upto: int | None = None  # what lies below is known; None: nothing yet
        self._ids_max = ids_max
        self._sure_from_ms: int | None = None
        self._firsts: OrderedDict[bytes, tuple[int, int]] = OrderedDict()  # id: offset and time of the first

    def __len__(self) -> int:
        return len(self._firsts)

    def begin(self, offset: int, since_ms: int | None) -> None:
        """From here on messages are told of; any older than `since_ms` may have been before it.

        None: there were none.
        """
        self._firsts.clear()
        self.upto = offset
        self._sure_from_ms = None if since_ms is None else since_ms + self.window_ms

    def remember(self, identity: bytes, offset: int, timestamp: int) -> None:
        """A message that lies before those that are decided about."""
        first = self._first_of(identity, timestamp)
        doubtful = self._sure_from_ms is not None and timestamp < self._sure_from_ms
        if first is None:
            self._add(identity, _IN_DOUBT if doubtful else offset, timestamp)
        elif first == _IN_DOUBT:  # either of the two may be what later ones repeat
            self._add(identity, _IN_DOUBT, timestamp)

    def is_duplicate(self, identity: bytes, offset: int, timestamp: int) -> bool:
        """Told of every message with an id, in the log's order. One that is told twice repeats nobody."""
        first = self._first_of(identity, timestamp)
        if first is None or first == _IN_DOUBT:
            self._add(identity, offset, timestamp)
            return False
        return first < offset

    def _first_of(self, identity: bytes, timestamp: int) -> int | None:
        """The offset of the first message with this id, if it is less than a window away."""
        found = self._firsts.get(identity)
        return found[0] if found is not None and self._is_near(found[1], timestamp) else None

    def _is_near(self, one_ms: int, other_ms: int) -> bool:
        """In both directions: publishers' clocks differ, and one that is wrong must not count for ever."""
        return abs(one_ms - other_ms) < self.window_ms

    def _add(self, identity: bytes, offset: int, timestamp: int) -> None:
        firsts = self._firsts
        firsts[identity] = (offset, timestamp)
        firsts.move_to_end(identity)
        for _ in range(FORGOTTEN_AT_ONCE):
            oldest = next(iter(firsts))
            if self._is_near(firsts[oldest][1], timestamp) and len(firsts) <= self._ids_max:
                break
            del firsts[oldest]
