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

from collections.abc import Callable, Mapping
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
from postroad.spark.router import Place
from postroad.spark.stored import SEQUENCE_MASK, Earlier, rows_between

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
    )
    return Outgoing(sequence, rows, data)


Encode = Callable[[Any, int], Outgoing]
"""(rows, first sequence) → one record batch of all of them."""
Lessen = Callable[[Place, Outgoing, RequestRefused], Any]
"""Of a single row that is too large: a smaller one to store in its place; or it raises."""


class Store:
    """All that one task writes as one producer; used by one thread."""

    def __init__(
        self, cluster: Cluster, identity: Identity, encode: Encode, lessen: Lessen | None = None
    ) -> None:
        self._cluster = cluster
        self._identity = identity
        self._encode = encode
        self._lessen = lessen or too_large
        self._ends: dict[Place, int] = {}  # of the logs, when this task first wrote to them
        self._earlier: dict[Place, Earlier] = {}

    def put(self, batches: Mapping[Place, Outgoing]) -> None:
        """Each is stored when it returns, now or by an earlier attempt."""
        if new := [place for place in batches if place not in self._ends]:
            self._ends |= self._cluster.latest(new)
            self._earlier |= {place: Earlier(self._cluster, place, self._identity) for place in new}
        outcomes = self._cluster.produce_many({place: batch.data for place, batch in batches.items()})
        for place, outcome in outcomes.items():
            if isinstance(outcome, RequestRefused):
                self._settle(place, batches[place], outcome)
            else:
                self._look_at(place, batches[place], outcome)

    def _look_at(self, place: Place, batch: Outgoing, offset: int) -> None:
        if 0 <= offset < self._ends[place]:
            self._earlier[place].expect_at(offset, batch.sequence, batch.rows, len(batch.data))

    def _settle(self, place: Place, batch: Outgoing, refusal: RequestRefused) -> None:
        if isinstance(refusal, DuplicateSequence):
            self._earlier[place].expect(batch.sequence, batch.rows)
        elif isinstance(refusal, OutOfOrderSequence):
            self._go_on(place, batch, refusal)
        elif isinstance(refusal, _TOO_LARGE):
            self._send_halves(place, batch, refusal)
        elif isinstance(refusal, _FENCED):
            raise type(refusal)(
                f"{place[0]}/{place[1]}: a later micro-batch of this writer is stored already, so the "
                "checkpoint was set back or replaced. Give the option writeId a new value to write these "
                "rows, once more if they were written before."
            )
        else:
            raise refusal

    def _go_on(self, place: Place, batch: Outgoing, refusal: RequestRefused) -> None:
        """Send what the log has not yet of this batch. The batches before it are stored."""
        known = self._cluster.producer(place, self._identity.producer_id)
        if known is None or known.epoch != self._identity.epoch:
            raise refusal
        stored = rows_between(known.last_sequence + 1, batch.sequence)
        if stored == 0 or stored > SEQUENCE_MASK // 2:
            raise refusal  # it is behind, and not by our doing
        if stored >= len(batch.rows):
            return self._earlier[place].expect(batch.sequence, batch.rows)
        self._look_again(place, self._encode(batch.rows.slice(0, stored), batch.sequence))
        rest = (batch.sequence + stored) & SEQUENCE_MASK
        return self.put({place: self._encode(batch.rows.slice(stored), rest)})

    def _look_again(self, place: Place, beginning: Outgoing) -> None:
        """It is stored; as one batch, most likely, and then the answer says where."""
        outcome = self._cluster.produce_many({place: beginning.data})[place]
        if isinstance(outcome, RequestRefused):
            self._earlier[place].expect(beginning.sequence, beginning.rows)
        else:
            self._look_at(place, beginning, outcome)

    def _send_halves(self, place: Place, batch: Outgoing, refusal: RequestRefused) -> None:
        count = len(batch.rows)
        if count == 1:
            return self.put({place: self._encode(self._lessen(place, batch, refusal), batch.sequence)})
        half = count // 2
        self.put({place: self._encode(batch.rows.slice(0, half), batch.sequence)})
        second = (batch.sequence + half) & SEQUENCE_MASK
        return self.put({place: self._encode(batch.rows.slice(half), second)})


def too_large(place: Place, batch: Outgoing, refusal: RequestRefused) -> NoReturn:
    raise type(refusal)(
        f"A row is too large for topic {place[0]}: {len(batch.data):,} bytes. Raise the topic's "
        "max.message.bytes, or write less in one row."
    )
