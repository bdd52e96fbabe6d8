"""A partition of an internal topic as a log of keys and values: it makes a coordinator's decisions durable.

What is decided in one turn is appended as one batch, which is there whole or not at all after a crash. Each
decision hears when it is committed, in the order of the log, or that it could not be written. Whoever reads
the log from its start on, `load`, comes to the same state.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from postroad.broker.doubts import DamagedRange, Suspect, restored_records, suspects_in
from postroad.broker.outage import Outage
from postroad.broker.own_batch import append_own
from postroad.broker.partition import Partition
from postroad.broker.replies import Reply
from postroad.broker.turn import Turn
from postroad.errors import (
    ApiError,
    CoordinatorNotAvailable,
    CorruptMessage,
    NotCoordinator,
    NotLeaderOrFollower,
)
from postroad.log.partition_log import PartitionLog, Slice
from postroad.log.scan import DamagedBatch
from postroad.system.clock import Clock
from postroad.system.workers import Workers
from postroad.wire import batch as batches
from postroad.wire.records import Record as WireRecord
from postroad.wire.records import decode_records

LOAD_BYTES: Final = 1 << 18  # read, then applied at once while loading: some 10 ms of the loop's time
BATCH_BYTES: Final = 1 << 20  # a batch is closed when it has reached this

KeyValue = tuple[bytes, bytes | None]

log = logging.getLogger(__name__)


def coordinator_not_available(error: ApiError) -> ApiError:
    """What a coordinator tells its clients: try again, here or where its partition is led now."""
    if isinstance(error, NotLeaderOrFollower):
        return NotCoordinator()
    return CoordinatorNotAvailable(str(error))


class Stored(NamedTuple):
    """A record as it was read back."""

    offset: int
    key: bytes
    value: bytes | None


class RecordLog:
    def __init__(
        self,
        partition: Partition,
        clock: Clock,
        turn: Turn,
        refusal: Callable[[ApiError], ApiError] = coordinator_not_available,
    ) -> None:
        """`refusal` is what those are told whose records could not be written."""
        self.partition = partition
        self._refusal = refusal
        self._clock = clock
        self._turn = turn
        self._gathered: list[tuple[Sequence[KeyValue], Reply]] = []
        self._outage = Outage(log, f"the state in {partition.topic}-{partition.index}")
        self._loaded_to = 0  # the offset up to which records were applied

    def append(self, records: Sequence[KeyValue], reply: Reply) -> None:
        """All of them in one batch, perhaps with others'. `reply` is never called before this returns."""
        if not self._gathered:
            self._turn.gather(self)
        self._gathered.append((records, reply))

    def gather(self) -> None:
        """Called by the turn."""
        gathered, self._gathered = self._gathered, []
        appends: list[tuple[Sequence[KeyValue], Reply]] = []
        size = 0
        for records, reply in gathered:
            appends.append((records, reply))
            for key, value in records:
                size += len(key) + len(value or b"")
            if size >= BATCH_BYTES:
                self._stage(appends)
                appends, size = [], 0
        if appends:
            self._stage(appends)

    def _stage(self, appends: list[tuple[Sequence[KeyValue], Reply]]) -> None:
        now_ms = self._clock.now_ms()
        pairs = [pair for records, _ in appends for pair in records]
        made = [WireRecord(n, now_ms, key, value) for n, (key, value) in enumerate(pairs)]
        committed = partial(self._committed, [reply for _, reply in appends])
        try:
            append_own(self.partition, self._turn, made, now_ms, committed)
        except ApiError as error:
            committed(error)

    def _committed(self, replies: Sequence[Reply], error: ApiError | None) -> None:
        where = self.partition.topic, self.partition.index
        if error is None:
            self._outage.worked()
        else:
            if self.partition.leads:  # else the node stops, or another leads: nothing is wrong with the disk
                self._outage.failed(error)
            error = self._refusal(error)
        for reply in replies:
            try:
                reply(error)
            except Exception:  # the others hear of theirs all the same
                log.exception("%s-%d: a change could not be completed", *where)

    async def load(
        self, apply: Callable[[Stored], None], workers: Workers, damaged: Callable[[DamagedRange], None]
    ) -> None:
        """Apply all records of the partition. Raises what reading them raises; call it again.

        The log is looked at on the loop and its bytes are read in a thread, piece by piece, so that
        neither the loop nor the memory notices a large partition. A damaged batch that can't be put right
        is passed over, and `damaged` hears of it in its turn.
        """
        self._loaded_to = max(self._loaded_to, self.partition.log.start_offset)
        end = self.partition.high_watermark
        while self._loaded_to < end:
            try:
                read = self.partition.log.read(self._loaded_to, LOAD_BYTES, end)
            except CorruptMessage as damage:
                found = await self._pass_over(apply, damaged, workers, damage)
                if found is not None:
                    damaged(found)
                continue
            if read is None:
                break
            with contextlib.suppress(DamagedBatch):  # the next look ends before it, or finds it at once
                work = partial(read_records, self.partition.log, read, self._loaded_to)
                offset, records = await workers.call(work)
                for record in records:
                    self._apply(record, apply, damaged)
                self._loaded_to = offset

    def _apply(
        self, record: Stored, apply: Callable[[Stored], None], damaged: Callable[[DamagedRange], None]
    ) -> None:
        """A record that nobody understands costs what it held, not all that lies behind it."""
        try:
            apply(record)
        except Exception:
            where = self.partition.topic, self.partition.index, record.offset
            log.exception("%s-%d: the record at offset %d can't be applied", *where)
            damaged(DamagedRange(record.offset, record.offset + 1, [Suspect(record.key, record.value)]))

    async def _pass_over(
        self,
        apply: Callable[[Stored], None],
        damaged: Callable[[DamagedRange], None],
        workers: Workers,
        damage: CorruptMessage,
    ) -> DamagedRange | None:
        """Go on behind a damaged batch. One flipped bit is put right; else nobody knows what it held."""
        first = self._loaded_to
        search = self.partition.log.damage_at(first)
        await workers.call(search.run)
        end = self.partition.log.pass_over(search)
        records = await workers.call(partial(restored_records, search.content))
        for record in records or ():
            self._apply(Stored(first, record.key or b"", record.value), apply, damaged)
        self._loaded_to = end
        where = self.partition.topic, self.partition.index, first, end - 1
        if records is not None:
            log.warning("%s-%d: one flipped bit was put right at offsets %d to %d. %s", *where, damage)
            return None
        lost = "%s-%d is damaged: what its offsets %d to %d held is not known any more. %s"
        log.error(lost, *where, damage)
        return DamagedRange(first, end, suspects_in(search.content))


def read_records(log_: PartitionLog, read: Slice, offset: int) -> tuple[int, list[Stored]]:
    """In a thread: (the offset after the slice, the records in it from `offset` on)."""
    found: list[Stored] = []
    log_.verify(read)
    data = memoryview(read.file.read(read.position, read.length))
    for position, header in batches.walk(data):
        if header.next_offset > offset:
            inside = _decoded(read, position, data[position : position + header.size])
            found += [Stored(r.offset, r.key or b"", r.value) for r in inside if r.offset >= offset]
            offset = header.next_offset
    return offset, found


def _decoded(read: Slice, position: int, batch: memoryview) -> list[WireRecord]:
    try:
        return decode_records(batch)
    except ApiError as error:
        read.segment.damaged.add(read.position + position)
        raise DamagedBatch(read.position + position, f"can't be decoded: {error}") from error
