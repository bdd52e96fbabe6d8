"""`RangeSet`: a set of offsets, as ranges that neither overlap nor touch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import cast

from postroad.queues.table import Table


class RangeSet(Table):
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(0)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return cast("Iterator[tuple[int, int]]", self.each())  # rows without values

    def add(self, first: int, last: int) -> None:
        """Afterwards the set holds all of the range, whatever it held of it before."""
        at, row = self._seek(first - 1)
        if at == len(self.chunks) or self.chunks[at][0][row] > last + 1:
            self.insert(first, last)
            return
        firsts, lasts, _ = self.chunks[at]
        low, high = firsts[row], lasts[row]
        self.messages -= high - low + 1
        low, high = min(low, first), max(high, last)
        while (beyond := self._touched(at, row, high)) is not None:
            high = max(high, self._pop(*beyond)[1])
        firsts[row], lasts[row] = low, high
        if not row:
            self.heads[at] = low
        self.messages += high - low + 1

    def take(self, count: int, upto: int | None = None) -> list[tuple[int, int]]:
        """Takes out the lowest offsets, `count` at most, all of them below `upto`."""
        taken: list[tuple[int, int]] = []
        while count > 0 and self.chunks:
            firsts, lasts, _ = self.chunks[0]
            first, end = firsts[0], lasts[0]
            last = end if upto is None else min(end, upto - 1)
            last = min(last, first + count - 1)
            if last < first:
                break
            if last == end:
                self._pop(0, 0)
            else:
                firsts[0] = self.heads[0] = last + 1
                self.messages -= last - first + 1
            taken.append((first, last))
            count -= last - first + 1
        return taken

    def first_missing(self, offset: int) -> int:
        """The lowest offset from this one on that is not in the set."""
        row = self.find(offset)
        return offset if row is None else row[1] + 1

    def around(self, first: int, last: int) -> tuple[int, int]:
        """The range, and what the set holds directly before and behind it."""
        below, above = self.find(first - 1), self.find(last + 1)
        return (first if below is None else below[0]), (last if above is None else above[1])

    def _touched(self, at: int, row: int, last: int) -> tuple[int, int] | None:
        """Where the row behind this one lies, if a range up to `last` overlaps or touches it."""
        firsts = self.chunks[at][0]
        if row + 1 < len(firsts):
            return (at, row + 1) if firsts[row + 1] <= last + 1 else None
        if at + 1 < len(self.heads) and self.heads[at + 1] <= last + 1:
            return at + 1, 0
        return None

    def check(self) -> None:
        super().check()
        ranges = list(self)
        assert all(a[1] + 1 < b[0] for a, b in pairwise(ranges)), "ranges touch"
