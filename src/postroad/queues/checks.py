"""The invariants of a share partition; `share_partition.py` says what their numbers mean."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from postroad.queues.locks import DELIVERIES, MEMBER, TENANT, UNTIL
from postroad.queues.ranges import RangeSet

if TYPE_CHECKING:
    from postroad.queues.share_partition import SharePartition


def check(partition: SharePartition) -> None:
    """Looks at everything there is. For tests."""
    partition.ledger.check()
    partition.locks.check()
    partition.backlog.check()
    partition.holdings.check()
    _check_places(partition)
    _check_locks(partition)
    _check_lanes(partition)


def _check_places(partition: SharePartition) -> None:
    """S1, S4, S6: what is done, dying and in each place covers the offsets up to the frontier once."""
    ledger, backlog, start, frontier = (
        partition.ledger,
        partition.backlog,
        partition.start,
        partition.frontier,
    )
    assert ledger.start <= start <= frontier, "S6"
    gone = RangeSet()
    for first, last in [*ledger.done, *backlog.gaps]:
        gone.add(first, last)
    ranges = [
        *gone,
        *((row[0], row[1]) for row in (*ledger.dying.each(), *ledger.pledges.each())),
        *_soft_places(partition),
        *((row[0], row[1]) for row in partition.locks.each()),
        *(piece for settlement in partition.settling() for piece in settlement.ranges()),
    ]
    cursor = start
    for first, last in sorted(ranges):
        if last < start:
            continue
        assert first <= cursor or cursor >= frontier, f"S1: {cursor} to {first - 1} are nowhere"
        assert max(first, start) >= cursor, f"S1: {first} is in two places"
        cursor = last + 1
    assert cursor >= frontier, f"S1: {cursor} is nowhere"


def _soft_places(partition: SharePartition) -> list[tuple[int, int]]:
    backlog = partition.backlog
    ranges = [*backlog.pool.each(), *((first, last) for _, first, last in backlog.schedule)]
    ranges += [(first, last) for first, last, _ in backlog.doomed]
    if backlog.lanes is not None:
        in_line = RangeSet()
        for first, last in backlog.lanes.in_line():
            in_line.add(first, last)
        for stray in backlog.strays:
            in_line.carve(stray, stray)
        ranges += in_line
    return ranges


def _check_locks(partition: SharePartition) -> None:
    """S2 is what the table of locks is made of; S3 and Q1 are seen from here."""
    held: Counter[str | None] = Counter()
    for row in partition.locks.each():
        attempts = partition.ledger.attempts.pieces(row[0], row[1])
        assert [piece[2] for piece in attempts] == [row[DELIVERIES] - 1], "S3"
        assert row[UNTIL] >= 0, "S2"
        held[partition.members.name(row[MEMBER])] += row[1] - row[0] + 1
        partition.tenants.name(row[TENANT])
    for member, count in held.items():
        assert member is not None, "Q1"
        assert partition.holdings.by_member[member] >= count, "Q1"


def _check_lanes(partition: SharePartition) -> None:
    """Q2: whatever could go out and has a lane is its head; what is in line is not in the pool (S1)."""
    lanes = partition.backlog.lanes
    if lanes is None:
        return
    for first, last in lanes.in_line():
        assert not partition.backlog.pool.overlapping(first, last), "Q2"
