"""Idempotence: what the log remembers of each producer (L3, L6).

A producer numbers its records; a batch is admitted only if it begins where the producer's last one
ended. A batch that is one of the last five again is answered with its first offset and not
appended: five is how many requests a producer may have in flight.

Snapshots, files `<offset, 20 digits>.producers`, big endian, written once; the state as it was when
the log ended at that offset:

    4s    magic "PRps"
    u32   number of producers
    then for each:
      i64 id, i16 epoch, i32 last sequence, i64 time, i32 coordinator epoch, i64 transaction start,
      u8 number of batches, and for each: i32 first sequence, i32 last sequence, i64 offset, i64 time
    u32   CRC32C of all before it

Valid if magic, size and CRC hold and the log reaches the offset. Crash: a snapshot is written after the
batches below it were synced, and is not synced itself. The newest valid one at or below the log's end
is read, and the headers of the batches after it are replayed.

State changes when a batch is staged, because the next batch of the same request is checked against it;
`rollback` takes back what was staged when its write failed.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from postroad.errors import DuplicateSequence, InvalidProducerEpoch, InvalidRecord, OutOfOrderSequence
from postroad.log.checked_file import read_checked, with_checksum
from postroad.log.disk import Disk
from postroad.wire.batch import CONTROL, NAMED_PRODUCERS, NO_PRODUCER, TRANSACTIONAL, BatchHeader

SUFFIX: Final = ".producers"
NAMED_EXPIRY_MS: Final = 600_000  # a name is used for one request: there are many, and each is soon of no use
WINDOW: Final = 5  # max.in.flight.requests.per.connection of an idempotent producer
NONE: Final = -1

_SEQUENCE_MASK: Final = 0x7FFFFFFF
_MAGIC: Final = b"PRps"
_HEAD: Final = struct.Struct(">4sI")
_STATE: Final = struct.Struct(">qhiqiqB")
_BATCH: Final = struct.Struct(">iiqq")

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


class Producers:
    __slots__ = ("_states", "_undo")

    def __init__(self) -> None:
        self._states: dict[int, State] = {}
        self._undo: list[tuple[int, State | None, int, int, int]] = []

    def admit(
        self, producer_id: int, epoch: int, first: int, last: int, attributes: int, offset: int, now_ms: int
    ) -> tuple[int, int] | None:
        """Take in a producer's next batch, which will get `offset`; None if it is new.

        (offset, append time) of the first one if it is a repetition. Raises OutOfOrderSequence,
        DuplicateSequence, InvalidProducerEpoch. A producer that nothing is known of may begin anywhere, as
        Kafka allows: its state expires when it is idle for long.
        """
        if first < 0:
            self._admit_marker(producer_id, epoch, attributes, now_ms)
            return None
        state = self._states.get(producer_id)
        coordinator_epoch, transaction, window = NONE, NONE, ()  # type: tuple[int, int, Window]
        if state is not None:
            known_epoch, known_last, _, coordinator_epoch, transaction, window = state
            if epoch == known_epoch:
                if first != (known_last + 1) & _SEQUENCE_MASK:
                    repeated = _repeated(first, last, known_last, window)
                    self._states[producer_id] = (epoch, known_last, now_ms, *state[3:])  # it is in use
                    return repeated
            elif epoch < known_epoch:
                raise InvalidProducerEpoch()
            elif first != 0:
                raise OutOfOrderSequence(f"A new epoch begins at sequence 0, not {first}.")
            else:
                transaction, window = NONE, ()
        if attributes & TRANSACTIONAL and transaction == NONE:
            transaction = offset
        self._undo.append((producer_id, state, epoch, first, now_ms))
        window = (*window[1 - WINDOW :], (first, last, offset, now_ms))
        self._states[producer_id] = (epoch, last, now_ms, coordinator_epoch, transaction, window)
        return None

    def _admit_marker(self, producer_id: int, epoch: int, attributes: int, now_ms: int) -> None:
        """The end of a transaction has no sequence number; it closes the producer's open one."""
        if not attributes & CONTROL:
            raise InvalidRecord("A batch with a producer id has a sequence number, too.")
        state = self._states.get(producer_id)
        if state is not None and epoch < state[0]:
            raise InvalidProducerEpoch()
        self._undo.append((producer_id, state, epoch, 0, now_ms))
        self._states[producer_id] = _ended(state, epoch, now_ms)

    def replay(self, header: BatchHeader, now_ms: int) -> None:
        """As found in the log: it was admitted once and counts without a question.

        `now_ms` and not the batch's time, which the producer chose: a recovered producer is fresh.
        """
        producer_id = header.producer_id
        if producer_id == NO_PRODUCER:
            return
        state, epoch = self._states.get(producer_id), header.producer_epoch
        self._undo.append((producer_id, state, epoch, max(0, header.base_sequence), now_ms))
        if header.attributes & CONTROL:
            self._states[producer_id] = _ended(state, epoch, now_ms)
            return
        coordinator_epoch, transaction, window = state[3:] if state else (NONE, NONE, ())
        if state and epoch != state[0]:
            transaction, window = NONE, ()
        if header.attributes & TRANSACTIONAL and transaction == NONE:
            transaction = header.base_offset
        last = header.last_sequence
        batch = (header.base_sequence, last, header.base_offset, header.max_timestamp)
        window = (*window[1 - WINDOW :], batch)
        self._states[producer_id] = (epoch, last, now_ms, coordinator_epoch, transaction, window)

    def commit(self) -> None:
        """What was staged is written: nothing to take back any more."""
        if self._undo:
            self._undo.clear()

    def rollback(self) -> None:
        """The write failed: as before the staged batches.

        A producer that was unknown then must repeat the batch that failed first: were it forgotten,
        a later batch in flight would be admitted before it and the order lost (L6).
        """
        for producer_id, state, epoch, first, now_ms in reversed(self._undo):
            self._states[producer_id] = state or (epoch, first - 1, now_ms, NONE, NONE, ())
        self._undo.clear()

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

    def first_open_transaction(self, end_offset: int) -> int:
        """Where the oldest transaction that is still open begins; the log's end if there is none."""
        return min((state[4] for state in self._states.values() if state[4] != NONE), default=end_offset)

    def last_offsets(self) -> set[int]:
        """Base offset of each producer's last batch: compaction keeps these batches, if only empty."""
        return {state[5][-1][2] for state in self._states.values() if state[5]}

    def describe(self) -> list[Producer]:
        return [Producer(producer_id, *state[:5]) for producer_id, state in self._states.items()]

    def encode(self) -> bytes:
        assert not self._undo, "a snapshot of batches that are not written"
        parts = [_HEAD.pack(_MAGIC, len(self._states))]
        for producer_id, (*fields, window) in self._states.items():
            parts.append(_STATE.pack(producer_id, *fields, len(window)))
            parts += (_BATCH.pack(*batch) for batch in window)
        return with_checksum(b"".join(parts))


