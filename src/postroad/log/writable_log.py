"""The half of a partition's log that grows: batches are staged, written, synced.

`append` checks and stages a batch (no system call), `write` puts all that is staged into the newest
segment with one call, `begin_sync` → SyncJob.run (in a thread) → `finish_sync` make it durable.

P1 start ≤ synced ≤ written ≤ end offset; a failed write takes `end_offset` back to `written_offset`.
P2 a write is all or nothing, also where it fills a segment and goes on in the next.
P3 a failed sync is final: nobody knows which pages were lost, and a second sync would claim success.
   The log refuses appends from then on; reads go on. Opening it anew recovers it: what was written and
   not synced is kept as far as it is whole, and written anew (recovery, R1). A sync that found no
   descriptor to open its file with has not been tried: it is put off.
P4 a segment's base offset is the end of the one before; only the newest one is ever appended to.
P5 leader epochs never fall along the log (L12): a leader begins its epoch before its first append, a
   follower refuses a batch of an older one.
"""

from __future__ import annotations

import contextlib
import errno
import struct
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from postroad.errors import (
    CorruptMessage,
    InvalidTimestamp,
    StorageFailed,
)
from postroad.log.aborted import AbortedTransaction, encode_aborted
from postroad.log.checkpoint import Point
from postroad.log.copies import checked_copy
from postroad.log.disk import DESCRIPTORS_SHORT
from postroad.log.epochs import UNKNOWN, LeaderEpochs, encode_epochs
from postroad.log.index import FLUSH_ENTRIES
from postroad.log.recovery import Recovered
from postroad.log.run import NO_BATCH, Run
from postroad.log.segment import NO_TIME, Segment
from postroad.log.segment_cache import SegmentCache
from postroad.log.settings import LOG_APPEND_TIME, LogSettings
from postroad.log.sync import Snapshot, SyncJob
from postroad.wire.batch import CONTROL, LENGTH_END, BatchHeader, Fields, only_batch, stamp_append_time
from postroad.wire.marker import Marker, make_marker, read_marker

if TYPE_CHECKING:
    from postroad.log.truncation import TruncationJob

# The disk is full or descriptors are short: nothing is broken, and the next write may succeed.
_PASSING: Final = DESCRIPTORS_SHORT | {errno.ENOSPC, errno.EDQUOT, errno.ENOMEM}

_PLACE: Final = struct.Struct(">qii")  # base offset, length, leader epoch: one call instead of two
_new: Final = tuple.__new__  # instead of a named tuple's own, which is a function in Python


class Appended(NamedTuple):
    base_offset: int
    append_time_ms: int  # -1 unless the topic's timestamps are the broker's
    duplicate: bool


