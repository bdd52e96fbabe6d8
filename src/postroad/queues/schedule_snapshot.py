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
from collections.abc import Iterable, Iterator
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
    """The partition knows what the snapshot says, if that is of use to it and nothing was read before."""
    backlog, ledger, start = partition.backlog, partition.ledger, partition.start
    plain = backlog.lanes is None and not partition.settings.fair
    if not plain or snapshot.generation != ledger.generation:
        return False
    if backlog.frontier != ledger.start or snapshot.frontier <= start:
        return False
    if partition.locks.messages or any(True for _ in partition.settling()):
        return False
    for first, last in _undone(ledger, start, snapshot.ready):
        backlog.pool.add(first, last)
    for first, last in snapshot.gaps:
        if last >= start:
            backlog.gaps.add(max(first, start), last)
    backlog.schedule = _schedule(ledger, start, snapshot)
    backlog.frontier = snapshot.frontier
    partition.extend(snapshot.frontier, [], now)  # it has seen the log up to there
    return True


def _schedule(ledger: Ledger, start: int, snapshot: Snapshot) -> Schedule:
    schedule = Schedule()
    times, lasts, spans = snapshot.times, snapshot.lasts, snapshot.spans
    is_untouched = not ledger.done.rows and not ledger.dying.rows and snapshot.lowest >= start
    if is_untouched and times and times[0] > 0:
        schedule.load(times, lasts, spans)
        return schedule
    for time, last, span in zip(times, lasts, spans, strict=True):
        for first, end in _undone(ledger, start, [(last - span, last)]):
            schedule.add(max(time, 1), first, end)
    return schedule


def _undone(ledger: Ledger, start: int, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for first, last in ranges:
        if last < start:
            continue
        for low, high in ledger.done.missing(max(first, start), last):
            yield from ledger.dying.missing(low, high)
