"""`Lanes`: messages that must go one after another, by key. Strict order of a partition is one lane for all.

The head of a lane is the message that is available, delayed, in flight or being settled; the others of its
key wait in line behind it, and take its place one by one when it is done or archived.

N1 a key with a line has a head. N2 a line ascends and lies behind its head. N3 `waiting` and `entries` count
the messages and ranges in all lines.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

WHOLE_PARTITION: Final = b""  # the key that all messages share where the order is the partition's


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

    def drop_below(self, offset: int) -> None:
        kept = [(max(first, offset), last) for first, last in self if last >= offset]
        self.pairs = array("q", [bound for pair in kept for bound in pair])
        self.used = 0


class Lanes:
    def __init__(self) -> None:
        self.heads: dict[int, bytes] = {}  # the offset at the head of a lane: its key
        self.lines: dict[bytes, Line | None] = {}  # for each key with a head; None: nothing waits
        self.waiting = 0
        self.entries = 0

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
            self.lines[key] = None
        return follower

    def drop_below(self, offset: int) -> list[int]:
        """Forgets who waits below this offset. The heads below it, ascending: each must `leave`."""
        for key, line in self.lines.items():
            if line is not None:
                line.drop_below(offset)
                if not len(line):
                    self.lines[key] = None
        self.waiting = sum(last - first + 1 for first, last in self.in_line())
        self.entries = sum(len(line) for line in self.lines.values() if line is not None)
        return sorted(head for head in self.heads if head < offset)

    def in_line(self) -> Iterator[tuple[int, int]]:
        """All ranges that wait, lane by lane."""
        for line in self.lines.values():
            if line is not None:
                yield from line

    def check(self) -> None:
        assert sorted(self.heads.values()) == sorted(self.lines), "N1"
        assert self.entries == sum(len(line) for line in self.lines.values() if line is not None), "N3"
        assert self.waiting == sum(last - first + 1 for first, last in self.in_line()), "N3"
        for head, key in self.heads.items():
            line = self.lines[key]
            offsets = [head, *(offset for pair in line or () for offset in pair)]
            assert offsets == sorted(offsets), "N2"
            assert line is None or len(line), "N3"
