"""Which bytes of a file are known to be good: a short list of ranges that do not touch."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

RANGES_MAX: Final = 64  # readers that jump about; beyond it the shortest is forgotten and checked again


class Ranges:
    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def cover(self, start: int, end: int) -> bool:
        """Whether all of [start, end) is in here."""
        i = bisect_right(self._starts, start) - 1
        return i >= 0 and end <= self._ends[i]

    def add(self, start: int, end: int) -> None:
        first = bisect_left(self._ends, start)  # the first range that ends at or after it
        after = bisect_right(self._starts, end)  # the first one that begins beyond it
        if first < after:
            start, end = min(start, self._starts[first]), max(end, self._ends[after - 1])
        self._starts[first:after] = [start]
        self._ends[first:after] = [end]
        if len(self._starts) > RANGES_MAX:
            self._forget_shortest()

    def cut(self, end: int) -> None:
        """Nothing at or above `end` is known any more."""
        count = bisect_left(self._starts, end)
        del self._starts[count:], self._ends[count:]
        if count and self._ends[-1] > end:
            self._ends[-1] = end

    def _forget_shortest(self) -> None:
        lengths = [end - start for start, end in zip(self._starts, self._ends, strict=True)]
        i = lengths.index(min(lengths))
        del self._starts[i], self._ends[i]
