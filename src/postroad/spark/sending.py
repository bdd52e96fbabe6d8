"""Sends a task's batches and sees each through, so that it is stored once.

One batch of a partition is under way at a time, those of all partitions together. Batches are encoded while
the ones before are on their way; at most `ROUNDS_AHEAD` wait. What a broker answers, and what it means here:

    an offset               stored, now or by an earlier attempt
    DuplicateSequence       stored by an earlier attempt, long ago
    InvalidProducerEpoch    a later micro-batch was written: this one was stored as a whole
    OutOfOrderSequence      Apache Kafka's word for "long ago", or the rows are not those of before:
                            the broker is asked up to where it has them
    MessageTooLarge         sent in halves, down to the single row
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

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
from postroad.spark.identity import Identity
from postroad.spark.router import Place

ROUNDS_AHEAD: Final = 2
SEQUENCE_MASK: Final = 0x7FFFFFFF

_FENCED: Final = (InvalidProducerEpoch, ProducerFenced)
_TOO_LARGE: Final = (MessageTooLarge, RecordListTooLarge)


class Outgoing(NamedTuple):
    """Rows of one partition as a record batch."""

    sequence: int  # of the first row
    rows: Any
    data: bytes

    @property
    def last(self) -> int:
        return (self.sequence + len(self.rows) - 1) & SEQUENCE_MASK


Encode = Callable[[Any, int], Outgoing]
"""(rows, first sequence) → one record batch of all of them."""


class DifferentRows(OutOfOrderSequence):
    """A repeated task has other rows than before, or in another order."""


class Sender:
    """`with Sender(…) as sender:` then `send`; when the block ends without an error all is stored."""

    def __init__(self, cluster: Cluster, identity: Identity, encode: Encode) -> None:
        self._cluster = cluster
        self._identity = identity
        self._encode = encode
        self._passed: set[Place] = set()  # by a later micro-batch
        self._thread = ThreadPoolExecutor(1, "postroad-sink")
        self._under_way: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._wait(0)
        finally:
            self._thread.shutdown(cancel_futures=True)

    def send(self, batches: dict[Place, Outgoing]) -> None:
        """Returns when few enough are under way; raises what became of those before."""
        self._wait(ROUNDS_AHEAD - 1)
        self._under_way.append(self._thread.submit(self._send, batches))

    def _wait(self, most: int) -> None:
        while len(self._under_way) > most:
            self._under_way.popleft().result()

    # --- in the thread -------------------------------------------------------------------------

    def _send(self, batches: dict[Place, Outgoing]) -> None:
        wanted = {place: batch for place, batch in batches.items() if place not in self._passed}
        outcomes = self._cluster.produce_many({place: batch.data for place, batch in wanted.items()})
        for place, outcome in outcomes.items():
            if isinstance(outcome, RequestRefused):
                self._settle(place, wanted[place], outcome)

    def _settle(self, place: Place, batch: Outgoing, refusal: RequestRefused) -> None:
        if isinstance(refusal, _FENCED):
            self._passed.add(place)
        elif isinstance(refusal, OutOfOrderSequence):
            self._expect_stored(place, batch)
        elif isinstance(refusal, _TOO_LARGE):
            self._send_halves(place, batch, refusal)
        elif not isinstance(refusal, DuplicateSequence):
            raise refusal

    def _expect_stored(self, place: Place, batch: Outgoing) -> None:
        """The batches before this one are stored. If the log has more of this task's, it has all of this one
        too, or it was cut elsewhere and is of other rows."""
        known = self._cluster.producer(place, self._identity.producer_id)
        if known is not None and known.epoch > self._identity.epoch:
            self._passed.add(place)
            return
        ahead = -1 if known is None else (known.last_sequence - batch.last) & SEQUENCE_MASK
        if not 0 <= ahead < SEQUENCE_MASK // 2:
            raise different_rows(place)

    def _send_halves(self, place: Place, batch: Outgoing, refusal: RequestRefused) -> None:
        count = len(batch.rows)
        if count == 1:
            raise type(refusal)(
                f"A row is too large for topic {place[0]}: {len(batch.data):,} bytes. Raise the topic's "
                "max.message.bytes, or write less in one row."
            )
        half = count // 2
        self._send({place: self._encode(batch.rows.slice(0, half), batch.sequence)})
        second = (batch.sequence + half) & SEQUENCE_MASK
        self._send({place: self._encode(batch.rows.slice(half), second)})


def different_rows(place: Place) -> DifferentRows:
    return DifferentRows(
        f"{place[0]}/{place[1]}: the task was repeated with other rows than before, or in another order, so "
        "nobody can tell which of them are stored. Make them the same each time (sort within foreachBatch, "
        "and write there with the options writeId and writeBatch), or give the option writeId a new value "
        "to write the whole micro-batch once more."
    )
