"""What goes out next: taken from the backlog, without what must not be delivered (any more).

A run is several messages of one lane that a member gets in one answer, in their order. It is an exception of
Q2 that keeps its sense: what stands behind a message goes out when that is done, or along with it
(`Backlog.followers`). So whoever works through a run in its order sees the lane in its order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postroad.now import Now
from postroad.queues.pool import Taken
from postroad.queues.settings import NO_LIMIT
from postroad.queues.table import Row
from postroad.queues.update import Reason

if TYPE_CHECKING:
    from postroad.queues.share_partition import SharePartition


def take(partition: SharePartition, count: int, run_max: int, upto: int | None, now: Now) -> list[Row] | None:
    """Up to so many messages, `run_max` at most of one lane, with their attempts and tenant; None if the
    backlog has nothing. An empty list: what was taken must not go out, and is doomed."""
    backlog = partition.backlog
    if run_max == 1 or backlog.lanes is None:
        taken = backlog.take(count, upto)
        return [fit for each in taken for fit in _fit(partition, each, now)] if taken else None
    taken = backlog.take(1, upto)
    if not taken:
        return None
    head = _fit(partition, taken[0], now)
    return head + _run(partition, taken[0][0], min(run_max, count) - 1, upto, now) if head else []


def _fit(partition: SharePartition, taken: Taken, now: Now) -> list[Row]:
    """What of it may go out; the rest is doomed."""
    first, last, tenant = taken
    backlog, attempts = partition.backlog, partition.ledger.attempts
    if not backlog.traits.rows and not attempts.rows:
        return [(first, last, 0, 0, 0, tenant)]
    fit: list[Row] = []
    limit = partition.settings.delivery_limit
    for low, high, _, _, expires_at in backlog.traits.pieces(first, last):
        if expires_at and expires_at <= now.ms:
            backlog.doom((low, high, Reason.EXPIRED), tenant)
            continue
        for row in attempts.pieces(low, high):
            if limit != NO_LIMIT and row[2] >= limit:
                backlog.doom((row[0], row[1], Reason.ATTEMPTS), tenant)
            else:
                fit.append((*row, tenant))
    return fit


def _run(partition: SharePartition, head: int, count: int, upto: int | None, now: Now) -> list[Row]:
    """The messages that go out along with the head of their lane."""
    backlog, limit = partition.backlog, partition.settings.delivery_limit
    rows: list[Row] = []
    for offset in backlog.followers(head, count, upto, now.ms):
        (row,) = partition.ledger.attempts.pieces(offset, offset)
        if limit != NO_LIMIT and row[2] >= limit:
            break
        backlog.send_along(offset)
        rows.append((*row, backlog.traits.of(offset).tenant))
    return rows
