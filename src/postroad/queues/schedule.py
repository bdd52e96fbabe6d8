"""`Schedule`: ranges of offsets, by the time at which something happens to them.

One mechanism serves delays, backoff and the ends of locks. Rows are sorted by time and, at the same time, by
last offset; they lie in arrays in chunks, 20 bytes each, so that a million delayed messages cost some 25 MB,
what is due stands at the front, and a row can be found again by its time and last offset. (A heap of tuples
would cost six times as much, and could not forget the lock that was settled in time.)

    chunk   [times, lasts, spans]: a row's first offset is last - span
    heads   (time, last) of each chunk's first row

D1 rows ascend by (time, last). D2 `heads`, `rows` and `messages` say what the chunks hold.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

CHUNK_ROWS: Final = 512

Chunk = tuple["array[int]", "array[int]", "array[int]"]


class Schedule:
    __slots__ = ("chunks", "heads", "messages", "rows")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.heads: list[tuple[int, int]] = []
        self.chunks: list[Chunk] = []
        self.rows = 0
        self.messages = 0

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """(time, first, last), in the order of time."""
        for times, lasts, spans in self.chunks:
            for time, last, span in zip(times, lasts, spans, strict=True):
                yield time, last - span, last

    @property
    def next_at(self) -> int | None:
        return self.heads[0][0] if self.heads else None

    def add(self, time: int, first: int, last: int) -> None:
        self.rows += 1
        self.messages += last - first + 1
        if self.chunks:
            times, lasts, spans = self.chunks[-1]
            latest = times[-1]
            if time < latest or (time == latest and last < lasts[-1]):
                self._insert(time, last, last - first)
                return
            if len(times) < CHUNK_ROWS:
                times.append(time)
                lasts.append(last)
                spans.append(last - first)
                return
        self.heads.append((time, last))
        self.chunks.append((array("q", (time,)), array("q", (last,)), array("I", (last - first,))))

    def load(self, times: array[int], lasts: array[int], spans: array[int]) -> None:
        """All at once, in the order in which this keeps them; it must be empty."""
        assert not self.rows, "loaded twice"
        for at in range(0, len(times), CHUNK_ROWS):
            rows = slice(at, at + CHUNK_ROWS)
            self.chunks.append((times[rows], lasts[rows], spans[rows]))
            self.heads.append((times[at], lasts[at]))
        self.rows = len(times)
        self.messages = sum(spans) + self.rows

    def remove(self, time: int, last: int) -> None:
        """Takes back one row, which must be there."""
        # The lock that is settled next is most often the one that would end next.
        at, row = (0, 0) if self.heads[0] == (time, last) else self._find(time, last)
        times, lasts, spans = self.chunks[at]
        assert (times[row], lasts[row]) == (time, last), "no such row"
        self.rows -= 1
        self.messages -= spans[row] + 1
        self._delete(at, row, row + 1)

    def take_due(self, now: int, rows_max: int) -> list[tuple[int, int]]:
        """Takes out the ranges whose time has come, so many rows at most, earliest first."""
        due: list[tuple[int, int]] = []
        while self.chunks and self.heads[0][0] <= now and len(due) < rows_max:
            times, lasts, spans = self.chunks[0]
            end = min(bisect_right(times, now), rows_max - len(due))
            due.extend(
                [(last - span, last) for last, span in zip(lasts[:end], spans[:end], strict=True)],
            )
            self._delete(0, 0, end)
        self.rows -= len(due)
        self.messages -= sum([last - first + 1 for first, last in due])
        return due

    def withdraw(self, first: int, last: int) -> int | None:
        """Takes out this range and answers its time, if all of it is here as one. Looks through all
        chunks."""
        for time, low, high in self.overlapping(first, last):
            if low <= first and last <= high:
                self.remove(time, high)
                for rest in ((low, first - 1), (last + 1, high)):
                    if rest[0] <= rest[1]:
                        self.add(time, *rest)
                return time
        return None

    def overlapping(self, first: int, last: int) -> list[tuple[int, int, int]]:
        """(time, first, last) of the rows with offsets in this range, ascending by offset.

        Looks through all chunks, since offsets are not what they are sorted by; those without any are
        passed over quickly.
        """
        found = []
        for times, lasts, spans in self.chunks:
            if max(lasts) < first or min(lasts) - max(spans) > last:
                continue
            for time, high, span in zip(times, lasts, spans, strict=True):
                if high >= first and high - span <= last:
                    found.append((time, high - span, high))
        return sorted(found, key=lambda row: row[1])

    def drop_below(self, offset: int) -> None:
        """Forgets the offsets below this one. Looks through all rows if there are any."""
        if all(min(lasts) - max(spans) >= offset for _, lasts, spans in self.chunks):
            return
        kept = [(time, max(first, offset), last) for time, first, last in self if last >= offset]
        self.clear()
        for row in kept:
            self.add(*row)

    def _insert(self, time: int, last: int, span: int) -> None:
        at, row = self._find(time, last)
        times, lasts, spans = self.chunks[at]
        times.insert(row, time)
        lasts.insert(row, last)
        spans.insert(row, span)
        if not row:
            self.heads[at] = (time, last)
        if len(times) > CHUNK_ROWS:
            self._halve(at)

    def _find(self, time: int, last: int) -> tuple[int, int]:
        """Chunk and row in front of which (time, last) belongs."""
        at = max(bisect_right(self.heads, (time, last)) - 1, 0)
        times, lasts, _ = self.chunks[at]
        low = bisect_left(times, time)
        return at, bisect_left(lasts, last, low, bisect_right(times, time, low))

    def _delete(self, at: int, begin: int, end: int) -> None:
        times, lasts, spans = self.chunks[at]
        if end - begin == len(times):
            del self.chunks[at], self.heads[at]
            return
        del times[begin:end], lasts[begin:end], spans[begin:end]
        if not begin:
            self.heads[at] = (times[0], lasts[0])

    def _halve(self, at: int) -> None:
        times, lasts, spans = self.chunks[at]
        middle = len(times) // 2
        self.chunks[at] = (times[:middle], lasts[:middle], spans[:middle])
        self.chunks.insert(at + 1, (times[middle:], lasts[middle:], spans[middle:]))
        self.heads.insert(at + 1, (times[middle], lasts[middle]))

    def check(self) -> None:
        rows = list(self)
        order = [(time, last) for time, _, last in rows]
        assert order == sorted(order), "D1"
        assert self.heads == [(chunk[0][0], chunk[1][0]) for chunk in self.chunks], "D2"
        assert self.rows == len(rows), "D2"
        assert self.messages == sum(last - first + 1 for _, first, last in rows), "D2"
