"""`Table`: disjoint ranges of offsets, ascending, each with a few integers, as arrays in chunks.

A row costs eight bytes for each of its integers and no Python object; a million rows stay within some tens
of megabytes. A chunk holds at most CHUNK_ROWS rows, so a row that comes or goes anywhere moves a few
kilobytes; finding one is two binary searches. Rows that arrive in the log's order fill their chunks.

    chunk   (firsts, lasts, values), arrays; a row has `width` values, one after another
    heads   the first offset of each chunk

T1 rows ascend and do not overlap. T2 `heads`, `rows` and `messages` say what the chunks hold; none is empty.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

CHUNK_ROWS: Final = 512

Chunk = tuple["array[int]", "array[int]", "array[int]"]
Row = tuple[int, ...]  # first, last, and the values


class Table:
    __slots__ = ("chunks", "heads", "messages", "rows", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.clear()

    def clear(self) -> None:
        self.heads: list[int] = []
        self.chunks: list[Chunk] = []
        self.rows = 0
        self.messages = 0

    def __len__(self) -> int:
        return self.rows

    def each(self) -> Iterator[Row]:
        """All rows, ascending. The table may change meanwhile: what comes or goes then is told or not."""
        at, row = 0, 0
        while at < len(self.chunks):
            chunk = self.chunks[at]
            last = chunk[1][-1]
            yield from self._slice(chunk, row, len(chunk[0]))
            at, row = self._seek(last + 1)

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
        if at == len(self.chunks):
            return None
        firsts, lasts, values = self.chunks[at]
        if firsts[row] > offset:
            return None
        begin = row * self.width
        return (firsts[row], lasts[row], *values[begin : begin + self.width])

    def contains(self, offset: int) -> bool:
        at, row = self._seek(offset)
        return at < len(self.chunks) and self.chunks[at][0][row] <= offset

    def next_first(self, offset: int) -> int | None:
        """Where the first row begins that ends at or behind this offset."""
        at, row = self._seek(offset)
        return self.chunks[at][0][row] if at < len(self.chunks) else None

    def overlapping(self, first: int, last: int) -> list[Row]:
        """The rows that have offsets in common with the range, whole."""
        found: list[Row] = []
        at, row = self._seek(first)
        while at < len(self.chunks) and self.heads[at] <= last:
            chunk = self.chunks[at]
            found.extend(self._slice(chunk, row, bisect_right(chunk[0], last)))
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
        found = []
        if self.rows:
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
            self._append(first, last, values)
            return
        at = max(bisect_right(self.heads, first) - 1, 0)
        firsts, lasts, others = self.chunks[at]
        row = bisect_right(firsts, first)
        firsts.insert(row, first)
        lasts.insert(row, last)
        begin = row * self.width
        others[begin:begin] = array("q", values)
        if not row:
            self.heads[at] = first
        if len(firsts) > CHUNK_ROWS:
            self._halve(at, row)

    def put(self, first: int, last: int, *values: int) -> None:
        """Like `insert`, but a neighbour that says the same grows instead."""
        if self.rows:
            before = self._pop_same(first - 1, values)
            after = self._pop_same(last + 1, values)
            first = first if before is None else before[0]
            last = last if after is None else after[1]
        self.insert(first, last, *values)

    def carve(self, first: int, last: int) -> list[Row]:
        """Takes the range out; what rows said of it is answered, cut to it. The rest of them stays."""
        at, row = self._seek(first)
        if at == len(self.chunks):
            return []
        firsts, lasts, _ = self.chunks[at]
        if firsts[row] < first:
            self.split(first)
            at, row = self._seek(first)
            firsts, lasts, _ = self.chunks[at]
        if firsts[row] == first and lasts[row] >= last:
            # The usual cases: what was acquired together is settled together, or one by one in order.
            return [self._pop(at, row) if lasts[row] == last else self._trim(at, row, last)]
        self.split(last + 1)
        return self._remove(first, last)

    def split(self, offset: int) -> Row | None:
        """No row begins below `offset` and goes on behind it. The part below, if there was one."""
        at, row = self._seek(offset)
        if at == len(self.chunks) or self.chunks[at][0][row] >= offset:
            return None
        below = self._trim(at, row, offset - 1)
        self.insert(*below)
        return below

    def drop_below(self, offset: int) -> list[Row]:
        if not self.heads or self.heads[0] >= offset:
            return []
        return self.carve(self.heads[0], offset - 1)

    # -- single rows and chunks ------------------------------------------------------------------------

    def _seek(self, offset: int) -> tuple[int, int]:
        """Where the first row lies that ends at or behind `offset`; (number of chunks, 0): nowhere."""
        at = bisect_right(self.heads, offset) - 1
        if at < 0:
            return 0, 0
        lasts = self.chunks[at][1]
        row = bisect_left(lasts, offset)
        return (at, row) if row < len(lasts) else (at + 1, 0)

    def _slice(self, chunk: Chunk, begin: int, end: int) -> Iterator[Row]:
        """Some of its rows, as they are now."""
        firsts, lasts, values = chunk
        width = self.width
        some = values[begin * width : end * width]
        return zip(
            firsts[begin:end], lasts[begin:end], *[some[at::width] for at in range(width)], strict=True
        )

    def _trim(self, at: int, row: int, last: int) -> Row:
        """Takes the beginning of a row, up to `last`."""
        firsts, _, values = self.chunks[at]
        first = firsts[row]
        firsts[row] = last + 1
        if not row:
            self.heads[at] = last + 1
        self.messages -= last - first + 1
        begin = row * self.width
        return (first, last, *values[begin : begin + self.width])

    def _pop(self, at: int, row: int) -> Row:
        """Takes a whole row."""
        firsts, lasts, values = self.chunks[at]
        begin = row * self.width
        end = begin + self.width
        popped = (firsts.pop(row), lasts.pop(row), *values[begin:end])
        del values[begin:end]
        if not firsts:
            del self.chunks[at], self.heads[at]
        elif not row:
            self.heads[at] = firsts[0]
        self.rows -= 1
        self.messages -= popped[1] - popped[0] + 1
        return popped

    def _pop_same(self, offset: int, values: tuple[int, ...]) -> Row | None:
        """Takes the row that holds this offset, if its values are these."""
        at, row = self._seek(offset)
        if at == len(self.chunks) or self.chunks[at][0][row] > offset:
            return None
        begin = row * self.width
        if tuple(self.chunks[at][2][begin : begin + self.width]) != values:
            return None
        return self._pop(at, row)

    def _remove(self, first: int, last: int) -> list[Row]:
        """Takes out the rows that lie in the range; none may reach over its ends."""
        found: list[Row] = []
        width = self.width
        at, row = self._seek(first)
        while at < len(self.chunks) and self.heads[at] <= last:
            firsts, lasts, values = chunk = self.chunks[at]
            end = bisect_right(lasts, last)
            found.extend(self._slice(chunk, row, end))
            del firsts[row:end], lasts[row:end], values[row * width : end * width]
            if not firsts:
                del self.chunks[at], self.heads[at]
                continue
            self.heads[at] = firsts[0]
            at, row = at + 1, 0
        self.rows -= len(found)
        self.messages -= sum([each[1] - each[0] + 1 for each in found])
        return found

    def _append(self, first: int, last: int, values: tuple[int, ...]) -> None:
        if self.chunks:
            firsts, lasts, others = self.chunks[-1]
            if len(firsts) < CHUNK_ROWS:
                firsts.append(first)
                lasts.append(last)
                others.extend(values)
                return
        self.heads.append(first)
        self.chunks.append((array("q", (first,)), array("q", (last,)), array("q", values)))

    def _halve(self, at: int, row: int) -> None:
        """Rows that come in descending order leave full chunks behind, too: they all arrive at row 0."""
        firsts, lasts, values = self.chunks[at]
        middle = 1 if row == 0 else len(firsts) // 2
        begin = middle * self.width
        self.chunks[at] = (firsts[:middle], lasts[:middle], values[:begin])
        self.chunks.insert(at + 1, (firsts[middle:], lasts[middle:], values[begin:]))
        self.heads.insert(at + 1, firsts[middle])

    def check(self) -> None:
        rows = list(self.each())
        assert all(row[0] <= row[1] for row in rows), "T1"
        assert all(a[1] < b[0] for a, b in pairwise(rows)), "T1"
        assert all(chunk[0] for chunk in self.chunks), "T2"
        assert self.heads == [chunk[0][0] for chunk in self.chunks], "T2"
        assert self.rows == len(rows), "T2"
        assert self.messages == sum(row[1] - row[0] + 1 for row in rows), "T2"
        assert all(len(chunk[2]) == len(chunk[0]) * self.width for chunk in self.chunks), "T2"
