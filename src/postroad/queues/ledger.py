"""`Ledger`: what must survive of one share partition, and how updates change it.

An offset only ever climbs: nothing → released (delivered so often) → dying → done. `apply` raises each
offset to the higher of what it is and what the update says, so updates may repeat, and a snapshot may come
behind updates that it does not know of. Everything below `start` is done and costs nothing. A released offset
may be pledged to a transaction, until that ends (`pledges`).

G1 `done` lies above `start` and does not touch it: the start is the first offset that is not done (S6).
G2 an offset is in at most one of `done`, `attempts` and `dying`, and not below `start`.
G3 what is pledged is neither done nor dying, and not below `start`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from postroad.queues.acknowledgement import Run
from postroad.queues.pledges import Pledges
from postroad.queues.ranges import RangeSet
from postroad.queues.table import Row, Table
from postroad.queues.update import Dying, Ended, Key, Pledged, Reason, Released, Update

SNAPSHOT_RANGES_MAX: Final = 20_000  # in one record: some hundred kilobytes
TEXTS_SPARED: Final = 100  # of which no row speaks any more; they are looked for when there are more

_REASONS: Final = tuple(Reason)


class Attempts(Table):
    """Released messages: deliveries, first_ms, last_ms."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(3)

    def __iter__(self) -> Iterator[Released]:
        return map(Released._make, self.each())

    def merge(self, first: int, last: int, *values: int) -> None:
        """Whoever knows of more deliveries is right."""
        known = self.carve(first, last) if self.rows else []
        for old in known:
            if first < old[0]:
                self.put(first, old[0] - 1, *values)
            self.put(old[0], old[1], *max(old[2:], values))
            first = old[1] + 1
        if first <= last:
            self.put(first, last, *values)


class Graveyard(Table):
    """Dying messages: reason (its index in `Reason`), deliveries, first_ms, last_ms, text (its number)."""

    __slots__ = ("_next_number", "_numbers", "_texts")

    def __init__(self) -> None:
        super().__init__(5)
        self._texts: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._next_number = 1  # 0: no text; none is given twice, for who goes through the rows may lag behind

    def __iter__(self) -> Iterator[Dying]:
        for row in self.each():
            yield self._as_dying(row)

    def bury(self, dying: Dying, first: int, last: int) -> None:
        _, _, reason, *counts, text = dying
        self.put(first, last, _REASONS.index(reason), *counts, self._number(text) if text else 0)

    def _number(self, text: str) -> int:
        known = self._numbers.get(text)
        if known is not None:
            return known
        if len(self._texts) > 2 * self.rows + TEXTS_SPARED:
            self._drop_texts()
        number = self._numbers[text] = self._next_number
        self._texts[number] = text
        self._next_number += 1
        return number

    def _drop_texts(self) -> None:
        """Forget those of which no row speaks any more."""
        spoken_of = {row[-1] for row in self.each()}
        self._texts = {number: text for number, text in self._texts.items() if number in spoken_of}
        self._numbers = {text: number for number, text in self._texts.items()}

    def _as_dying(self, row: Row) -> Dying:
        first, last, reason, deliveries, first_ms, last_ms, number = row
        text = self._texts.get(number, "")  # one that is forgotten is of messages that are done meanwhile
        return Dying(first, last, _REASONS[reason], deliveries, first_ms, last_ms, text)


