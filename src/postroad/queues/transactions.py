"""Acknowledgements as a part of transactions: who may pledge what, and what an end finds.

An end is decided about when all pledges of its transactions are in the ledger: while one of them is on its
way to the disk the end waits, for it would be recorded without what it ends. A pledge that comes behind the
end of its transaction is refused, whether that is recorded yet or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from postroad.errors import ConcurrentTransactions, InvalidProducerEpoch, InvalidRecordState, InvalidRequest
from postroad.now import Now
from postroad.queues.acknowledgement import ACCEPT, AckBatch, runs_of
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
    for first, last, kind in runs_of(batches):
        if kind != ACCEPT:
            raise InvalidRequest("In a transaction messages can be accepted, and nothing else.")
        if number is None or not partition.locks.held_by(number, first, last, now.ms):
            raise InvalidRecordState
        pledges.append(Pledged(first, last, producer_id, epoch))
    if epoch < max([ended.epoch for ended in _ends_of(partition, producer_id)], default=0):
        raise InvalidProducerEpoch("The transaction has ended.")
    return pledges


def find_pledged(partition: SharePartition, producer_id: int, epoch: int) -> list[Row]:
    """What an end with this epoch ends, as rows of locks that nobody holds. Raises ConcurrentTransactions
    while something of it is on its way to the disk."""
    for settlement in partition.settling():
        pledging = {pledged.producer_id for pledged in settlement.pledged}
        ending = {ended.producer_id for ended in settlement.ended}
        if producer_id in pledging | ending:
            raise ConcurrentTransactions
    ledger = partition.ledger
    return [
        (low, high, 0, 0, *counts, 0)
        for first, last, *_ in ledger.pledges.of(producer_id, epoch)
        for low, high, *counts in ledger.attempts.pieces(first, last)
    ]


def _ends_of(partition: SharePartition, producer_id: int) -> Iterator[Ended]:
    """Ends of its transactions that are recorded, or on their way."""
    yield Ended(producer_id, partition.ledger.pledges.ended.get(producer_id, 0))
    for settlement in partition.settling():
        yield from (ended for ended in settlement.ended if ended.producer_id == producer_id)
