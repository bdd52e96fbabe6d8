"""What is known of a log with many delayed messages, as bytes, so that a start needn't read all of it again.

    head      magic, generation, frontier, how far the wall clock is ahead of the one that the times are of,
              and how many rows are delayed, ready and gaps
    delayed   times, last offsets, spans: as `Schedule` keeps them
    ready     first offsets, last offsets: what could go out, or was in flight
    gaps      first offsets, last offsets: what holds no message for this subscription

All of it is soft: it says what the log said up to the frontier. Whoever keeps it must see to it that the log
is still the same there. What the ledger has learned since is taken out when it is restored; a snapshot of
another generation says nothing. Only subscriptions without order, fairness and expiry have one: the others
must know more of each message.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import compress
from operator import not_
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from postroad.now import Now
from postroad.queues.ledger import Ledger
from postroad.queues.schedule import Schedule

if TYPE_CHECKING:
    from postroad.queues.share_partition import SharePartition

_MAGIC: Final = b"PRS1"
_HEAD: Final = Struct("<4sqqqIII")
_NUMBER: Final = 8
_SPAN: Final = 4
_OFFSET_MAX: Final = (1 << 63) - 1


class Snapshot(NamedTuple):
    """`times` are of the clock at the time when it was read."""

    generation: int
    frontier: int
    lowest: int  # of the delayed offsets
    times: array[int]
    lasts: array[int]
    spans: array[int]
    ready: list[tuple[int, int]]
    gaps: list[tuple[int, int]]


def take(partition: SharePartition, now: Now) -> list[bytes] | None:
    """The parts of it; None where this is not all that must be known. Copies, and looks at no row."""
    backlog = partition.backlog
    settling = list(partition.settling())
    if backlog.lanes is not None or partition.settings.fair or backlog.traits.rows or backlog.doomed:
        return None
    if any(settlement.doomed for settlement in settling):
        return None
    ready = [*backlog.pool.each(), *((row[0], row[1]) for row in partition.locks.each())]
    ready += (each for settlement in settling for each in settlement.ranges())
    ready += ((row[0], row[1]) for row in partition.ledger.pledges.each())
    gaps = list(backlog.gaps)
    generation, ahead = partition.ledger.generation, now.wall_ms - now.ms
    counts = backlog.schedule.rows, len(ready), len(gaps)
    parts = [_HEAD.pack(_MAGIC, generation, partition.frontier, ahead, *counts)]
    for column in range(3):
        parts += [chunk[column].tobytes() for chunk in backlog.schedule.chunks]
    for ranges in (ready, gaps):
        parts += [array("q", [each[end] for each in ranges]).tobytes() for end in (0, 1)]
    return parts


def read(data: bytes, now: Now) -> Snapshot | None:
    """None if it is none of this kind, or not whole."""
    if len(data) < _HEAD.size:
        return None
    magic, generation, frontier, ahead, rows, ready, gaps = _HEAD.unpack_from(data)
    size = _HEAD.size + rows * (2 * _NUMBER + _SPAN) + 2 * _NUMBER * (ready + gaps)
    if magic != _MAGIC or len(data) != size:
        return None
    position = _HEAD.size

    def numbers(count: int, code: str = "q") -> array[int]:
        nonlocal position
        found = array(code)
        end = position + count * found.itemsize
        found.frombytes(data[position:end])
        position = end
        return found

    times, lasts, spans = numbers(rows), numbers(rows), numbers(rows, "I")
    ranges = [list(zip(numbers(count), numbers(count), strict=True)) for count in (ready, gaps)]
    later = ahead - (now.wall_ms - now.ms)
    times = array("q", [time + later for time in times])
    lowest = min(map(int.__sub__, lasts, spans), default=frontier)
    return Snapshot(generation, frontier, lowest, times, lasts, spans, *ranges)


def restore(partition: SharePartition, snapshot: Snapshot, now: Now) -> bool:
    """The partition knows what the snapshot says, if that is of use to it and nothing was read before.

    What was done when it was taken is not in it. So where the ledger does not know it (the subscription was
    deleted and made anew, or its state was damaged) the snapshot leaves out messages, and is of no use."""
    backlog, ledger, start, upto = partition.backlog, partition.ledger, partition.start, snapshot.frontier
    plain = backlog.lanes is None and not partition.settings.fair
    if not plain or snapshot.generation != ledger.generation:
        return False
    if backlog.frontier != ledger.start or upto <= start:
        return False
    if partition.locks.messages or partition.is_settling:
        return False
    gone = Gone(ledger, start, upto)
    ready, gaps = list(gone.leave(snapshot.ready)), list(gone.leave(snapshot.gaps))
    schedule = _schedule(gone, snapshot)
    told = gone.messages + schedule.messages + sum(last - first + 1 for first, last in (*ready, *gaps))
    if told != upto - start:
        return False
    for first, last in ready:
        backlog.pool.add(first, last)
    for first, last in gaps:
        backlog.gaps.add(first, last)
    backlog.schedule = schedule
    backlog.frontier = upto
    partition.extend(upto, [], now)  # it has seen the log up to there
    return True


class Gone:
    """What a ledger is done with, gives up or has pledged, and what lies outside of a snapshot."""

    def __init__(self, ledger: Ledger, start: int, upto: int) -> None:
        tables = ledger.done, ledger.dying, ledger.pledges
        within = [row for table in tables for row in table.cut(start, upto - 1)]
        ranges = sorted([(-1, start - 1), *((row[0], row[1]) for row in within), (upto, _OFFSET_MAX)])
        self.start = start
        self.messages = sum(row[1] - row[0] + 1 for row in within)
        self._firsts = [first for first, _ in ranges]
        self._lasts = [last for _, last in ranges]

    def spare(self, lasts: array[int], spans: array[int]) -> list[bool]:
        """Tell for each row whether none of it is gone. There may be a million rows."""
        firsts, ends = self._firsts, self._lasts
        return [
            firsts[bisect_left(ends, last - span)] > last for last, span in zip(lasts, spans, strict=True)
        ]

    def leave(self, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """What of the ranges is not gone."""
        for first, last in ranges:
            at = bisect_left(self._lasts, first)
            while first <= last:
                if first < self._firsts[at]:
                    yield first, min(last, self._firsts[at] - 1)
                first = self._lasts[at] + 1
                at += 1


def _schedule(gone: Gone, snapshot: Snapshot) -> Schedule:
    """Rows of which nothing is gone are loaded as they are, all at once."""
    times, lasts, spans = snapshot.times, snapshot.lasts, snapshot.spans
    schedule = Schedule()
    if not gone.messages and snapshot.lowest >= gone.start:
        schedule.load(times, lasts, spans)
        return schedule
    spared = gone.spare(lasts, spans)
    kept = [array(column.typecode, compress(column, spared)) for column in (times, lasts, spans)]
    schedule.load(*kept)
    for time, last, span in compress(zip(times, lasts, spans, strict=True), map(not_, spared)):
        for first, end in gone.leave([(last - span, last)]):
            schedule.add(time, first, end)
    return schedule
