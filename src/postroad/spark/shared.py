"""A job's rows in one transaction: all tasks write in it, and the driver ends it.

Each attempt at a task enters the transaction and gets a producer of its own (`transactions.shared` on the
other side). An attempt that Spark takes for done says with its commit message who it was; the driver commits
with the list of these, and what other attempts wrote (failed ones, speculative ones, zombies) is aborted. So
nothing needs to be the same when a task is repeated, neither rows nor their order.

The number of the micro-batch is part of the commit. A driver that died between that and its own log runs the
micro-batch again: its tasks hear that the batch is done, and write nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from postroad.errors import ConfigurationError, InvalidTransactionState, ProducerFenced
from postroad.spark.cluster import Cluster
from postroad.spark.identity import Identity
from postroad.spark.router import TRANSACTION, Coordinated
from postroad.wire import shared_transactions as codec

PREFIX: Final = "postroad-spark-"  # of transactional ids

NOT_HERE: Final = (
    "This cluster has no transactions that several producers write in. Apache Kafka has none, and Postroad "
    "only when all nodes run this version, with kafka.transactions on. Use transactional=task: then the "
    "rows of each task appear whole, one task after the other."
)
LATER: Final = (
    "a later batch of this writer is stored already, so the checkpoint was set back or replaced. Give the "
    "option writeId a new value to write these rows, once more if they were written before."
)
GONE: Final = (
    "the transaction was ended before its commit, and nothing of it is stored: it took longer than "
    "kafka.transaction.timeout.ms, or somebody else writes with the same query or writeId, or aborted it."
)


class Run(NamedTuple):
    """One try of a driver to write a batch."""

    transactional_id: str
    run: str
    batch: int

    def enter(self, cluster: Cluster, timeout_ms: int, turn: int) -> Identity | None:
        """As whom an attempt at a task writes; None: the batch was committed by an earlier run.

        Raises ConfigurationError where there is no such thing, and ApiError.
        """
        check_shared(cluster)
        answer = self._ask(cluster, codec.Enter(*self, timeout_ms))
        if answer.is_done:
            return None
        return Identity(answer.producer_id, answer.producer_epoch, turn, self.transactional_id)

    def commit(self, cluster: Cluster, kept: Sequence[tuple[int, int]]) -> None:
        """What these producers wrote is there for everybody, what others wrote in this run for nobody."""
        self._ask(cluster, codec.Finish(*self, list(kept)))

    def abort(self, cluster: Cluster) -> None:
        """Nothing of the run is there, nor will be. Nothing happens if it was committed."""
        self._ask(cluster, codec.Finish(*self))

    def _ask(self, cluster: Cluster, order: codec.AnyOrder) -> Any:
        coordinated = Coordinated(self.transactional_id, TRANSACTION)
        try:
            return cluster.ask_coordinator(coordinated, codec, order, version=codec.MAX_VERSION)
        except InvalidTransactionState as error:
            raise InvalidTransactionState(f"{self.transactional_id}: {LATER} ({error})") from None
        except ProducerFenced as error:
            raise ProducerFenced(f"{self.transactional_id}: {GONE} ({error})") from None


def check_shared(cluster: Cluster) -> None:
    """Raises ConfigurationError where several producers can't write in one transaction."""
    if not cluster.has_shared_transactions():
        raise ConfigurationError(NOT_HERE)
