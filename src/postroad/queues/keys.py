"""`Lanes`: messages that must go one after another, by key. Strict order of a partition is one lane for all.

The head of a lane is the message that is available, delayed, in flight or being settled; the others of its
key wait in line behind it, and take its place one by one when it is done or archived.

N1 a key with a line has a head. N2 a line ascends and lies behind its head. N3 `waiting` and `entries` count
the messages and ranges in all lines, `with_line` the keys that have one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

WHOLE_PARTITION: Final = b""  # the key that all messages share where the order is the partition's
LINE_WEIGHT: Final = 10  # a line costs as much as so many ranges in it


class Line:
    """Ranges of offsets, first in, first out: an array of pairs, of which the first ones are used up."""

    __slots__ = ("pairs", "used")

    def __init__(self) -> None:
        self.pairs: array[int] = array("q")
        self.used = 0

    def __len__(self) -> int:
        return (len(self.pairs) - self.used) // 2

    def __iter__(self) -> Iterator[tuple[int, int]]:
        pairs = self.pairs
        for at in range(self.used, len(pairs), 2):
            yield pairs[at], pairs[at + 1]

    def append(self, first: int, last: int) -> None:
        if self.pairs and self.pairs[-1] + 1 == first:
            self.pairs[-1] = last
        else:
            self.pairs.extend((first, last))

    def pop(self) -> int:
        pairs, at = self.pairs, self.used
        first = pairs[at]
        if first < pairs[at + 1]:
            pairs[at] = first + 1
            return first
        self.used = at + 2
        if self.used * 2 > len(pairs):
            del pairs[: self.used]
            self.used = 0
        return first

    def drop_below(self, offset: int) -> int:
        """How many messages that were. Only these are looked at: a line may be long."""
        pairs, used = self.pairs, self.used
        ranges = range(used, len(pairs), 2)
        whole = bisect_left(ranges, offset, key=lambda at: pairs[at + 1])
        end = used + 2 * whole
        dropped = sum(pairs[used + 1 : end : 2]) - sum(pairs[used:end:2]) + whole
        del pairs[:end]
        self.used = 0
        if pairs and pairs[0] < offset:
            dropped += offset - pairs[0]
            pairs[0] = offset
        return dropped


class Lanes:
    def __init__(self) -> None:
        self.heads: dict[int, bytes] = {}  # the offset at the head of a lane: its key
        self.lines: dict[bytes, Line | None] = {}  # for each key with a head; None: nothing waits
        self.waiting = 0
        self.entries = 0
        self.with_line = 0

    @property
    def weight(self) -> int:
        """What the lines cost, in ranges."""
        return self.entries + LINE_WEIGHT * self.with_line

    def join(self, first: int, last: int, key: bytes) -> int | None:
        """The range comes last in its lane. The offset that heads it now, if it was empty."""
        head = None
        if key not in self.lines:
            self.heads[first] = key
            self.lines[key] = None
            head = first
            first += 1
            if first > last:
                return head
        line = self.lines[key]
        if line is None:
            line = self.lines[key] = Line()
            self.with_line += 1
        before = len(line)
        line.append(first, last)
        self.entries += len(line) - before
        self.waiting += last - first + 1
        return head

    def leave(self, head: int) -> int | None:
        """The head of a lane is gone for good; the offset that takes its place."""
        key = self.heads.pop(head)
        line = self.lines[key]
        if line is None:
            del self.lines[key]
            return None
        before = len(line)
        follower = line.pop()
        self.entries -= before - len(line)
        self.waiting -= 1
        self.heads[follower] = key
        if not len(line):
            self._end_line(key)
        return follower

    def drop_below(self, offset: int) -> list[int]:
        """Forgets who waits below this offset. The heads below it, ascending: each must `leave`."""
        for key, line in self.lines.items():
            if line is not None:
                before = len(line)
                self.waiting -= line.drop_below(offset)
                self.entries -= before - len(line)
                if not len(line):
                    self._end_line(key)
        return sorted(head for head in self.heads if head < offset)

    def behind(self, key: bytes) -> Iterator[int]:
        """The offsets that wait behind the head of a lane, ascending."""
        for first, last in self.lines[key] or ():
            yield from range(first, last + 1)

    def in_line(self) -> Iterator[tuple[int, int]]:
        """All ranges that wait, lane by lane."""
        for line in self.lines.values():
            if line is not None:
                yield from line

    def _end_line(self, key: bytes) -> None:
        self.lines[key] = None
        self.with_line -= 1

    def check(self) -> None:
        assert sorted(self.heads.values()) == sorted(self.lines), "N1"
        lines = [line for line in self.lines.values() if line is not None]
        assert (self.entries, self.with_line) == (sum(map(len, lines)), len(lines)), "N3"
        assert self.waiting == sum(last - first + 1 for first, last in self.in_line()), "N3"
        for head, key in self.heads.items():
            line = self.lines[key]
            offsets = [head, *(offset for pair in line or () for offset in pair)]
            assert offsets == sorted(offsets), "N2"
            assert line is None or len(line), "N3"
