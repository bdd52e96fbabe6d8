"""Accepts that come when their lock is over or forgotten: the work is done, why should another do it again?

They count for messages that were delivered and that nobody else has. Which were delivered the ledger knows;
but not of what was held when the node went down, so below the offset at which the log ended when this node
opened it (`unknown_below`) a message may have been. This is the one exception of S5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postroad.errors import CoordinatorNotAvailable, InvalidRecordState
from postroad.now import Now
from postroad.queues.settlement import Settlement

if TYPE_CHECKING:
    from postroad.queues.share_partition import SharePartition


def count(partition: SharePartition, first: int, last: int, unknown_below: int) -> bool:
    """Whether these messages are neither done nor held, and may have been delivered. Raises while something
    is being decided about them."""
    ledger = partition.ledger
    if first < partition.start or partition.locks.cut(first, last):
        return False
    if ledger.done.cut(first, last) or ledger.dying.cut(first, last):
        return False
    settling = [each for settlement in partition.settling() for each in settlement.ranges()]
    settling += [(low, high) for low, high, _ in partition.backlog.doomed]
    if any(low <= last and first <= high for low, high in settling):
        raise CoordinatorNotAvailable("Something is being decided about this message: say it again.")
    return last < unknown_below or not ledger.attempts.missing(max(first, unknown_below), last)


def withdraw(
    partition: SharePartition, settlement: Settlement, late: list[tuple[int, int]], now: Now
) -> None:
    """All of them, or none. What lies behind the frontier is withdrawn by being settled."""
    if partition.backlog.lanes is not None:
        late = [(offset, offset) for first, last in late for offset in range(first, last + 1)]
    for first, last in late:
        available_at = partition.backlog.withdraw(first, last) if first < partition.frontier else 0
        if available_at is None:
            put_back(partition, settlement, now)
            raise InvalidRecordState
        settlement.late.append((first, last, available_at))


def put_back(partition: SharePartition, settlement: Settlement, now: Now) -> None:
    for first, last, available_at in settlement.late:
        partition.backlog.release(max(first, partition.start), last, available_at, now.ms)
