"""The log of one partition: the room's face.

What grows is in `writable_log` (append, write, sync); here are opening, reading, looking up, letting go
of what is old, and closing. Everything but the jobs' `run`, `open` and `verify` belongs to one thread,
the event loop; the jobs are handed out to be run in another one.
"""

from __future__ import annotations

import contextlib
import errno
from bisect import bisect_left, bisect_right
from itertools import islice

from postroad.errors import OffsetOutOfRange, StorageFailed
from postroad.log import compaction, retention
from postroad.log.aborted import AbortedTransaction
from postroad.log.compaction import CompactionEnd, CompactionJob
from postroad.log.disk import Disk
from postroad.log.epochs import UNKNOWN, EpochEnd, LeaderEpochs
from postroad.log.producers import Producer
from postroad.log.recovery import Recovered, recover
from postroad.log.retention import RemovedSegment
from postroad.log.scan import DamagedBatch
from postroad.log.segment import DamageSearch, Segment, Slice
from postroad.log.segment_cache import SegmentCache
from postroad.log.settings import LogSettings
from postroad.log.sync import SyncJob, save_snapshot
from postroad.log.times import TimePosition, max_timestamp, offset_for_time
from postroad.log.truncation import TruncationJob
from postroad.log.writable_log import Appended, WritableLog

__all__ = ["Appended", "EpochEnd", "PartitionLog", "Slice", "SyncJob", "TimePosition"]


