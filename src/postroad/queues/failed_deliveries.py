"""What becomes of messages that were delivered and not accepted: released, or archived."""

from __future__ import annotations

from typing import TYPE_CHECKING

from postroad.now import Now
from postroad.queues.locks import DELIVERIES, TENANT
from postroad.queues.settings import NO_LIMIT
from postroad.queues.settlement import Settlement
from postroad.queues.table import Row
from postroad.queues.update import Dying, Reason, Released

if TYPE_CHECKING:
    from postroad.queues.share_partition import SharePartition


def release(
    partition: SharePartition,
    settlement: Settlement,
    rows: list[Row],
    now: Now,
    delay_ms: int | None,
    text: str = "",
) -> None:
    """They come again after their backoff, or after `delay_ms`; after the last attempt they are archived, and
    `text` is why, in words."""
    limit, backoff = partition.settings.delivery_limit, partition.settings.backoff
    for row in rows:
        first, last, _, _, deliveries, first_ms, last_ms, _ = row
        if limit != NO_LIMIT and deliveries >= limit:
            archive(partition, settlement, first, last, Reason.ATTEMPTS, row[DELIVERIES:TENANT], text)
            continue
        wait = backoff.delay_ms(deliveries, partition.random()) if delay_ms is None else delay_ms
        settlement.release(Released(first, last, deliveries, first_ms, last_ms), now.ms + wait)


def archive(
    partition: SharePartition,
    settlement: Settlement,
    first: int,
    last: int,
    reason: Reason,
    counts: tuple[int, ...],
    text: str = "",
) -> None:
    """They are dying; done, where the subscription keeps no dead letters."""
    settlement.dead += last - first + 1
    if partition.settings.dead_letters:
        deliveries, first_ms, last_ms = counts
        settlement.dying.append(Dying(first, last, reason, deliveries, first_ms, last_ms, text))
    else:
        settlement.accept(first, last)
