"""Peek: the messages of a share partition with their state, without touching them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from postroad.now import Now
from postroad.queues.locks import DELIVERIES, MEMBER, UNTIL

if TYPE_CHECKING:
    from postroad.queues.share_partition import SharePartition

AVAILABLE: Final = "available"
DELAYED: Final = "delayed"
HELD: Final = "held"
WAITING: Final = "waiting"  # behind another one of its key, or of the partition
SETTLING: Final = "settling"  # decided, and on its way to the disk
PLEDGED: Final = "pledged"  # accepted in a transaction that has not ended
DYING: Final = "dying"  # archived; its copy among the dead letters is on its way
DONE: Final = "done"  # acknowledged, archived, or not there


class Peeked(NamedTuple):
    """Messages `first` to `last` are in the same state. Times are wall-clock ms."""

    first: int
    last: int
    state: str
    available_at_ms: int = 0  # of delayed ones
    member: str | None = None  # of held ones
    until_ms: int = 0  # of held ones
    deliveries: int = 0


def peek(partition: SharePartition, first: int, count: int, now: Now) -> list[Peeked]:
    """`count` messages at most, from this offset on. What is done is told, too, but does not count."""
    found: list[Peeked] = []
    while count > 0:
        end = _done_until(partition, first)
        if end > first:
            found.append(Peeked(first, end - 1, DONE))
            first = end
        last = min(first + count - 1, _next_done(partition, first) - 1)
        found.extend(_undone(partition, first, last, now))
        count -= last - first + 1
        first = last + 1
    return found


def _done_until(partition: SharePartition, offset: int) -> int:
    """The first offset from this one on that is not done."""
    end = max(offset, partition.start)
    while True:
        further = partition.backlog.gaps.first_missing(partition.ledger.done.first_missing(end))
        if further == end:
            return end
        end = further


def _next_done(partition: SharePartition, offset: int) -> int:
    """Where the next done ones begin, behind this offset; far away if nowhere."""
    nowhere: int = 1 << 62
    nexts = (table.next_first(offset) for table in (partition.ledger.done, partition.backlog.gaps))
    return min([nowhere if each is None else each for each in nexts])


def _undone(partition: SharePartition, first: int, last: int, now: Now) -> Iterator[Peeked]:
    """All of the range, of which nothing is done: what is in a certain place, and the rest between."""
    for mark in sorted(_marks(partition, first, last, now)):
        if first < mark.first:
            yield from _unmarked(partition, first, mark.first - 1)
        yield mark
        first = mark.last + 1
    if first <= last:
        yield from _unmarked(partition, first, last)


def _marks(partition: SharePartition, first: int, last: int, now: Now) -> Iterator[Peeked]:
    later = now.wall_ms - now.ms
    for row in partition.ledger.dying.cut(first, last):
        yield Peeked(row[0], row[1], DYING, deliveries=row[3])
    for low, high, *_ in partition.ledger.pledges.cut(first, last):
        yield from _with_deliveries(partition, low, high, PLEDGED)
    for row in partition.locks.cut(first, last):
        member = partition.members.name(row[MEMBER])
        yield Peeked(row[0], row[1], HELD, 0, member, later + row[UNTIL], row[DELIVERIES])
    for low, high, deliveries in _settling(partition):
        if low <= last and high >= first:
            yield Peeked(max(low, first), min(high, last), SETTLING, deliveries=deliveries)
    for at, low, high in partition.backlog.schedule.overlapping(first, last):
        if at > now.ms:
            for row in partition.ledger.attempts.pieces(max(low, first), min(high, last)):
                yield Peeked(row[0], row[1], DELAYED, later + at, deliveries=row[2])


def _settling(partition: SharePartition) -> Iterator[tuple[int, int, int]]:
    for settlement in partition.settling():
        for row in settlement.rows:
            yield row[0], row[1], row[DELIVERIES]
        for first, last, _ in (*settlement.doomed, *settlement.late):
            yield first, last, 0
    for first, last, _ in partition.backlog.doomed:
        yield first, last, 0


def _unmarked(partition: SharePartition, first: int, last: int) -> Iterator[Peeked]:
    """Available; with an order, what is known and not in the pool waits."""
    backlog = partition.backlog
    cursor = first
    if backlog.lanes is not None:
        due = [(low, high) for _, low, high in backlog.schedule.overlapping(first, last)]
        for low, high in sorted(backlog.pool.overlapping(first, last) + due):
            yield from _with_deliveries(partition, cursor, low - 1, WAITING)
            yield from _with_deliveries(partition, low, high, AVAILABLE)
            cursor = high + 1
        known = min(last, backlog.frontier - 1)
        yield from _with_deliveries(partition, cursor, known, WAITING)
        cursor = max(cursor, known + 1)
    yield from _with_deliveries(partition, cursor, last, AVAILABLE)


def _with_deliveries(partition: SharePartition, first: int, last: int, state: str) -> Iterator[Peeked]:
    for row in partition.ledger.attempts.pieces(first, last):
        yield Peeked(row[0], row[1], state, deliveries=row[2])
