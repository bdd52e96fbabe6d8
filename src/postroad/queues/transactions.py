"""Acknowledgements as a part of transactions: who may pledge what, and what an end finds.

An end is decided about when all pledges of its transactions are in the ledger: while one of them is on its
way to the disk the end waits, for it would be recorded without what it ends. A pledge that comes behind the
end of its transaction is refused, whether that is recorded yet or not.

A verdict is about the transaction with the epoch before its own. What is found pledged in an older one was
left behind by a coordinator that has lost it: nobody has committed that, so it is released.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from postroad.errors import ConcurrentTransactions, InvalidProducerEpoch, InvalidRecordState
from postroad.now import Now
from postroad.queues.acknowledgement import KINDS_IN_TRANSACTIONS, AckBatch, runs_of
from postroad.queues.table import Row
from postroad.queues.update import Ended, Pledged

if TYPE_CHECKING:
    from postroad.queues.share_partition import SharePartition


def find_held(
    partition: SharePartition,
    member: str,
    batches: Sequence[AckBatch],
    producer_id: int,
    epoch: int,
    now: Now,
) -> list[Pledged]:
    """The pledges that these acknowledgements are: all of them count, or none (S5). Raises InvalidRequest,
    InvalidRecordState and InvalidProducerEpoch."""
    number, pledges = partition.members.known(member), []
    for first, last, _ in runs_of(batches, KINDS_IN_TRANSACTIONS):
        if number is None or not partition.locks.held_by(number, first, last, now.ms):
            raise InvalidRecordState(
                f"{InvalidRecordState.summary} (offset {_lost(partition, number, first, now)})"
            )
        pledges.append(Pledged(first, last, producer_id, epoch))
    if epoch < max([ended.epoch for ended in _ends_of(partition, producer_id)], default=0):
        raise InvalidProducerEpoch("The transaction has ended.")
    return pledges


class Ending(NamedTuple):
    """What an end finds, as rows of locks that nobody holds."""

    pledged: list[Row]  # in the transaction that ends: the verdict is about these
    left: list[Row]  # in older ones, whose end was never heard of: they are released whatever the verdict


def find_pledged(partition: SharePartition, producer_id: int, epoch: int) -> Ending:
    """What an end with this epoch ends; its transaction has the epoch before. Raises ConcurrentTransactions
    while something of it is on its way to the disk."""
    if is_under_way(partition, producer_id):
        raise ConcurrentTransactions
    ledger, ending = partition.ledger, Ending([], [])
    for first, last, _, pledged_in in ledger.pledges.of(producer_id, epoch):
        rows = ending.pledged if pledged_in == epoch - 1 else ending.left
        rows += [(low, high, 0, 0, *counts, 0) for low, high, *counts in ledger.attempts.pieces(first, last)]
    return ending


def is_under_way(partition: SharePartition, producer_id: int) -> bool:
    """Whether pledges of this producer, or ends of its transactions, are on their way to the disk."""
    return any(
        any(pledged.producer_id == producer_id for pledged in settlement.pledged)
        or any(ended.producer_id == producer_id for ended in settlement.ended)
        for settlement in partition.settling()
    )


def _lost(partition: SharePartition, number: int | None, offset: int, now: Now) -> int:
    """The first offset from this one on that the member does not hold."""
    while number is not None and partition.locks.held_by(number, offset, offset, now.ms):
        offset += 1
    return offset


def _ends_of(partition: SharePartition, producer_id: int) -> Iterator[Ended]:
    """Ends of its transactions that are recorded, or on their way."""
    yield Ended(producer_id, partition.ledger.pledges.ended.get(producer_id, 0))
    for settlement in partition.settling():
        yield from (ended for ended in settlement.ended if ended.producer_id == producer_id)