class Ledger:
    def __init__(self, key: Key) -> None:
        self.key = key
        self.generation = 0
        self.start = 0
        self.done = RangeSet()
        self.attempts = Attempts()
        self.dying = Graveyard()
        self.pledges = Pledges()

    def apply(self, update: Update) -> None:
        """The only thing that changes a ledger, live and on recovery.

        An update of an older generation is passed over, and so is one of a newer generation whose beginning
        was not seen: what it says can't be placed.
        """
        if update.generation != self.generation:
            if update.generation < self.generation or not update.begins:
                return
            self._begin(update)
        if update.start is not None:
            self._raise_start(update.start)
        for first, last in update.done:
            self._finish(first, last)
        for dying in update.dying:
            self._archive(dying)
        for released in update.released:
            self._release(released)
        for ended in update.ended:
            self.pledges.end(ended)
        for pledged in update.pledged:
            self._pledge(pledged)

    def snapshot(self) -> Update:
        """All of it as one update."""
        ranges = len(self.done) + len(self.attempts) + len(self.dying) + len(self.pledges)
        (update,) = self.snapshots(ranges_max=ranges + 1)
        return update

    def snapshots(self, ranges_max: int = SNAPSHOT_RANGES_MAX) -> Iterator[Update]:
        """All of it, in updates of at most so many ranges. In any order, or twice, they say the same.

        The ledger may change between them: with the updates that it takes meanwhile they tell all of it."""
        generation, start = self.generation, self.start
        done, released, dying = iter(self.done), iter(self.attempts), iter(self.dying)
        pledged = iter(self.pledges)
        ended = [Ended(*each) for each in self.pledges.ended.items()]
        first = True
        while True:
            some_done = list(islice(done, ranges_max))
            some_released = list(islice(released, ranges_max - len(some_done)))
            some_dying = list(islice(dying, ranges_max - len(some_done) - len(some_released)))
            told = len(some_done) + len(some_released) + len(some_dying)
            some_pledged = list(islice(pledged, ranges_max - told))
            if not (first or told or some_pledged):
                return
            yield Update(
                generation,
                start,
                some_done,
                some_released,
                some_dying,
                pledged=some_pledged,
                ended=ended if first else [],
            )
            first = False

    def ending_at(self, end: int) -> Update | None:
        """The log ends here: what makes the ledger forget the offsets behind, so that messages which get them
        anew are new. None if it knows of none."""
        lasts = (table.last for table in (self.done, self.attempts, self.dying, self.pledges))
        known_to = max(self.start, *(0 if last is None else last + 1 for last in lasts))
        return Update(self.generation + 1, end=end) if known_to > end else None

    def _begin(self, update: Update) -> None:
        self.generation = update.generation
        kept_below = update.end or 0
        self.start = min(self.start, kept_below) if update.start is None else update.start
        for table in (self.done, self.attempts, self.dying, self.pledges):
            if table.last is not None:
                table.carve(kept_below, table.last)

    def _raise_start(self, start: int) -> None:
        if start <= self.start:
            return
        if self.done.rows:
            start = self.done.first_missing(start)
            self.done.drop_below(start)
        self.start = start
        if self.attempts.rows:
            self.attempts.drop_below(start)
        if self.dying.rows:
            self.dying.drop_below(start)
        if self.pledges.rows:
            self.pledges.drop_below(start)

    def _finish(self, first: int, last: int) -> None:
        if first <= self.start:
            self._raise_start(last + 1)
            return
        self.done.add(first, last)
        if self.attempts.rows:
            self.attempts.carve(first, last)
        if self.dying.rows:
            self.dying.carve(first, last)
        if self.pledges.rows:
            self.pledges.carve(first, last)

    def _archive(self, dying: Dying) -> None:
        for first, last in self._not_done(dying.first, dying.last):
            for low, high in self.dying.missing(first, last):
                self.attempts.carve(low, high)
                self.dying.bury(dying, low, high)
                if self.pledges.rows:
                    self.pledges.carve(low, high)

    def _release(self, released: Released) -> None:
        for first, last in self._not_done(released.first, released.last):
            for low, high in self.dying.missing(first, last):
                self.attempts.merge(low, high, *released[2:])

    def _pledge(self, pledged: Pledged) -> None:
        for first, last in self._not_done(pledged.first, pledged.last):
            for low, high in self.dying.missing(first, last):
                self.pledges.add(pledged, low, high)

    def _not_done(self, first: int, last: int) -> list[tuple[int, int]]:
        return self.done.missing(max(first, self.start), last)

    def undone(self, runs: list[Run]) -> list[Run]:
        """What of these acknowledgements is of messages that are not done."""
        return [(low, high, kind) for first, last, kind in runs for low, high in self._not_done(first, last)]

    def check(self) -> None:
        for table in (self.done, self.attempts, self.dying):
            table.check()
            assert table.first is None or table.first >= self.start, "G2"
        assert self.done.first is None or self.done.first > self.start, "G1"
        for table in (self.attempts, self.dying):
            for row in table.each():
                assert self.done.missing(row[0], row[1]) == [(row[0], row[1])], "G2"
        for row in self.attempts.each():
            assert self.dying.missing(row[0], row[1]) == [(row[0], row[1])], "G2"
        self.pledges.check()
        for row in self.pledges.each():
            assert row[0] >= self.start, "G3"
            assert not self.done.cut(row[0], row[1]), "G3"
            assert not self.dying.cut(row[0], row[1]), "G3"