class WritableLog:
    def __init__(self, found: Recovered, settings: LogSettings, cache: SegmentCache) -> None:
        self.settings = settings
        self.cache = cache
        self._adopt(found)

    def _adopt(self, found: Recovered) -> None:
        """Begin with what was found on the disk; all of it is synced."""
        self.disk = found.disk
        self.directory = found.directory
        self.recovery = found.report
        self.start_offset = found.start_offset
        self.end_offset = self.written_offset = self.synced_offset = found.end_offset
        self.failed: StorageFailed | None = None
        self.segments = found.segments
        self.active = found.segments[-1]
        self.checkpoint = found.checkpoint
        self.watermark = found.watermark  # kept in the checkpoint as a hint; whoever knows it sets it
        self.leader_epochs = found.epochs
        self.producer_states = found.producers
        self.led_epoch = UNKNOWN  # the epoch in which this node leads, if it does
        self._epochs_before: list[tuple[int, int]] | None = None  # without those that have no written batch
        self._full_runs: list[Run] = []  # before the current one; each fills its segment
        self._run = self._run_of(self.active, found.first_ms)
        self._unsynced: list[Segment] = []  # rolled since the last sync
        self._unsynced_names = found.unsynced_names
        self._sealed_offset = found.end_offset if found.sealed else None  # where closing it changes nothing
        self._unsynced_checkpoint = False
        self._unsaved_epochs = found.unsaved_epochs
        self._snapshot: Snapshot | None = None
        self._unsaved_aborted = {  # lists of aborted transactions, to be saved before the next snapshot
            one: encode_aborted(one.aborted) for one in found.segments if not one.aborted_saved
        }
        self._sync: SyncJob | None = None  # under way
        self._truncation: TruncationJob | None = None  # under way: nothing else may change the log

    # --- in

    def begin_epoch(self, leader_epoch: int) -> None:
        """This node leads from here on: the epoch starts at the log's end, before anything is appended.

        A follower that has batches of an epoch in between can so be told where it has parted (KIP-279). The
        epoch is stored with its first batch.
        """
        self._begin_epoch(leader_epoch, self.end_offset)
        self.led_epoch = leader_epoch

    def end_epoch(self) -> None:
        """This node leads no longer. An epoch in which nothing was appended is forgotten.

        Else it would keep out the next leader's batches of an older one.
        """
        if self.led_epoch == UNKNOWN:
            return
        self.led_epoch = UNKNOWN
        if self.end_offset == self.written_offset:
            self._take_back_epochs()
        entries = self.leader_epochs.entries
        if entries and entries[-1][1] >= self.end_offset:
            self.leader_epochs.truncate(self.end_offset)
            self._unsaved_epochs = True

    def append(
        self,
        batch: memoryview,
        header: Fields,
        leader_epoch: int,
        now_ms: int,
        *,
        any_size: bool = False,
        may_open: bool = True,
    ) -> Appended:
        """Stage one producer's batch, checked by `wire.batch.check` and writable; it gets its offset.

        `leader_epoch` is the one that was begun last. The bytes must stay as they are until `write`.
        A duplicate is not staged. `any_size`: the limits are for those who publish; where it is larger than
        a segment it is one by itself. Raises StorageFailed, MessageTooLarge, InvalidTimestamp, InvalidRecord,
        OutOfOrderSequence, DuplicateSequence, InvalidProducerEpoch, InvalidTransactionState; OpensTransaction
        unless it `may_open` one; nothing has changed then. Ends of transactions come by `append_marker`.
        """
        if self.failed is not None:
            raise self.failed.with_traceback(None)
        _, length, _, _, _, attributes, delta, oldest, newest, producer, producer_epoch, sequence, count = (
            header
        )
        settings = self.settings
        size = length + LENGTH_END
        too_large = size > settings.max_message_bytes or size > settings.segment_bytes
        if count != delta + 1 or (too_large and not any_size):
            raise settings.refusal(size)
        assert size == len(batch), "more than one batch, or less"
        assert leader_epoch == self.led_epoch, f"epoch {leader_epoch} was not begun: {self.led_epoch} was"
        append_time = -1
        if settings.timestamp_type == LOG_APPEND_TIME:
            append_time = newest = now_ms
        elif newest - now_ms > settings.timestamp_after_max_ms or (
            now_ms - oldest > settings.timestamp_before_max_ms and oldest >= 0
        ):
            raise InvalidTimestamp()
        offset = self.end_offset
        if producer >= 0:
            last = sequence + delta & 0x7FFFFFFF
            repeated = self.producer_states.admit(
                producer, producer_epoch, sequence, last, attributes, offset, now_ms, may_open
            )
            if repeated is not None:
                return _new(Appended, (repeated[0], repeated[1] if append_time >= 0 else -1, True))
        _PLACE.pack_into(batch, 0, offset, length, leader_epoch)
        if append_time >= 0:
            stamp_append_time(batch, 0, size, now_ms)

        run = self._run
        position = run.position
        if (
            not position
            or position + size > settings.segment_bytes
            or now_ms >= run.first_ms + settings.segment_ms
        ):
            run, position = self._begin_segment(now_ms), 0
        if position >= run.due:
            run.entries.append((offset, position, run.max_timestamp))
            run.due = position + settings.index_interval_bytes
        if newest > run.max_timestamp:
            run.max_timestamp = newest
        run.buffers.append(batch)
        run.position = position + size
        self.end_offset = offset + count
        return _new(Appended, (offset, append_time, False))

    def append_copy(self, batches: memoryview, leader_epoch: int, now_ms: int) -> int:
        """Stage what the leader of this epoch has sent, byte for byte; returns how many bytes were staged.

        Each is checked: its CRC, and that neither offsets nor leader epochs fall; offsets may have gaps.
        A batch that is cut at the end is left out. The bytes must stay as they are until `write`. Raises
        StorageFailed, CorruptMessage, MisplacedBatch; the batches before the bad one are staged then.
        """
        if self.failed is not None:
            raise self.failed.with_traceback(None)
        assert self._truncation is None, "the log is being truncated"
        self.end_epoch()
        if not self.checkpoint.current.copied:
            self._mark_copied()
        position, last_epoch = 0, self.leader_epochs.last
        while fields := checked_copy(batches, position, self.end_offset, last_epoch, leader_epoch):
            base, length, epoch, _, _, attributes, delta, _, newest, producer, _, _, _ = fields
            if epoch != last_epoch:
                # From the log's end on, though a gap may follow: whoever has batches of an older epoch there
                # has what this log lacks, and must hear so.
                self._begin_epoch(epoch, self.end_offset)
                last_epoch = epoch
            size = length + LENGTH_END
            batch, aborted = batches[position : position + size], None
            if producer >= 0:
                marker = read_marker(batch) if attributes & CONTROL else None
                aborted = self.producer_states.replay(BatchHeader._make(fields), now_ms, marker)
            self._stage(batch, base, newest, now_ms, aborted)
            self.end_offset = base + delta + 1
            position += size
        if not position and len(batches):
            raise CorruptMessage("The leader sent no whole batch.")
        return position

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        coordinator_epoch: int,
        now_ms: int,
        *,
        strict: bool = False,
    ) -> bool:
        """Stage the end of the producer's transaction; False if it has ended so before.

        Either way it has ended for good when all that is staged now is committed. `strict`: see
        `Producers.needs_marker`. Raises StorageFailed, InvalidProducerEpoch, TransactionCoordinatorFenced.
        """
        if self.failed is not None:
            raise self.failed.with_traceback(None)
        assert self.led_epoch != UNKNOWN, "markers are appended by leaders"
        states, offset = self.producer_states, self.end_offset
        if not states.needs_marker(producer_id, producer_epoch, coordinator_epoch, strict):
            return False
        marker = Marker(commit, coordinator_epoch, states.open.get(producer_id, -1))
        batch = memoryview(make_marker(producer_id, producer_epoch, marker, now_ms))
        aborted = states.end(producer_id, producer_epoch, marker, offset, now_ms)
        _PLACE.pack_into(batch, 0, offset, only_batch(batch)[1], self.led_epoch)
        self._stage(batch, offset, now_ms, now_ms, aborted)
        self.end_offset = offset + 1
        return True

    def write(self) -> None:
        """All that is staged is in the file, in the kernel's hands, or none of it. Raises StorageFailed.

        A full disk and a want of descriptors pass, and the log goes on; any other error is final.
        """
        if self._full_runs:
            self._write_runs()
            return
        run = self._run
        if run.buffers:
            try:
                self.active.file.append(run.buffers)
            except OSError as error:
                self._give_up_write(error, [])
            run.end_offset = self.end_offset
            self._written(run)
            self._committed()

    # --- safe

    def begin_sync(self) -> SyncJob | None:
        """What is written but not durable; None if nothing, or while another sync is under way."""
        pending = self.written_offset > self.synced_offset or self._unsynced_names or self._unsynced
        busy = self._sync or self._truncation or self.failed
        if busy or not (pending or self._unsynced_checkpoint or self._unsaved_epochs):
            return None
        active = self.active
        point = Point(active.base_offset, active.size, self.written_offset)
        job = SyncJob(self.disk, self.directory, self.checkpoint, point, self.watermark)
        job.segments = [*self._unsynced, active] if pending else []
        job.names, job.snapshot = self._unsynced_names, self._snapshot
        job.aborted, self._unsaved_aborted = self._unsaved_aborted, {}
        # Else a power cut could put closed segments, and all behind a damaged batch there, in doubt again.
        job.durable = self._unsynced_checkpoint or bool(self._unsynced)
        if self._unsaved_epochs:
            job.epochs = encode_epochs(self._written_epochs())
            self._unsaved_epochs = False
        for segment in self._unsynced:
            self.cache.touch(segment)
        self._unsynced, self._snapshot = [], None
        self._unsynced_names = self._unsynced_checkpoint = False
        self._sync = job
        return job

    def finish_sync(self, job: SyncJob, error: OSError | None) -> None:
        """Back on the loop: `synced_offset` has moved, or the log has failed for good (P3)."""
        truncated = job.checkpoint is not self.checkpoint  # meanwhile, and synced then
        if error is not None and not (truncated and isinstance(error, FileNotFoundError)):
            self._fail(error)
        if truncated:
            return
        self._sync = None
        if error is not None:
            return
        self.synced_offset = job.point.offset
        if self.active.base_offset == job.point.segment:
            self.active.remember(job.point.offset, job.point.position)
        self._carry_over(job)

    def put_off_sync(self, job: SyncJob) -> None:
        """Back on the loop: no descriptor was to be had, so `begin_sync` will offer the same again."""
        if job.checkpoint is self.checkpoint:  # else it was truncated meanwhile, and synced then
            self._sync = None
            self._unsynced = [*job.segments[:-1], *self._unsynced]  # the last one is, or was, the newest
            self._unsynced_names |= job.names
            self._carry_over(job)

    def _carry_over(self, job: SyncJob) -> None:
        """What the job has left undone belongs into the next one."""
        self._snapshot = self._snapshot or job.snapshot
        self._unsaved_aborted = {**job.aborted, **self._unsaved_aborted}
        for segment, content in job.aborted_done.items():
            segment.note_aborted_saved(content)
        self._unsaved_epochs |= job.epochs is not None
        self._unsynced_checkpoint |= job.durable

    @property
    def has_rolled(self) -> bool:
        """Whether a segment was closed that no sync has begun to make durable."""
        return bool(self._unsynced)

    def is_roll_due(self, now_ms: int) -> bool:
        settings, age_ms = self.settings, now_ms - self._run.first_ms
        lag_ms = settings.max_compaction_lag_ms if settings.cleanup_compact else settings.segment_ms
        return age_ms >= min(settings.segment_ms, lag_ms)

    def roll(self) -> None:
        """Close the newest segment though it has room; if that is not possible now, it stays open."""
        if self.failed or self._truncation or self.end_offset != self.written_offset:
            return
        with contextlib.suppress(OSError):
            self._roll(self._make_segment(self.written_offset))
            self._run = self._run_of(self.active, NO_BATCH)
            self._snapshot = self._take_snapshot()

    # --- staging

    def _stage(
        self, batch: memoryview, base: int, newest: int, now_ms: int, aborted: AbortedTransaction | None
    ) -> None:
        """As `append` does for batches of producers, where it is written out: that is the hot path."""
        run, size, settings = self._run, len(batch), self.settings
        full = run.position + size > settings.segment_bytes
        if not run.position or full or now_ms >= run.first_ms + settings.segment_ms:
            run = self._begin_segment(now_ms)
        run.add(batch, base, newest, settings.index_interval_bytes)
        if aborted is not None:
            run.aborted.append(aborted)

    def _begin_segment(self, now_ms: int) -> Run:
        """The next batch is a segment's first: of the newest if that is empty, else of one to be made."""
        run = self._run
        if run.position:
            run.end_offset = self.end_offset
            self._full_runs.append(run)
            run = self._run = Run(self.end_offset, 0, self.settings.index_interval_bytes, NO_TIME, now_ms)
        run.first_ms = now_ms
        return run

    def _mark_copied(self) -> None:
        """For a log that was opened when it had no other replica; else opening has done it."""
        try:
            self.checkpoint.mark_copied()
        except OSError as error:
            raise StorageFailed(f"Writing failed: {error.strerror}. Nothing was appended.") from error

    def _begin_epoch(self, leader_epoch: int, offset: int) -> None:
        if leader_epoch != self.leader_epochs.last:
            if self._epochs_before is None:
                self._epochs_before = list(self.leader_epochs.entries)
            self.leader_epochs.begin(leader_epoch, offset)

    def _take_back_epochs(self) -> None:
        """Epochs without a written batch are forgotten: nothing is staged any more."""
        if self._epochs_before is not None:
            self.leader_epochs = LeaderEpochs(self._epochs_before)
            self.leader_epochs.forget_before(self.start_offset)
            self._epochs_before = None

    def _written_epochs(self) -> list[tuple[int, int]]:
        return self.leader_epochs.entries if self._epochs_before is None else self._epochs_before

    # --- writing

    def _write_runs(self) -> None:
        """The rare way: a segment becomes full. First all bytes, then all changes of state (P2)."""
        runs = [*self._full_runs, self._run]
        self._run.end_offset = self.end_offset
        made: list[Segment] = []
        try:
            for run in runs:
                if run.base_offset != self.active.base_offset:
                    made.append(self._make_segment(run.base_offset))
                (made[-1] if made else self.active).file.append(run.buffers)
        except OSError as error:
            self._give_up_write(error, made)
        for run in runs:
            if run.base_offset != self.active.base_offset:
                self._roll(made.pop(0))
            self._written(run)
        self._full_runs = []
        self._committed()
        self._snapshot = self._take_snapshot()

    def _take_snapshot(self) -> Snapshot:
        self._capture_aborted()
        return Snapshot(self.written_offset, self.producer_states.encode())

    def _capture_aborted(self) -> None:
        """What was aborted in the newest segment is to be saved as it is now."""
        if not self.active.aborted_saved:
            self._unsaved_aborted[self.active] = encode_aborted(self.active.aborted)

    def _make_segment(self, base_offset: int) -> Segment:
        segment = Segment(self.disk, self.directory, base_offset, 0, base_offset)
        segment.index_interval = self.settings.index_interval_bytes
        segment.create()
        return segment

    def _roll(self, segment: Segment) -> None:
        """The newest segment is closed, and this is the newest from now on."""
        with contextlib.suppress(OSError):  # an index with gaps is legal
            self.active.seal()
        self._capture_aborted()
        self._unsynced.append(self.active)
        self._unsynced_names = True
        self.segments.append(segment)
        self.active = segment

    def _written(self, run: Run) -> None:
        """The run's bytes are in the newest segment's file."""
        active = self.active
        active.remember(self.written_offset, active.size)
        active.size = run.position
        active.max_timestamp = run.max_timestamp
        active.end_offset = self.written_offset = run.end_offset
        run.buffers = []
        if run.aborted:
            active.add_aborted(run.aborted)
            run.aborted = []
        if run.entries:
            entries, run.entries = run.entries, []
            try:
                index = active.index
                for entry in entries:
                    index.add(*entry)
                if index.unsaved() >= FLUSH_ENTRIES:
                    index.save(self.disk)
            except OSError:  # loading an index completes it, and its file may have gaps
                return

    def _committed(self) -> None:
        """All that was staged is written."""
        self.producer_states.commit()
        if self._epochs_before is not None:
            self._epochs_before = None
            self._unsaved_epochs = True

    def _give_up_write(self, error: OSError, made: list[Segment]) -> NoReturn:
        """As before the staged batches were appended; the log is usable if the cause may pass."""
        self._unstage()
        try:
            for segment in made:
                self.disk.remove(segment.path)
            self.active.cut_back()
        except OSError as second:
            self._fail(second)
        if error.errno in _PASSING and self.failed is None:
            raise StorageFailed(f"Writing failed: {error.strerror}. Nothing was appended.") from error
        self._fail(error)
        raise StorageFailed(f"Writing failed: {error.strerror}. The log is offline.") from error

    def _unstage(self) -> None:
        """Staged batches are forgotten."""
        first_ms = (self._full_runs or [self._run])[0].first_ms
        self.end_offset = self.written_offset
        self.producer_states.rollback(self.end_offset)
        self._take_back_epochs()
        if self.led_epoch != UNKNOWN:
            self._begin_epoch(self.led_epoch, self.end_offset)
        self._full_runs = []
        self._run = self._run_of(self.active, first_ms if self.active.size else NO_BATCH)

    def _run_of(self, segment: Segment, first_ms: int) -> Run:
        """What is staged next goes behind what the segment holds, with an entry in the index."""
        return Run(segment.base_offset, segment.size, max(1, segment.size), segment.max_timestamp, first_ms)

    def _fail(self, error: OSError) -> None:
        if self.failed is None:
            self.failed = StorageFailed(f"The log is offline since the disk failed: {error.strerror}.")
