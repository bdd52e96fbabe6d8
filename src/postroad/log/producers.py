"""Idempotence: what the log remembers of each producer (L3, L6).

A producer numbers its records; a batch is admitted only if it begins where the producer's last one
ended. A batch that is one of the last five again is answered with its first offset and not
appended: five is how many requests a producer may have in flight.

Snapshots, files `<offset, 20 digits>.producers`, big endian, written once; the state as it was when
the log ended at that offset:

    4s    magic "PRp2"
    u32   number of producers
    u32   number of ended transactions
    then for each producer:
      i64 id, i16 epoch, i32 last sequence, i64 time, i32 coordinator epoch, i64 transaction start,
      u8 number of batches, and for each: i32 first sequence, i32 last sequence, i64 offset, i64 time
    and for each transaction whose marker was not known to be committed:
      i64 offset of the marker, i64 where the transaction starts
    u32   CRC32C of all before it

A snapshot of the magic "PRps" knows of no ended transactions, nor of their number.

Valid if magic, size and CRC hold and the log reaches the offset. Crash: a snapshot is written after the
batches below it were synced, and is not synced itself. The newest valid one at or below the log's end
is read, and the headers of the batches after it are replayed.

State changes when a batch is staged, because the next batch of the same request is checked against it;
`rollback` takes back what was staged when its write failed.

Transactions. A producer's first transactional batch opens one, its marker ends it.

X1 an open transaction is ended by a marker only: neither a plain batch nor one of a newer epoch comes in.
X2 `open` and `ended` are in the order of the log, so the oldest one is found without looking at the others.
X3 what an ended transaction wrote is not stable until its marker is below the watermark: until then the
   marker may be lost with its leader, and the transaction is open again.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from postroad.errors import (
    DuplicateSequence,
    InvalidProducerEpoch,
    InvalidRecord,
    InvalidTransactionState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from postroad.log.aborted import AbortedTransaction
from postroad.log.checked_file import read_checked, with_checksum
from postroad.log.disk import Disk
from postroad.log.sequence_gaps import SequenceGaps
from postroad.wire.batch import CONTROL, NAMED_PRODUCERS, NO_PRODUCER, TRANSACTIONAL, BatchHeader
from postroad.wire.marker import Marker

SUFFIX: Final = ".producers"
NAMED_EXPIRY_MS: Final = 600_000  # a name is used for one request: there are many, and each is soon of no use
WINDOW: Final = 5  # max.in.flight.requests.per.connection of an idempotent producer
NONE: Final = -1

_SEQUENCE_MASK: Final = 0x7FFFFFFF
_HALF: Final = 1 << 30  # of all sequences: what lies nearer ahead than behind is ahead
_MAGIC: Final = b"PRp2"
_OLD_MAGIC: Final = b"PRps"
_HEAD: Final = struct.Struct(">4sII")
_OLD_HEAD: Final = struct.Struct(">4sI")
_STATE: Final = struct.Struct(">qhiqiqB")
_BATCH: Final = struct.Struct(">iiqq")
_ENDED: Final = struct.Struct(">qq")

Window = tuple[tuple[int, int, int, int], ...]
"""(first sequence, last sequence, offset, append time) of the last batches, the newest at the end."""

State = tuple[int, int, int, int, int, Window]
"""(epoch, last sequence, time of the last batch, coordinator epoch, transaction start, window).

A plain tuple that is replaced and never changed: cheap to make, and the old one is its own undo."""


class Producer(NamedTuple):
    """For DescribeProducers."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start: int


class OpensTransaction(InvalidTransactionState):
    """The batch would open a transaction, and nobody has said yet that the partition is part of one."""


