"""Accepts that come when their lock is over or forgotten: the work is done, why should another do it again?

They count for messages that were delivered and that nobody else has. Which were delivered the ledger knows;
but not of what was held when the node went down, so below the offset at which the log ended when this node
opened it (`unknown_below`) a message may have been. This is the one exception of S5.

A caller may ask for the same with releases and renewals (SQS lets a receiver change the visibility timeout
of a message that has become visible). Nobody holds such a message, and nobody will: it is made available
later, or at once. Its receiver can still accept it, and its deliveries stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postroad.errors import CoordinatorNotAvailable, InvalidRecordState
from postroad.now import Now
from postroad.queues.acknowledgement import ACCEPT, RENEW, Run
from postroad.queues.settlement import Settlement

if TYPE_CHECKING:
    from postroad.queues.share_partition import SharePartition


def find(
    partition: SharePartition,
    member: int | None,
    runs: list[Run],
    unknown_below: int | None,
    kinds: frozenset[int],
    now: Now,
) -> list[Run]:
    """What is said of messages that the member does not hold, and counts all the same. Raises
    InvalidRecordState for what does not count. What it holds is none of it: where these kinds may come late,
    a lock that has ended and is still there will do."""
    late: list[Run] = []
    for first, last, kind in runs:
        below = unknown_below if kind in kinds else None
        held_at = now.ms if below is None else 0
        if member is not None and partition.locks.held_by(member, first, last, held_at):
            continue
        is_known = kind == ACCEPT or last < partition.frontier
        if below is None or not is_known or not count(partition, first, last, below):
            raise InvalidRecordState
        late.append((first, last, kind))
    return late


def count(partition: SharePartition, first: int, last: int, unknown_below: int) -> bool:
    """Whether these messages are neither done nor held nor pledged, and may have been delivered. Raises while
    something is being decided about them."""
    ledger = partition.ledger
    if first < partition.start or partition.locks.cut(first, last):
        return False
    if any(table.cut(first, last) for table in (ledger.done, ledger.dying, ledger.pledges)):
        return False
    settling = [each for settlement in partition.settling() for each in settlement.ranges()]
    settling += [(low, high) for low, high, _ in partition.backlog.doomed]
    if any(low <= last and first <= high for low, high in settling):
        raise CoordinatorNotAvailable("Something is being decided about this message: say it again.")
    return last < unknown_below or not ledger.attempts.missing(max(first, unknown_below), last)


def withdraw(partition: SharePartition, settlement: Settlement, late: list[Run], now: Now) -> None:
    """All of them, or none. What lies behind the frontier is withdrawn by being settled."""
    ranges = [(first, last) for first, last, _ in late]
    if partition.backlog.lanes is not None:
        ranges = [(offset, offset) for first, last in ranges for offset in range(first, last + 1)]
    for first, last in ranges:
        available_at = partition.backlog.withdraw(first, last) if first < partition.frontier else 0
        if available_at is None:
            put_back(partition, settlement, now)
            raise InvalidRecordState
        settlement.late.append((first, last, available_at))


def put_off(
    partition: SharePartition,
    settlement: Settlement,
    late: list[Run],
    lock_ms: int,
    delay_ms: int,
    now: Now,
) -> None:
    """What was withdrawn and is not accepted is available again when the time is over that was asked for.
    Nothing of it is settled."""
    for first, last, kind in late:
        if kind != ACCEPT:
            available_at = now.ms + (lock_ms if kind == RENEW else delay_ms)
            partition.backlog.release(max(first, partition.start), last, available_at, now.ms)
            settlement.late = [each for each in settlement.late if not first <= each[0] <= last]


def put_back(partition: SharePartition, settlement: Settlement, now: Now) -> None:
    for first, last, available_at in settlement.late:
        partition.backlog.release(max(first, partition.start), last, available_at, now.ms)
