"""`Table`: disjoint ranges of offsets, ascending, each with a few integers, as arrays in chunks.

A row costs eight bytes for each column and no Python object; a million rows stay within some tens of
megabytes. A chunk holds at most CHUNK_ROWS rows, so a row that comes or goes anywhere moves a few kilobytes;
finding one is two binary searches. Rows that arrive in the log's order fill their chunks to the brim.

    chunk   [firsts, lasts, column, …], each an array of the same length, never empty
    heads   the first offset of each chunk

T1 rows ascend and do not overlap. T2 `heads`, `rows` and `messages` say what the chunks hold.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

CHUNK_ROWS: Final = 512

Row = tuple[int, ...]  # first, last, and a value for each column


class Table:
    __slots__ = ("chunks", "heads", "messages", "rows", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.clear()

    def clear(self) -> None:
        self.heads: list[int] = []
        self.chunks: list[list[array[int]]] = []
        self.rows = 0
        self.messages = 0

    def __len__(self) -> int:
        return self.rows

    def each(self) -> Iterator[Row]:
        """All rows, ascending. The table must not change meanwhile."""
        for chunk in self.chunks:
            yield from zip(*chunk, strict=True)

    # -- looking ---------------------------------------------------------------------------------------

    @property
    def first(self) -> int | None:
        return self.heads[0] if self.heads else None

    @property
    def last(self) -> int | None:
        return self.chunks[-1][1][-1] if self.chunks else None

    def find(self, offset: int) -> Row | None:
        """The row that holds this offset."""
        at, row = self._seek(offset)
        if at == len(self.chunks) or self.chunks[at][0][row] > offset:
            return None
        return tuple([column[row] for column in self.chunks[at]])

    def contains(self, offset: int) -> bool:
        at, row = self._seek(offset)
        return at < len(self.chunks) and self.chunks[at][0][row] <= offset

    def next_first(self, offset: int) -> int | None:
        """Where the first row behind this offset begins."""
        at, row = self._seek(offset)
        return self.chunks[at][0][row] if at < len(self.chunks) else None

    def overlapping(self, first: int, last: int) -> list[Row]:
        """The rows that have offsets in common with the range, whole."""
        found: list[Row] = []
        at, row = self._seek(first)
        while at < len(self.chunks) and self.heads[at] <= last:
            chunk = self.chunks[at]
            end = bisect_right(chunk[0], last)
            found.extend(zip(*[column[row:end] for column in chunk], strict=True))
            at, row = at + 1, 0
        return found

    def cut(self, first: int, last: int) -> list[Row]:
        """What the rows say of the range: as `overlapping`, but cut to it."""
        if not self.rows:
            return []
        found = self.overlapping(first, last)
        if found and found[0][0] < first:
            found[0] = (first, *found[0][1:])
        if found and found[-1][1] > last:
            found[-1] = (found[-1][0], last, *found[-1][2:])
        return found

    def missing(self, first: int, last: int) -> list[tuple[int, int]]:
        """The parts of the range that no row holds."""
        if not self.rows:
            return [(first, last)] if first <= last else []
        found = []
        for row in self.overlapping(first, last):
            if first < row[0]:
                found.append((first, row[0] - 1))
            first = row[1] + 1
        if first <= last:
            found.append((first, last))
        return found

    def pieces(self, first: int, last: int) -> list[Row]:
        """The whole range, cut where what the rows say changes; zeros stand for nothing."""
        zeros = (0,) * self.width
        found: list[Row] = []
        for row in self.cut(first, last):
            if first < row[0]:
                found.append((first, row[0] - 1, *zeros))
            found.append(row)
            first = row[1] + 1
        if first <= last:
            found.append((first, last, *zeros))
        return found

    # -- changing --------------------------------------------------------------------------------------

    def insert(self, first: int, last: int, *values: int) -> None:
        """A row that overlaps no other."""
        self.rows += 1
        self.messages += last - first + 1
        if not self.chunks or first > self.chunks[-1][1][-1]:
            self._append((first, last, *values))
            return
        at = max(bisect_right(self.heads, first) - 1, 0)
        chunk = self.chunks[at]
        row = bisect_right(chunk[0], first)
        for column, value in zip(chunk, (first, last, *values), strict=True):
            column.insert(row, value)
        if not row:
            self.heads[at] = first
        if len(chunk[0]) > CHUNK_ROWS:
            self._halve(at, row)

    def put(self, first: int, last: int, *values: int) -> None:
        """Like `insert`, but a neighbour that says the same grows instead."""
        before = self.carve_same(first - 1, values) if self.rows else None
        after = self.carve_same(last + 1, values) if self.rows else None
        self.insert(before[0] if before else first, after[1] if after else last, *values)

    def carve_same(self, offset: int, values: tuple[int, ...]) -> Row | None:
        """Takes out the row that holds this offset, if its values are these."""
        row = self.find(offset)
        if row is None or row[2:] != values:
            return None
        self._remove(row[0], row[1])
        return row

    def carve(self, first: int, last: int) -> list[Row]:
        """Takes the range out; what rows said of it is answered, cut to it. The rest of them stays."""
        at, row = self._seek(first)
        if at == len(self.chunks):
            return []
        chunk = self.chunks[at]
        if chunk[0][row] == first and chunk[1][row] > last:
            # The usual case, messages that are settled one by one in their order: a boundary moves.
            values = [column[row] for column in chunk]
            chunk[0][row] = last + 1
            if not row:
                self.heads[at] = last + 1
            self.messages -= last - first + 1
            values[1] = last
            return [tuple(values)]
        self.split(first)
        self.split(last + 1)
        return self._remove(first, last)

    def split(self, offset: int) -> Row | None:
        """No row begins below `offset` and goes on behind it. The part below, if there was one."""
        at, row = self._seek(offset)
        if at == len(self.chunks):
            return None
        chunk = self.chunks[at]
        first = chunk[0][row]
        if first >= offset:
            return None
        below = (first, offset - 1, *[column[row] for column in chunk[2:]])
        chunk[0][row] = offset
        if not row:
            self.heads[at] = offset
        self.messages -= offset - first
        self.insert(*below)
        return below

    def drop_below(self, offset: int) -> list[Row]:
        if not self.heads or self.heads[0] >= offset:
            return []
        return self.carve(self.heads[0], offset - 1)

    def _remove(self, first: int, last: int) -> list[Row]:
        """Takes out the rows that lie in the range; none may reach over its ends."""
        found: list[Row] = []
        at, row = self._seek(first)
        while at < len(self.chunks) and self.heads[at] <= last:
            chunk = self.chunks[at]
            end = bisect_right(chunk[1], last)
            found.extend(zip(*[column[row:end] for column in chunk], strict=True))
            if row == 0 and end == len(chunk[0]):
                del self.chunks[at], self.heads[at]
                continue
            for column in chunk:
                del column[row:end]
            if row == 0:
                self.heads[at] = chunk[0][0]
            at, row = at + 1, 0
        self.rows -= len(found)
        self.messages -= sum([each[1] - each[0] + 1 for each in found])
        return found

    # -- chunks ----------------------------------------------------------------------------------------

    def _seek(self, offset: int) -> tuple[int, int]:
        """Where the first row lies that ends at or behind `offset`; (number of chunks, 0): nowhere."""
        at = bisect_right(self.heads, offset) - 1
        if at < 0:
            return 0, 0
        lasts = self.chunks[at][1]
        row = bisect_left(lasts, offset)
        return (at, row) if row < len(lasts) else (at + 1, 0)

    def _append(self, row: Row) -> None:
        if not self.chunks or len(self.chunks[-1][0]) >= CHUNK_ROWS:
            self.heads.append(row[0])
            self.chunks.append([array("q", (value,)) for value in row])
            return
        for column, value in zip(self.chunks[-1], row, strict=True):
            column.append(value)

    def _halve(self, at: int, row: int) -> None:
        """Rows that come in descending order leave full chunks behind, too: they all arrive at row 0."""
        chunk = self.chunks[at]
        middle = 1 if row == 0 else len(chunk[0]) // 2
        upper = [column[middle:] for column in chunk]
        self.chunks[at] = [column[:middle] for column in chunk]
        self.chunks.insert(at + 1, upper)
        self.heads.insert(at + 1, upper[0][0])

    def check(self) -> None:
        rows = list(self.each())
        assert all(row[0] <= row[1] for row in rows), "T1"
        assert all(a[1] < b[0] for a, b in pairwise(rows)), "T1"
        assert self.heads == [chunk[0][0] for chunk in self.chunks], "T2"
        assert self.rows == len(rows), "T2"
        assert self.messages == sum(row[1] - row[0] + 1 for row in rows), "T2"
        assert all(len(chunk) == self.width + 2 for chunk in self.chunks), "T2"