class Producers:
    __slots__ = ("_gaps", "_states", "_undo", "ended", "open")

    def __init__(self) -> None:
        self._states: dict[int, State] = {}
        self._undo: list[tuple[int, State | None, int, int, int]] = []
        self._gaps = SequenceGaps()
        self.open: dict[int, int] = {}  # producer → where its open transaction starts, the oldest first
        self.ended: dict[int, int] = {}  # offset of a marker → where its transaction starts (X3)

    def admit(
        self,
        producer_id: int,
        epoch: int,
        first: int,
        last: int,
        attributes: int,
        offset: int,
        now_ms: int,
        may_open: bool = True,
    ) -> tuple[int, int] | None:
        """Take in a producer's next batch, which will get `offset`; None if it is new.

        (offset, append time) of the first one if it is a repetition. Raises OutOfOrderSequence or, where a
        batch before it may be on its way, NotEnoughReplicas (`sequence_gaps`); DuplicateSequence,
        InvalidProducerEpoch, InvalidTransactionState; OpensTransaction unless it `may_open` one. A producer
        that nothing is known of may begin anywhere, as Kafka allows: its state expires when it is idle for
        long.
        """
        if first < 0:
            raise InvalidRecord("A batch with a producer id has a sequence number, too.")
        state = self._states.get(producer_id)
        coordinator_epoch, transaction, window = NONE, NONE, ()  # type: tuple[int, int, Window]
        if state is not None:
            known_epoch, known_last, _, coordinator_epoch, transaction, window = state
            if epoch == known_epoch:
                if first != (known_last + 1) & _SEQUENCE_MASK:
                    self._check_gap(producer_id, epoch, known_last, first, now_ms)
                    repeated = _repeated(first, last, known_last, window)
                    self._states[producer_id] = (epoch, known_last, now_ms, *state[3:])  # it is in use
                    return repeated
            elif epoch < known_epoch:
                raise InvalidProducerEpoch()
            elif transaction != NONE:
                raise _still_open(attributes, may_open)
            elif first != 0:
                raise self._gaps.refuse(producer_id, epoch, 0, first, now_ms)
            else:
                window = ()
        if attributes & TRANSACTIONAL:
            if transaction == NONE:
                if not may_open:
                    raise OpensTransaction()
                transaction = self.open[producer_id] = offset
        elif transaction != NONE:
            raise InvalidTransactionState(
                "The producer has an open transaction, and this batch is not in it."
            )
        self._undo.append((producer_id, state, epoch, first, now_ms))
        window = (*window[1 - WINDOW :], (first, last, offset, now_ms))
        self._states[producer_id] = (epoch, last, now_ms, coordinator_epoch, transaction, window)
        return None

    def _check_gap(self, producer_id: int, epoch: int, known_last: int, first: int, now_ms: int) -> None:
        expected = (known_last + 1) & _SEQUENCE_MASK
        if (first - expected) & _SEQUENCE_MASK < _HALF:
            raise self._gaps.refuse(producer_id, epoch, expected, first, now_ms)

    def needs_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, strict: bool) -> bool:
        """Whether this end of a transaction is new; False if it is there already, or nothing is to end.

        `strict`: each transaction has an epoch of its own, and its marker a higher one than its batches
        (KIP-890). Raises InvalidProducerEpoch, TransactionCoordinatorFenced.
        """
        state = self._states.get(producer_id)
        if state is None:  # also where nothing was written: batches of an older epoch may be on their way
            return True
        known_epoch, _, _, known_coordinator, transaction, _ = state
        if coordinator_epoch < known_coordinator:
            raise TransactionCoordinatorFenced()
        if epoch < known_epoch or (strict and epoch == known_epoch and transaction != NONE):
            raise InvalidProducerEpoch()
        # A new coordinator says so here, too: what the one before it sent may be on its way.
        return epoch > known_epoch or transaction != NONE or coordinator_epoch > known_coordinator

    def end(
        self, producer_id: int, epoch: int, marker: Marker, offset: int, now_ms: int
    ) -> AbortedTransaction | None:
        """The producer's transaction ends with this marker at `offset`; an entry if it was aborted."""
        state = self._states.get(producer_id)
        self._undo.append((producer_id, state, epoch, NONE, now_ms))
        first = self.open.pop(producer_id, marker.first_offset)
        known_coordinator = NONE if state is None else state[3]
        coordinator_epoch = max(known_coordinator, marker.coordinator_epoch)
        if state is None or state[0] != epoch:  # the new epoch begins at sequence 0 again
            self._states[producer_id] = (epoch, NONE, now_ms, coordinator_epoch, NONE, ())
        else:
            self._states[producer_id] = (epoch, state[1], now_ms, coordinator_epoch, NONE, state[5])
        if first == NONE:
            return None
        self.ended[offset] = first
        if marker.commit:
            return None
        return AbortedTransaction(producer_id, first, offset, self.first_open_transaction(offset + 1))

    def replay(
        self, header: BatchHeader, now_ms: int, marker: Marker | None = None
    ) -> AbortedTransaction | None:
        """As found in the log: it was admitted once and counts without a question.

        `now_ms` and not the batch's time, which the producer chose: a recovered producer is fresh. A control
        batch comes with its marker; the entry of a transaction that it aborts is returned.
        """
        producer_id = header.producer_id
        if producer_id == NO_PRODUCER:
            return None
        state, epoch = self._states.get(producer_id), header.producer_epoch
        if header.attributes & CONTROL:
            if marker is None:
                return None
            return self.end(producer_id, epoch, marker, header.base_offset, now_ms)
        self._undo.append((producer_id, state, epoch, max(0, header.base_sequence), now_ms))
        coordinator_epoch, transaction, window = state[3:] if state else (NONE, NONE, ())
        if state and epoch != state[0]:
            window = ()
        if header.attributes & TRANSACTIONAL and transaction == NONE:
            transaction = self.open[producer_id] = header.base_offset
        last = header.last_sequence
        batch = (header.base_sequence, last, header.base_offset, header.max_timestamp)
        window = (*window[1 - WINDOW :], batch)
        self._states[producer_id] = (epoch, last, now_ms, coordinator_epoch, transaction, window)
        return None

    def commit(self) -> None:
        """What was staged is written: nothing to take back any more."""
        if self._undo:
            self._undo.clear()

    def rollback(self, end_offset: int) -> None:
        """The write failed and the log ends at `end_offset`: as before the staged batches.

        A producer that was unknown then must repeat the batch that failed first: were it forgotten,
        a later batch in flight would be admitted before it and the order lost (L6). A marker that failed is
        as if it had never come.
        """
        for producer_id, state, epoch, first, now_ms in reversed(self._undo):
            if state is not None or first != NONE:
                self._states[producer_id] = state or (epoch, first - 1, now_ms, NONE, NONE, ())
            else:
                del self._states[producer_id]
        if self._undo and (self.open or self.ended):
            self._find_open()
            self.ended = {marker: first for marker, first in self.ended.items() if marker < end_offset}
        self._undo.clear()

    def _find_open(self) -> None:
        """Put the open transactions in order again (X2)."""
        found = [(state[4], producer_id) for producer_id, state in self._states.items() if state[4] != NONE]
        self.open = {producer_id: first for first, producer_id in sorted(found)}

    def expire(self, now_ms: int, expiry_ms: int) -> None:
        """Forget producers that were idle for long and have no open transaction; named ones sooner."""
        named_ms = min(expiry_ms, NAMED_EXPIRY_MS)
        idle = [
            producer_id
            for producer_id, (_, _, time, _, transaction, _) in self._states.items()
            if transaction == NONE
            and time + (named_ms if producer_id >= NAMED_PRODUCERS else expiry_ms) < now_ms
        ]
        for producer_id in idle:
            del self._states[producer_id]
            self._gaps.forget(producer_id)

    def epochs(self, producer_id: int) -> tuple[int, int]:
        """Return a known producer's epoch, and that of the coordinator which wrote its last marker."""
        state = self._states[producer_id]
        return state[0], state[3]

    def first_open_transaction(self, end_offset: int) -> int:
        """Where the oldest transaction that is still open begins; the log's end if there is none."""
        return next(iter(self.open.values()), end_offset)

    def stable_offset(self, watermark: int) -> int:
        """Below it, and below the watermark, every transaction has ended for good (X3)."""
        ended = self.ended
        while ended and (marker := next(iter(ended))) < watermark:
            del ended[marker]
        return min(watermark, self.first_open_transaction(watermark), *ended.values())

    def last_offsets(self) -> set[int]:
        """Base offset of each producer's last batch: compaction keeps these batches, if only empty."""
        return {state[5][-1][2] for state in self._states.values() if state[5]}

    def last_epochs(self) -> dict[int, tuple[int, int]]:
        """(epoch, base offset of the last batch with records, -1 if there is none) of each producer."""
        return {
            producer_id: (state[0], state[5][-1][2] if state[5] else NONE)
            for producer_id, state in self._states.items()
        }

    def describe(self) -> list[Producer]:
        return [Producer(producer_id, *state[:5]) for producer_id, state in self._states.items()]

    def encode(self) -> bytes:
        assert not self._undo, "a snapshot of batches that are not written"
        parts = [_HEAD.pack(_MAGIC, len(self._states), len(self.ended))]
        for producer_id, (*fields, window) in self._states.items():
            parts.append(_STATE.pack(producer_id, *fields, len(window)))
            parts += (_BATCH.pack(*batch) for batch in window)
        parts += (_ENDED.pack(*ended) for ended in self.ended.items())
        return with_checksum(b"".join(parts))


