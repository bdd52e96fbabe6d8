"""Ending a transaction in a partition that this node leads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from postroad.broker.partition import Partition
from postroad.broker.parts import HasClock, HasEvidence, HasPartitions, HasTurn
from postroad.broker.transactions.gates import note_end
from postroad.errors import ApiError
from postroad.transactions.transaction import Partition as TopicPartition
from postroad.transactions.transaction import Producer

NO_COORDINATOR: Final = -1  # in the place of its epoch: nobody has decided it, and nobody will


class Verdict(NamedTuple):
    """How a producer's transaction ends. `strict`: its epoch must be above that of the batches (KIP-890)."""

    producer_id: int
    epoch: int
    commit: bool
    coordinator_epoch: int
    strict: bool


class Uses(HasClock, HasEvidence, HasPartitions, HasTurn, Protocol):
    """What it takes of the node."""


Done = Callable[[ApiError | None], None]


def mark(node: Uses, where: TopicPartition, verdict: Verdict, done: Done) -> None:
    """Write the marker; `done` is called once it is committed, or with why it can't be.

    Raises ApiError if it is refused: InvalidProducerEpoch and TransactionCoordinatorFenced say that the
    partition knows of a later transaction.
    """
    partition = node.partitions.lead(*where)
    appended = partition.append_marker(*verdict[:4], node.clock.now_ms(), strict=verdict.strict)
    if appended:
        note_end(partition, Producer(verdict.producer_id, verdict.epoch - verdict.strict))
        node.turn.when_written(_Written(partition, done))
    else:  # only the partition's leader knows that nothing is open there
        node.evidence.check(partition)
        partition.when_committed(partition.log.end_offset, done)


class _Written:
    """A marker on its way to the disk."""

    __slots__ = ("_done", "_partition")

    def __init__(self, partition: Partition, done: Done) -> None:
        self._partition = partition
        self._done = done

    def written(self) -> None:
        if self._partition.write_error is not None:
            self._done(self._partition.write_error)
        else:
            self._partition.when_committed(self._partition.log.written_offset, self._done)
