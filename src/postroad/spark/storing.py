"""Puts a task's batches into topics and sees each through, so that it is stored once.

What a broker answers, and what it means here:

    an offset               stored now; below where the log ended when this task began: by an earlier attempt
    DuplicateSequence       stored by an earlier attempt, long ago
    InvalidProducerEpoch    a later micro-batch of this writer is stored: an error, for the checkpoint is an
                            old one, or a new one with a `writeId` that was used before. (Or this attempt was
                            given up long ago, and nobody hears of the error.)
    OutOfOrderSequence      Apache Kafka's word for "long ago"; or an earlier attempt stored the batch's
                            beginning only. The broker is asked up to where it has it, and gets the rest
    MessageTooLarge         sent in halves, down to the single row, which is an error or made smaller

An earlier attempt may end within a batch, because Spark tells nobody that it failed: when what comes before
the sink fails, or the task is killed, its rows simply end, and what was gathered is sent.

What an earlier attempt stored is compared with the rows of this one before anything is added to it
(`stored`). Rows that differ are an error, for otherwise some would be lost and others stored twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from postroad.errors import (
    DuplicateSequence,
    InvalidProducerEpoch,
    MessageTooLarge,
    OutOfOrderSequence,
    ProducerFenced,
    RecordListTooLarge,
    RequestRefused,
)
from postroad.spark.cluster import Cluster
from postroad.spark.encode import encode
from postroad.spark.identity import Identity
from postroad.spark.router import TopicPartition
from postroad.spark.stored import SEQUENCE_MASK, Earlier, rows_between
from postroad.wire.batch import TRANSACTIONAL

_FENCED: Final = (InvalidProducerEpoch, ProducerFenced)
_TOO_LARGE: Final = (MessageTooLarge, RecordListTooLarge)


class Outgoing(NamedTuple):
    """Rows of one partition as a record batch."""

    sequence: int  # of the first row
    rows: Any
    data: bytearray


def outgoing(rows: Any, sequence: int, identity: Identity, compression: int) -> Outgoing:
    """All the rows as one batch of this producer."""
    data = encode(
        rows,
        compression=compression,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        base_sequence=sequence,
        attributes=0 if identity.transactional_id is None else TRANSACTIONAL,
    )
    return Outgoing(sequence, rows, data)


Encode = Callable[[Any, int], Outgoing]
"""(rows, first sequence) → one record batch of all of them."""
Lessen = Callable[[TopicPartition, Outgoing, RequestRefused], Any]
"""Makes a smaller row, to be stored instead of one that is too large; or raises."""
Reach = Callable[[Collection[TopicPartition]], None]
"""Adds partitions to the transaction, before anything is written there."""


class Store:
    """All that one task writes as one producer; used by one thread."""

    def __init__(
        self,
        cluster: Cluster,
        identity: Identity,
        encode: Encode,
        lessen: Lessen | None = None,
        reach: Reach | None = None,
    ) -> None:
        self._reach = reach
        self._cluster = cluster
        self._identity = identity
        self._encode = encode
        self._lessen = lessen or too_large
        self._ends: dict[TopicPartition, int] = {}  # of the logs, when this task first wrote to them
        self._earlier: dict[TopicPartition, Earlier] = {}

    def put(self, batches: Mapping[TopicPartition, Outgoing]) -> None:
        """Each is stored when it returns, now or by an earlier attempt."""
        if new := [topic_partition for topic_partition in batches if topic_partition not in self._ends]:
            if self._reach is not None:
                self._reach(new)
            self._ends |= self._cluster.latest(new)
            self._earlier |= {
                topic_partition: Earlier(self._cluster, topic_partition, self._identity)
                for topic_partition in new
            }
        outcomes = self._produce({topic_partition: batch.data for topic_partition, batch in batches.items()})
        for topic_partition, outcome in outcomes.items():
            if isinstance(outcome, RequestRefused):
                self._handle_refusal(topic_partition, batches[topic_partition], outcome)
            else:
                self._look_at(topic_partition, batches[topic_partition], outcome)

    def _produce(
        self, batches: Mapping[TopicPartition, bytearray]
    ) -> dict[TopicPartition, int | RequestRefused]:
        return self._cluster.produce_many(
            batches, transactional_id=self._identity.transactional_id, is_added=self._reach is not None
        )

    def _look_at(self, topic_partition: TopicPartition, batch: Outgoing, offset: int) -> None:
        if 0 <= offset < self._ends[topic_partition]:
            self._earlier[topic_partition].expect_at(offset, batch.sequence, batch.rows, len(batch.data))

    def _handle_refusal(
        self, topic_partition: TopicPartition, batch: Outgoing, refusal: RequestRefused
    ) -> None:
        if isinstance(refusal, DuplicateSequence):
            self._earlier[topic_partition].expect(batch.sequence, batch.rows)
        elif isinstance(refusal, OutOfOrderSequence):
            self._go_on(topic_partition, batch, refusal)
        elif isinstance(refusal, _TOO_LARGE):
            self._send_halves(topic_partition, batch, refusal)
        elif isinstance(refusal, _FENCED) and self._identity.transactional_id is None:
            raise type(refusal)(
                f"{topic_partition[0]}/{topic_partition[1]}: a later micro-batch of this writer is stored "
                "already, so the checkpoint was set back or replaced. Give the option writeId a new "
                "value to write these rows, once more if they were written before."
            )
        else:
            raise refusal

    def _go_on(self, topic_partition: TopicPartition, batch: Outgoing, refusal: RequestRefused) -> None:
        """Send what the log has not yet of this batch. The batches before it are stored."""
        known = self._cluster.producer(topic_partition, self._identity.producer_id)
        if known is None or known.epoch != self._identity.epoch:
            raise refusal
        stored = rows_between(known.last_sequence + 1, batch.sequence)
        if stored == 0 or stored > SEQUENCE_MASK // 2:
            raise refusal  # it is behind, and not by our doing
        if stored >= len(batch.rows):
            return self._earlier[topic_partition].expect(batch.sequence, batch.rows)
        self._look_again(topic_partition, self._encode(batch.rows.slice(0, stored), batch.sequence))
        rest = (batch.sequence + stored) & SEQUENCE_MASK
        return self.put({topic_partition: self._encode(batch.rows.slice(stored), rest)})

    def _look_again(self, topic_partition: TopicPartition, beginning: Outgoing) -> None:
        """It is stored; as one batch, most likely, and then the answer says where."""
        outcome = self._produce({topic_partition: beginning.data})[topic_partition]
        if isinstance(outcome, RequestRefused):
            self._earlier[topic_partition].expect(beginning.sequence, beginning.rows)
        else:
            self._look_at(topic_partition, beginning, outcome)

    def _send_halves(self, topic_partition: TopicPartition, batch: Outgoing, refusal: RequestRefused) -> None:
        count = len(batch.rows)
        if count == 1:
            return self.put(
                {topic_partition: self._encode(self._lessen(topic_partition, batch, refusal), batch.sequence)}
            )
        half = count // 2
        self.put({topic_partition: self._encode(batch.rows.slice(0, half), batch.sequence)})
        second = (batch.sequence + half) & SEQUENCE_MASK
        return self.put({topic_partition: self._encode(batch.rows.slice(half), second)})


def too_large(topic_partition: TopicPartition, batch: Outgoing, refusal: RequestRefused) -> NoReturn:
    raise type(refusal)(
        f"A row is too large for topic {topic_partition[0]}: {len(batch.data):,} bytes. Raise the topic's "
        "max.message.bytes, or write less in one row."
    )
