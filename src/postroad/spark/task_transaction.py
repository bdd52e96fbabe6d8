"""One task's rows in a transaction of its own: what Kafka has for this.

The transactional id is that of the task, so an attempt fences the ones before it and aborts what they left.
The number of the batch is part of the transaction, as the offset of a group of the same name: an attempt that
comes after the commit finds it there, and writes nothing.

An attempt never commits. When what comes before the sink fails, Spark ends the sink's input as if all rows
had come, so an attempt can't tell whether it has them all. It prepares: all that is left to do is EndTxn,
which anybody may send who knows the producer. The driver does, for the attempts that Spark took, one task
after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from postroad.client.groups import raise_for
from postroad.client.offsets import by_topic
from postroad.errors import InvalidProducerEpoch, InvalidTransactionState, ProducerFenced
from postroad.spark.answers import check_group, check_parts
from postroad.spark.cluster import Cluster
from postroad.spark.identity import Identity
from postroad.spark.router import TRANSACTION, Coordinated, TopicPartition
from postroad.spark.shared import GONE, LATER
from postroad.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    offset_fetch,
    txn_offset_commit,
)

# The last versions without what only Kafka 4 has (KIP-890): this works with older ones, too.
ADD_PARTITIONS: Final = 3
END: Final = 4
COMMIT_OFFSETS: Final = 4


class TaskTransaction:
    def __init__(self, cluster: Cluster, transactional_id: str, batch: int, timeout_ms: int) -> None:
        self._cluster = cluster
        self._id = transactional_id
        self._batch = batch
        self._timeout_ms = timeout_ms
        self._producer = (-1, -1)
        self._where: TopicPartition | None = None  # where the number of the batch goes

    def begin(self, turn: int) -> Identity | None:
        """As whom the attempt writes; None: the batch is committed. Raises ApiError."""
        self._producer = _begin(self._cluster, self._id, self._timeout_ms)
        done = self._last_batch()
        if done == self._batch:
            return None
        if done > self._batch:
            raise InvalidTransactionState(f"{self._id}: {LATER}")
        return Identity(*self._producer, turn, self._id)

    def reach(self, new: Collection[TopicPartition]) -> None:
        """The partitions are part of the transaction."""
        topics = [
            add_partitions_to_txn.AddPartitionsToTxnTopic(name, list(partitions))
            for name, partitions in by_topic(new).items()
        ]
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=topics,
        )
        self._ask(add_partitions_to_txn, request, _check_added, ADD_PARTITIONS)
        if self._where is None:
            self._where = min(new)

    def prepare(self) -> None:
        """All rows are written: the number of the batch follows, and only `commit` is missing."""
        assert self._where is not None, "a transaction is begun when there are rows"
        self._ask(
            add_offsets_to_txn, add_offsets_to_txn.AddOffsetsToTxnRequest(self._id, *self._producer, self._id)
        )
        topic, partition = self._where
        offset = txn_offset_commit.TxnOffsetCommitRequestPartition(partition, self._batch)
        request = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=self._id,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            topics=[txn_offset_commit.TxnOffsetCommitRequestTopic(topic, [offset])],
        )
        group = Coordinated(self._id)
        self._cluster.ask_coordinator(group, txn_offset_commit, request, check_parts, COMMIT_OFFSETS)

    def _last_batch(self) -> int:
        """The last one that was committed, or -1."""
        wanted = offset_fetch.OffsetFetchRequestGroup(group_id=self._id, topics=None)
        request = offset_fetch.OffsetFetchRequest(groups=[wanted], require_stable=True)
        answer = self._cluster.ask_coordinator(Coordinated(self._id), offset_fetch, request, check_group)
        return max(_offsets(answer.groups[0].topics), default=-1)

    def _ask(self, api: Any, body: Any, check: Any = raise_for, version: int | None = None) -> Any:
        return _ask(self._cluster, self._id, api, body, check, version)


def commit(cluster: Cluster, transactional_id: str, producer: tuple[int, int]) -> None:
    """What an attempt has prepared is there for everybody, and the batch is known as done. May be repeated.

    Raises ProducerFenced if the transaction has ended otherwise.
    """
    request = end_txn.EndTxnRequest(transactional_id, *producer, True)
    try:
        _ask(cluster, transactional_id, end_txn, request, version=END)
    except (InvalidProducerEpoch, InvalidTransactionState, ProducerFenced) as error:
        raise ProducerFenced(f"{transactional_id}: {GONE} ({error})") from None


def abort(cluster: Cluster, transactional_id: str, timeout_ms: int) -> None:
    """What was written and not committed is there for nobody, and whoever still writes is fenced."""
    _begin(cluster, transactional_id, timeout_ms)


def _begin(cluster: Cluster, transactional_id: str, timeout_ms: int) -> tuple[int, int]:
    request = init_producer_id.InitProducerIdRequest(transactional_id, timeout_ms)
    answer = _ask(cluster, transactional_id, init_producer_id, request)
    return answer.producer_id, answer.producer_epoch


def _ask(
    cluster: Cluster,
    transactional_id: str,
    api: Any,
    body: Any,
    check: Any = raise_for,
    version: int | None = None,
) -> Any:
    return cluster.ask_coordinator(Coordinated(transactional_id, TRANSACTION), api, body, check, version)


def _offsets(topics: Iterable[Any]) -> list[int]:
    return [part.committed_offset for topic in topics for part in topic.partitions]


def _check_added(answer: Any) -> None:
    for topic in answer.results_by_topic_v3_and_below:
        for part in topic.results_by_partition:
            raise_for(_Code(part.partition_error_code))


class _Code:
    def __init__(self, error_code: int) -> None:
        self.error_code = error_code