def read_producers(disk: Disk, path: str) -> Producers | None:
    """None if there is no valid snapshot at the path."""
    body = read_checked(disk, path)
    if body is None or len(body) < _OLD_HEAD.size:
        return None
    if body.startswith(_OLD_MAGIC):
        return _decode(body, _OLD_HEAD.size, _OLD_HEAD.unpack_from(body)[1], 0)
    if not body.startswith(_MAGIC) or len(body) < _HEAD.size:
        return None
    return _decode(body, _HEAD.size, *_HEAD.unpack_from(body)[1:])


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{offset:020d}{SUFFIX}"


def _decode(body: bytes, position: int, count: int, ended_count: int) -> Producers:
    producers = Producers()
    for _ in range(count):
        producer_id, epoch, last, time, coordinator, transaction, size = _STATE.unpack_from(body, position)
        position += _STATE.size
        end = position + size * _BATCH.size
        window: Window = tuple(_BATCH.iter_unpack(body[position:end]))
        producers._states[producer_id] = (epoch, last, time, coordinator, transaction, window)
        position = end
    producers.ended = dict(_ENDED.iter_unpack(body[position : position + ended_count * _ENDED.size]))
    producers._find_open()
    return producers


def _still_open(attributes: int, may_open: bool) -> InvalidTransactionState:
    """The transaction of an older epoch is. A batch of the next one may wait for its marker."""
    if attributes & TRANSACTIONAL and not may_open:
        return OpensTransaction()
    return InvalidTransactionState("The producer's transaction of an older epoch is still open.")


def _repeated(first: int, last: int, known_last: int, window: Window) -> tuple[int, int]:
    for known_first, known_end, offset, time in window:
        if known_first == first and known_end == last:
            return offset, time
    if len(window) == WINDOW and 0 < (window[0][0] - last) & _SEQUENCE_MASK < _HALF:
        raise DuplicateSequence()
    expected = (known_last + 1) & _SEQUENCE_MASK
    raise OutOfOrderSequence(f"Sequence {first} came where {expected} was expected.")