class PartitionLog(WritableLog):
    def __init__(self, found: Recovered, settings: LogSettings, cache: SegmentCache) -> None:
        super().__init__(found, settings, cache)
        self._compaction: CompactionJob | None = None  # under way, or ended without success
        self._compaction_end: CompactionEnd | None = None  # the last one

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        now_ms: int,
        clean: bool,
        cache: SegmentCache | None = None,
    ) -> PartitionLog:
        """Create the log, or recover it: every batch that was synced is there, nothing torn is.

        Blocks: for a thread. `clean`: the node was stopped in order. `cache`: one for all logs of a
        node bounds the descriptors of closed segments. Raises OSError.
        """
        found = recover(disk, directory, settings, now_ms, clean)
        return cls(found, settings, cache or SegmentCache())

    # --- out

    def read(self, offset: int, max_bytes: int, below: int) -> Slice | None:
        """Whole batches from the one that holds `offset` on, of one segment, all below `below`.

        `below` is where a batch begins. At least one batch, even if it is larger than max_bytes; None
        if there is none yet. Raises OffsetOutOfRange, CorruptMessage, OSError. If the slice is not
        `verified`, the caller runs `verify` in a thread and then `mark_verified` before it is served.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(f"Offset {offset} is not in {self.start_offset} … {self.end_offset}.")
        limit = min(below, self.written_offset)
        if offset >= limit:
            return None
        if offset >= self.active.base_offset:
            return self.active.find(offset, max_bytes, limit)
        return self._read_closed(offset, max_bytes, limit)

    def damage_at(self, offset: int) -> DamageSearch:
        """Where `read` found damage at `offset`: run it in a thread, then `pass_over` it. Raises OSError."""
        segment = self.segments[max(0, bisect_right(self.segments, offset, key=_base_offset) - 1)]
        try:
            position = segment.locate(offset)
        except DamagedBatch as damage:
            position = damage.position
        return DamageSearch(segment, position, offset + 1)

    def pass_over(self, search: DamageSearch) -> int:
        """On the loop, after `run`: where to go on, for those who can do without the damaged batch."""
        if search.following is None:
            return search.segment.end_offset
        position, header = search.following
        search.segment.remember_beyond(position, header)
        return header.base_offset

    def verify(self, found: Slice) -> None:
        """Each batch's CRC holds, and its offset and epoch are its own, or CorruptMessage. For any thread."""
        epochs = LeaderEpochs(self.leader_epochs.entries)  # a copy: they may change meanwhile
        found.segment.verify(found.file, found.position, found.position + found.length, epochs)

    def mark_verified(self, found: Slice) -> None:
        """On the loop, after `verify`: these bytes are not verified again."""
        found.segment.verified.add(found.position, found.position + found.length)

    def offset_for_time(self, timestamp_ms: int) -> TimePosition | None:
        """The first record that is not older; None if all are. Raises CorruptMessage."""
        return offset_for_time(self._kept_segments(), timestamp_ms, self.start_offset, self.leader_epochs)

    def max_timestamp(self) -> TimePosition | None:
        """The first of the newest records by timestamp."""
        return max_timestamp(self._kept_segments(), self.start_offset, self.leader_epochs)

    def producers(self) -> list[Producer]:
        return self.producer_states.describe()

    def stable_offset(self, watermark: int) -> int:
        """Up to where a read_committed consumer may read: every transaction that began below has ended, and
        its marker lies below the watermark."""
        return max(self.start_offset, self.producer_states.stable_offset(watermark))

    def aborted(self, first: int, below: int) -> list[AbortedTransaction]:
        """Transactions that were aborted and reach into the offsets from `first` to `below`, in the order in
        which they began. `below` is not above the stable offset. Raises OSError."""
        found: list[AbortedTransaction] = []
        number = max(0, bisect_right(self.segments, first, key=_base_offset) - 1)
        for segment in islice(self.segments, number, None):
            if segment.aborted_filed and segment is not self.active:
                self.cache.touch(segment)
            entries = segment.aborted
            for entry in islice(entries, bisect_left(entries, first, key=_marker), None):
                if entry.first < below:
                    found.append(entry)
                if entry.stable_offset >= below:
                    return sorted(found, key=_first)
        return sorted(found, key=_first)

    def epoch_end(self, epoch: int) -> EpochEnd:
        """The largest epoch at or below the one asked for, and where it ends; (-1, -1) if unknown."""
        return self.leader_epochs.end_of(epoch, self.written_offset)

    def copied_from(self, offset: int) -> int:
        """From which offset on to read for a follower that copies from `offset` on. Raises OffsetOutOfRange.

        Batches are copied whole: where the log starts inside of one, a follower begins with all of it.
        """
        if offset >= self.start_offset:
            return offset
        found = self.read(self.start_offset, 0, self.written_offset)
        if found is None or offset < int.from_bytes(found.file.read(found.position, 8), "big"):
            raise OffsetOutOfRange(f"Offset {offset} is below the start, {self.start_offset}.")
        return self.start_offset

    def diverging(self, last_fetched_epoch: int, fetch_offset: int) -> EpochEnd | None:
        """On a leader: what to tell a follower whose log ends so and has parted from this one; else None.

        It then truncates and fetches again (KIP-595). Raises OffsetOutOfRange below the start.
        """
        is_inside = self.start_offset <= fetch_offset <= self.written_offset
        if is_inside and last_fetched_epoch == self.leader_epochs.last:
            return None  # as nearly always
        self.copied_from(fetch_offset)
        if last_fetched_epoch == UNKNOWN:  # an empty log has nothing that could differ
            return None
        end = self.epoch_end(last_fetched_epoch)
        if end.epoch == UNKNOWN:  # newer than all that is here: leaders count anew from a backup
            return EpochEnd(self.last_epoch, self.written_offset)
        parted = end.epoch < last_fetched_epoch or end.end_offset < fetch_offset
        return end if parted else None

    @property
    def last_epoch(self) -> int:
        """The epoch of the newest batch, or on a leader the one that it has begun; -1 if there is none."""
        return self.leader_epochs.last

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    # --- away

    # `below` is the watermark: what lies at or above it may yet be another leader's to give away.

    def delete_before(self, offset: int, below: int) -> int:
        """Records below the offset can't be read any more; returns the new start offset.

        It survives a kill at once and a power cut with the next sync, which `begin_sync` now asks for.
        Raises OffsetOutOfRange above `below` and above what is written, StorageFailed.
        """
        assert self._truncation is None, "the log is being truncated"
        limit = min(below, self.written_offset)
        if offset > limit:
            raise OffsetOutOfRange(f"Offset {offset} is above what is committed, {limit}.")
        if offset > self.start_offset:
            try:
                self._save_start(offset)
            except OSError as error:
                raise StorageFailed(f"The log's new start can't be written: {error.strerror}.") from error
            self._move_start(offset)
            self._unsynced_checkpoint = True
        return self.start_offset

    def expire(self, now_ms: int, below: int) -> list[RemovedSegment]:
        """Segments that are too old, too many or below the start leave the log; their jobs delete them.

        One that reaches above `below` stays.
        A segment that is older than segment.ms is closed, too, and idle producers are forgotten.
        """
        return [] if self._truncation else retention.expire(self, now_ms, below)

    def compaction(self, now_ms: int, below: int) -> CompactionJob | None:
        """A job if the log is dirty enough: run it in a thread, then `install` it. One at a time.

        It leaves segments alone that reach above `below`.
        """
        busy = self._compaction is not None and not self._compaction.ended
        if self.failed or busy or self._truncation or not all(segment.renamed for segment in self.segments):
            return None
        self._compaction = compaction.choose(self, now_ms, below)
        return self._compaction

    @property
    def purged_offset(self) -> int:
        """Tombstones and transaction markers below it may be gone, with all that they ended."""
        return self.checkpoint.current.purged_offset

    @property
    def unfinished_compaction(self) -> CompactionEnd | None:
        """The one that failed half-way, to be run again: until then the log is not compacted any further."""
        pending = not all(segment.renamed for segment in self.segments)
        return self._compaction_end if pending and self._compaction is None else None

    def install(self, job: CompactionJob) -> CompactionEnd:
        """On the loop, after `run`: readers find the new segments. Then run what is returned in a thread."""
        if job is not self._compaction:  # a truncation came first, and has installed it
            return CompactionEnd(self.disk, self.directory, [])
        self._compaction = None
        self._compaction_end = CompactionEnd(self.disk, self.directory, job.rewritten)
        for new in job.rewritten:
            at = self.segments.index(new.replaced[0])
            self.segments[at : at + len(new.replaced)] = [new.segment]
            for segment in new.replaced:
                self.cache.drop(segment)
        with contextlib.suppress(OSError):  # at worst the next compaction reads more
            self.checkpoint.save_offsets(self.start_offset, job.cleaned_offset)
        return self._compaction_end

    # --- back, on a follower

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """`begin_truncation`, `run` and `finish_truncation` in one; blocks. Raises StorageFailed."""
        self._cut(self.begin_truncation(offset, now_ms))

    def reset_to(self, offset: int, now_ms: int) -> None:
        """`begin_reset`, `run` and `finish_truncation` in one; blocks. Raises StorageFailed."""
        self._cut(self.begin_reset(offset, now_ms))

    def begin_truncation(self, offset: int, now_ms: int) -> TruncationJob | None:
        """A job that durably removes all from the batch that holds `offset` on; None if nothing is there.

        Run it in a thread, then finish it. Until then the log takes nothing in and begins no other job.
        What is staged is dropped.
        """
        self.end_epoch()
        if offset >= self.end_offset:
            return None
        self._stop_compaction()
        self._unstage()
        cut = min(max(offset, self.start_offset), self.written_offset)
        self._truncation = TruncationJob(self, cut, now_ms, reset=False)
        return self._truncation

    def begin_reset(self, offset: int, now_ms: int, purged: int = 0) -> TruncationJob:
        """As `begin_truncation`: the log will be empty and go on at `offset`, where a batch begins.

        What will be copied may lack tombstones and transaction markers below `purged`.
        """
        self.end_epoch()
        self._stop_compaction()
        self._unstage()
        self._truncation = TruncationJob(self, offset, now_ms, reset=True, purged=purged)
        return self._truncation

    def finish_truncation(self, job: TruncationJob, error: OSError | None) -> None:
        """On the loop, after `run`: the log is what the job has left, or offline with its error."""
        self._truncation = None
        for segment in self.segments:
            self.cache.drop(segment)
        if error is not None:
            self._fail(error)
        elif job.found is not None:
            self._adopt(job.found)
        elif self.checkpoint.retired:  # else it was refused, and nothing has changed
            self._fail(OSError(errno.EIO, "it could not be opened after it was truncated"))

    def _cut(self, job: TruncationJob | None) -> None:
        if job is None:
            return
        failed: OSError | None = None
        try:
            job.run()
        except OSError as error:
            failed = error
        finally:
            self.finish_truncation(job, failed)
        if failed is not None:
            raise StorageFailed(f"Truncating failed: {failed.strerror}. The log is offline.") from failed

    def _stop_compaction(self) -> None:
        """One that has swapped its files counts; any other has changed nothing."""
        if self._compaction is not None and not self._compaction.cancel():
            self.install(self._compaction)

    def _end_compaction(self) -> None:
        self._stop_compaction()
        if self._compaction_end:
            self._compaction_end.run()

    # --- the end

    def close(self) -> None:
        """Everything is written and synced, and opening needs to read little. Blocks.

        Raises StorageFailed, OSError.

        A log that has failed is only let go: the next opening recovers it.
        """
        with contextlib.suppress(OSError):  # what is left is finished by the next opening
            self._end_compaction()
        if self.failed is None:
            self.write()
            self._sync = None  # one that is still under way changes nothing: this one covers it
            job = self.begin_sync()
            if job is not None:
                job.run()
                self.finish_sync(job, None)
            if self.written_offset != self._sealed_offset:
                with contextlib.suppress(OSError):  # they only spare the next opening some reading
                    self.active.seal()
                    snapshot = self._take_snapshot()
                    for segment in self._unsaved_aborted:
                        segment.save_aborted()
                    save_snapshot(self.disk, self.directory, snapshot)
            if self.watermark != self.checkpoint.current.watermark:
                with contextlib.suppress(OSError):  # it is a hint
                    self.checkpoint.save_point(self.checkpoint.current.point, self.watermark)
        self.checkpoint.release()
        for segment in self.segments:
            self.cache.drop(segment)

    # --- keeping and letting go

    def _kept_segments(self) -> list[Segment]:
        """Those with records at or above the start offset."""
        return [segment for segment in self.segments if segment.end_offset > self.start_offset]

    def is_free(self, segment: Segment) -> bool:
        """Whether no job is at work on it."""
        compaction, sync = self._compaction, self._sync
        return (
            segment.renamed
            and not (sync and segment in sync.segments)
            and not (compaction and not compaction.ended and segment in compaction.segments)
        )

    def drop(self, segments: list[Segment]) -> None:
        """The oldest segments leave the log's view."""
        if segments:
            del self.segments[: len(segments)]
            self._unsynced = [segment for segment in self._unsynced if segment not in segments]
            for segment in segments:
                self.cache.drop(segment)
            self._move_start(max(self.start_offset, self.segments[0].base_offset))
            with contextlib.suppress(OSError):  # at worst expired records are back after a crash
                self._save_start(self.start_offset)

    def _move_start(self, offset: int) -> None:
        self.start_offset = offset
        self._unsaved_epochs |= self.leader_epochs.forget_before(offset)

    def _save_start(self, offset: int) -> None:
        self.checkpoint.save_offsets(offset, max(offset, self.checkpoint.current.cleaned_offset))

    # --- reading

    def _read_closed(self, offset: int, max_bytes: int, limit: int) -> Slice | None:
        """From a closed segment, or the next one where compaction left nothing behind `offset`."""
        first = bisect_right(self.segments, offset, key=_base_offset) - 1
        for segment in self.segments[max(0, first) :]:
            if segment.base_offset >= limit:
                break
            if segment is not self.active:
                self.cache.touch(segment)
            found = segment.find(offset, max_bytes, limit)
            if found is not None:
                return found
        return None


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def _marker(entry: AbortedTransaction) -> int:
    return entry.marker


def _first(entry: AbortedTransaction) -> int:
    return entry.first
