"""`Locks`: who holds which messages, until when (S2).

A row is made by each acquisition and split only where its messages part ways. In the schedule of ends a row
is known by its end and its *last* offset: messages that are settled in their order move the row's first
offset only, and cost the schedule nothing until the last one is gone.

K1 each row has exactly one entry in `ends`, and the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from postroad.queues.schedule import Schedule
from postroad.queues.table import Row, Table

WIDTH: Final = 6
UNTIL, MEMBER, DELIVERIES, FIRST_MS, LAST_MS, TENANT = range(2, 8)


class Locks(Table):
    """Values: until (monotonic ms), member, deliveries (this one counted), first_ms, last_ms, tenant."""

    __slots__ = ("ends",)

    def __init__(self) -> None:
        self.ends = Schedule()
        super().__init__(WIDTH)

    def clear(self) -> None:
        super().clear()
        self.ends.clear()

    def hold(self, row: Row) -> None:
        self.insert(*row)
        self.ends.add(row[UNTIL], row[1], row[1])

    def held_by(self, member: int, first: int, last: int, now_ms: int) -> bool:
        """Whether this member holds all of the range, and no lock on it has ended."""
        while first <= last:
            at, row = self._seek(first)
            if at == len(self.chunks):
                return False
            firsts, lasts, values = self.chunks[at]
            begin = row * WIDTH - 2
            if firsts[row] > first or values[begin + MEMBER] != member or values[begin + UNTIL] <= now_ms:
                return False
            first = lasts[row] + 1
        return True

    def renew(self, first: int, last: int, until: int) -> None:
        for row in self.carve(first, last):
            self.hold((*row[:UNTIL], until, *row[MEMBER:]))

    def take_ended(self, now_ms: int, rows_max: int) -> list[Row]:
        """Takes out the rows whose lock has ended."""
        ended: list[Row] = []
        for _, last in self.ends.take_due(now_ms, rows_max):
            row = self.find(last)
            assert row is not None, "K1"
            ended.extend(super()._remove(row[0], row[1]))
        return ended

    def of_member(self, member: int) -> list[Row]:
        found: list[Row] = []
        for chunk in self.chunks:
            if member in chunk[2][MEMBER - 2 :: WIDTH]:
                rows = self._slice(chunk, 0, len(chunk[0]))
                found.extend([row for row in rows if row[MEMBER] == member])
        return found

    def values_of(self, index: int) -> Iterator[int]:
        for _, _, values in self.chunks:
            yield from values[index - 2 :: WIDTH]

    def split(self, offset: int) -> Row | None:
        below = super().split(offset)
        if below is not None:
            self.ends.add(below[UNTIL], below[1], below[1])
        return below

    def _pop(self, at: int, row: int) -> Row:
        values = super()._pop(at, row)
        self.ends.remove(values[UNTIL], values[1])
        return values

    def _remove(self, first: int, last: int) -> list[Row]:
        rows = super()._remove(first, last)
        for row in rows:
            self.ends.remove(row[UNTIL], row[1])
        return rows

    def check(self) -> None:
        super().check()
        self.ends.check()
        assert sorted((row[UNTIL], row[1]) for row in self.each()) == [
            (at, last) for at, _, last in self.ends
        ]
