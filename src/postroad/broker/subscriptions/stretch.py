"""A stretch of a partition's log in memory: what is in it, and cutting what was acquired out of it.

Whole batches leave as they are. Of a batch of which only some messages were acquired the others are left out
(`wire.excerpt`), so that a member is not sent what it did not ask for; a small compressed batch is sent whole
all the same, since packing it anew costs more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from struct import Struct
from typing import Final

from postroad.wire.batch import ATTRIBUTES, COMPRESSION_MASK, LENGTH_END
from postroad.wire.batch import HEADER as BATCH_HEADER
from postroad.wire.excerpt import Excerpts

_BATCH_BOUNDS: Final = Struct(">qi11xi")  # of a batch's header: base offset, length, last offset delta
RANGE_BYTES: Final = 19  # that an acquired range takes in an answer, besides its messages
WHOLE_BYTES_MAX: Final = 32 * 1024  # a compressed batch up to this size is not worth unpacking

Range = tuple[int, int]


class Stretch:
    """Whole batches, verified, in the log's order."""

    __slots__ = ("_bases", "_data", "_ends", "_excerpts", "_excerpts_at", "_lasts", "first", "upto")

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._bases: list[int] = []  # of each batch: its first and last offset, and where it ends
        self._lasts: list[int] = []
        self._ends: list[int] = []
        unpack, total, position = _BATCH_BOUNDS.unpack_from, len(data), 0
        while position < total:
            base, length, delta = unpack(data, position)
            position += length + LENGTH_END
            self._bases.append(base)
            self._lasts.append(base + delta)
            self._ends.append(position)
        self._excerpts_at = -1  # the batch that was cut last: likely the one that is cut next
        self._excerpts: Excerpts | None = None
        self.first = self._bases[0]
        self.upto = self._lasts[-1] + 1

    def holds(self, offset: int) -> bool:
        return self.first <= offset < self.upto

    def cut(
        self, ranges: Sequence[Range], bytes_max: int, one_at_least: bool = True
    ) -> tuple[list[memoryview | bytes], int, int]:
        """(batches with just these messages, what they take in an answer, how far it got: an offset).

        The ranges ascend, and the first begins below the stretch's end. It ends with the stretch, with the
        last range, at a message that lies in none of the batches, or when `bytes_max` would be passed.
        `one_at_least`: the first batch may pass it.
        """
        parts: list[memoryview | bytes] = []
        size, current = 0, 0
        reached = ranges[0][0]
        while current < len(ranges) and (reached := max(reached, ranges[current][0])) < self.upto:
            at = bisect_left(self._lasts, reached)
            if self._bases[at] > reached:
                break
            until = self._whole_until(at, reached, ranges, current)
            if until > at:  # whole batches, one behind the other: one piece
                room = bytes_max - size - RANGE_BYTES
                until = self._fitting(at, until, room, one_at_least and not parts)
                if until == at:
                    break
                part: memoryview | bytes = self._data[self._start(at) : self._ends[until - 1]]
                part_bytes = len(part) + RANGE_BYTES
            else:
                until = at + 1
                chosen = self._chosen(at, reached, ranges, current)
                part = self._some_of(at, chosen)
                part_bytes = len(part) + RANGE_BYTES * len(chosen)
                if size + part_bytes > bytes_max and (parts or not one_at_least):
                    break
            parts.append(part)
            size += part_bytes
            reached = self._lasts[until - 1] + 1
            while current < len(ranges) and ranges[current][1] < reached:
                current += 1
            if size >= bytes_max:
                break
        return parts, size, reached

    def holes(self, ranges: Sequence[Range]) -> list[Range]:
        """What of the ranges lies before the stretch's end and in none of its batches: compaction took it."""
        holes: list[Range] = []
        for first, last in ranges:
            at = bisect_left(self._lasts, first)
            while first <= last and at < len(self._bases):
                if first < self._bases[at]:
                    holes.append((first, min(last, self._bases[at] - 1)))
                first = self._lasts[at] + 1
                at += 1
        return holes

    def _start(self, at: int) -> int:
        return self._ends[at - 1] if at else 0

    def _whole_until(self, at: int, reached: int, ranges: Sequence[Range], current: int) -> int:
        """The index after the last of the batches from `at` on that the range covers wholly."""
        if self._bases[at] < reached:
            return at
        return bisect_right(self._lasts, ranges[current][1], at)

    def _fitting(self, at: int, until: int, room: int, first: bool) -> int:
        start = self._start(at)
        if self._ends[until - 1] - start <= room:
            return until
        fits = bisect_right(self._ends, start + max(room, 0), at, until)
        return max(fits, at + 1) if first else fits

    def _chosen(self, at: int, reached: int, ranges: Sequence[Range], current: int) -> list[Range]:
        """What of the ranges lies in the batch."""
        last = self._lasts[at]
        chosen: list[Range] = []
        while current < len(ranges) and ranges[current][0] <= last:
            chosen.append((max(ranges[current][0], reached), min(ranges[current][1], last)))
            current += 1
        return chosen

    def _some_of(self, at: int, chosen: list[Range]) -> memoryview | bytes:
        batch = self._data[self._start(at) : self._ends[at]]
        compressed = BATCH_HEADER.unpack_from(batch)[ATTRIBUTES] & COMPRESSION_MASK
        if compressed and len(batch) <= WHOLE_BYTES_MAX:
            return batch
        if self._excerpts is None or self._excerpts_at != at:
            self._excerpts_at, self._excerpts = at, Excerpts(batch)
        return self._excerpts.take(chosen)