def read_producers(disk: Disk, path: str) -> Producers | None:
    """None if there is no valid snapshot at the path."""
    body = read_checked(disk, path)
    if body is None or len(body) < _HEAD.size:
        return None
    magic, count = _HEAD.unpack_from(body)
    return _decode(body, count) if magic == _MAGIC else None


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{offset:020d}{SUFFIX}"


def _decode(body: bytes, count: int) -> Producers:
    producers, position = Producers(), _HEAD.size
    for _ in range(count):
        producer_id, epoch, last, time, coordinator, transaction, size = _STATE.unpack_from(body, position)
        position += _STATE.size
        end = position + size * _BATCH.size
        window: Window = tuple(_BATCH.iter_unpack(body[position:end]))
        producers._states[producer_id] = (epoch, last, time, coordinator, transaction, window)
        position = end
    return producers


def _ended(state: State | None, epoch: int, now_ms: int) -> State:
    """The producer's transaction is over; a marker of a new epoch makes it begin at sequence 0 again."""
    if state is None or state[0] != epoch:
        return epoch, NONE, now_ms, NONE, NONE, ()
    return epoch, state[1], now_ms, state[3], NONE, state[5]


def _repeated(first: int, last: int, known_last: int, window: Window) -> tuple[int, int]:
    for known_first, known_end, offset, time in window:
        if known_first == first and known_end == last:
            return offset, time
    if len(window) == WINDOW and 0 < (window[0][0] - last) & _SEQUENCE_MASK < 1 << 30:
        raise DuplicateSequence()
    expected = (known_last + 1) & _SEQUENCE_MASK
    raise OutOfOrderSequence(f"Sequence {first} came where {expected} was expected.")
