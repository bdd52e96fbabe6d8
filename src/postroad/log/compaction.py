"""Compaction of a log: which segments, when, and the job that rewrites them in a thread.

The log's closed segments are a clean part, which an earlier compaction has seen (below the checkpoint's
cleaned offset), and a dirty part. A job reads the dirty part into a KeyMap, rewrites clean and dirty
segments without what is superseded, and puts the new files in place of the old ones as described in
`compaction_files`. Readers go on with the old files until the job is installed on the loop.

K1 only segments that lie wholly below the recovery point are touched, and that point is durable first:
   recovery would otherwise take a rewritten segment for a torn one.
K2 a job is cancelled before it swaps or not at all. Should the disk fail between two swaps, those done
   count, and the log installs them at the latest when it is closed.
K3 nothing at or above the stable offset is touched, nor does it supersede anything: it may be taken back, or
   be aborted.
K4 tombstones go only after the checkpoint's purged offset is durably above them: a replica that has copied
   less begins anew, or a value whose deletion it never heard of would be back.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from postroad.log import compaction_files as files
from postroad.log.aborted import AbortedTransaction, encode_aborted
from postroad.log.cleaner import KEYS_MAX, KeyMap, clean_aborted, clean_batch, clean_marker, readable_records
from postroad.log.disk import Disk, File
from postroad.log.index import SparseIndex
from postroad.log.salvage import walk_over_damage
from postroad.log.segment import NO_TIME, Segment, log_path
from postroad.log.settings import LogSettings
from postroad.wire.batch import CONTROL, DELETE_HORIZON, TRANSACTIONAL, BatchHeader, read_header

if TYPE_CHECKING:
    from postroad.log.partition_log import PartitionLog

_WRITE_BYTES: Final = 1 << 20


class Cancelled(Exception):
    """The log no longer wants the job."""


def choose(log: PartitionLog, now_ms: int, below: int) -> CompactionJob | None:
    """A job for what may be compacted (K1, K3), if it is worth it."""
    settings, checkpoint = log.settings, log.checkpoint.current
    if not settings.cleanup_compact:
        return None
    limit = min(checkpoint.point.segment, log.stable_offset(below))
    closed = [segment for segment in log.segments[:-1] if segment.end_offset <= limit]
    segments = cleanable(closed, settings, now_ms)
    if not is_dirty_enough(segments, checkpoint.cleaned_offset, settings, now_ms):
        return None
    return CompactionJob(log, segments, now_ms)


def cleanable(closed: Sequence[Segment], settings: LogSettings, now_ms: int) -> list[Segment]:
    """Those from the oldest on whose records are all older than min.compaction.lag.ms."""
    chosen: list[Segment] = []
    for segment in closed:
        if not segment.aborted_saved:  # else that would be written over what the job writes
            break
        if settings.min_compaction_lag_ms and segment.max_timestamp > now_ms - settings.min_compaction_lag_ms:
            break
        chosen.append(segment)
    return chosen


def is_dirty_enough(
    segments: Sequence[Segment], cleaned_offset: int, settings: LogSettings, now_ms: int
) -> bool:
    dirty = [segment for segment in segments if segment.end_offset > cleaned_offset and segment.size]
    if not dirty:
        return False
    if dirty[0].max_timestamp < now_ms - settings.max_compaction_lag_ms:
        return True
    total = sum(segment.size for segment in segments)
    return sum(segment.size for segment in dirty) >= settings.min_cleanable_dirty_ratio * total


class CompactionJob:
    """`run` in a thread, then PartitionLog.install on the loop. What it reads never changes meanwhile."""

    def __init__(self, log: PartitionLog, segments: list[Segment], now_ms: int) -> None:
        self.segments = segments
        self.cleaned_offset = log.checkpoint.current.cleaned_offset  # moves up to what the job has seen
        self._cleaned_before = self.cleaned_offset
        self.purged_offset = 0  # below it tombstones or markers were dropped
        self.rewritten: list[Rewritten] = []
        self.swapped = False
        self.ended = False  # it has failed or was cancelled, and left nothing behind
        self.keys_max = KEYS_MAX
        self._disk = log.disk
        self._directory = log.directory
        self._checkpoint = log.checkpoint
        self._settings = log.settings
        self._kept_batches = log.producer_states.last_offsets()
        self._last_epochs = log.producer_states.last_epochs()
        self._aborted: dict[int, list[AbortedTransaction]] = {}  # by producer
        for entry in log.aborted(log.start_offset, segments[-1].end_offset):
            self._aborted.setdefault(entry.producer_id, []).append(entry)
        self._with_records: set[int] = set()  # producers of whose present transaction records stay
        self._now_ms = now_ms
        self._lock = self._disk.mutex()

    def run(self) -> None:
        """Raises OSError (a full disk); the log is then as it was."""
        try:
            self._checkpoint.sync()
            keys = self._read_keys()
            for group in _groups(self.segments, self._settings.segment_bytes, self.cleaned_offset):
                self._rewrite(group, keys)
            self._checkpoint.save_purged(self.purged_offset)  # K4
            self._swap()
        except Cancelled:
            self._clear_away()
        except BaseException:
            if not self.swapped:
                self._clear_away()
            raise

    def cancel(self) -> bool:
        """False if it is too late: the new segments count already and are to be installed."""
        with self._lock:
            self.ended = self.ended or not self.swapped
            return self.ended

    def _read_keys(self) -> KeyMap:
        keys = KeyMap(self.keys_max)
        for segment in self.segments:
            if segment.end_offset <= self.cleaned_offset:
                continue
            for header, batch in self._batches(segment):
                if header is None or header.base_offset < self.cleaned_offset:
                    continue
                if not keys.has_room_for(header):
                    return keys
                if not self._is_aborted(header):
                    keys.add(readable_records(batch, header) or [])
                self.cleaned_offset = header.next_offset
            self.cleaned_offset = segment.end_offset
        return keys

    def _rewrite(self, group: list[Segment], keys: KeyMap) -> None:
        new, changed = Rewritten(self._disk, self._directory, group), len(group) > 1
        self.rewritten.append(new)
        for segment in group:
            for header, batch in self._batches(segment):
                cleaned = batch if header is None else self._clean(header, batch, keys)
                if header is not None and cleaned is not batch:
                    self._note_purged(header)
                if header is not None and header.attributes & TRANSACTIONAL:
                    self._note_transaction(header, cleaned, new)
                changed = changed or cleaned is not batch
                new.append(header, cleaned)
        if changed:
            new.finish()
        else:  # nothing went: leave it alone
            self.rewritten.remove(new)
            new.discard()

    def _clean(self, header: BatchHeader, batch: memoryview, keys: KeyMap) -> memoryview | bytearray | None:
        if header.base_offset >= self.cleaned_offset:
            return batch  # not in the map
        keep_empty = header.base_offset in self._kept_batches
        is_new, horizon_ms = self._is_new(header), self._now_ms + self._settings.delete_retention_ms
        if header.attributes & CONTROL:
            if header.producer_id in self._with_records or self._is_last_of_producer(header):
                return batch
            return clean_marker(batch, header, is_new, horizon_ms, self._now_ms)
        if self._is_aborted(header):
            return clean_aborted(batch, header, keep_empty)
        return clean_batch(batch, header, keys, keep_empty, is_new, horizon_ms, self._now_ms)

    def _note_purged(self, header: BatchHeader) -> None:
        """The batch was rewritten; once its horizon has passed, that dropped its tombstones or its marker."""
        has_horizon = header.attributes & DELETE_HORIZON and not self._is_new(header)
        if has_horizon and header.base_timestamp <= self._now_ms:
            self.purged_offset = max(self.purged_offset, header.next_offset)

    def _is_new(self, header: BatchHeader) -> bool:
        """No compaction before this one has seen it."""
        return header.base_offset >= self._cleaned_before

    def _note_transaction(
        self, header: BatchHeader, cleaned: memoryview | bytearray | None, new: Rewritten
    ) -> None:
        """What becomes of a transaction's batches decides what becomes of its marker (C5)."""
        if header.attributes & CONTROL:
            self._with_records.discard(header.producer_id)
            if cleaned is None:
                new.gone_markers.add(header.base_offset)
        elif cleaned is not None and read_header(cleaned).count:
            self._with_records.add(header.producer_id)

    def _is_aborted(self, header: BatchHeader) -> bool:
        entries = self._aborted.get(header.producer_id) if header.attributes & TRANSACTIONAL else None
        if not entries:
            return False
        before = bisect_right(entries, header.base_offset, key=_first) - 1
        return before >= 0 and header.base_offset < entries[before].marker

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        epoch, last = self._last_epochs.get(header.producer_id, (-1, -1))
        return epoch == header.producer_epoch and last < header.base_offset

    def _batches(self, segment: Segment) -> Iterator[tuple[BatchHeader | None, memoryview]]:
        """All bytes of the segment; what is damaged has no header, and is copied as it is."""
        file = self._disk.open(segment.path)
        try:
            for position, size, header in walk_over_damage(
                file, 0, segment.size, segment.base_offset, segment.end_offset
            ):
                if self.ended:
                    raise Cancelled
                yield header, memoryview(file.read(position, size))
        finally:
            file.close()

    def _swap(self) -> None:
        with self._lock:
            if self.ended:
                raise Cancelled
            waiting, self.rewritten = self.rewritten, []
            self.swapped = True
            try:
                while waiting:
                    new = waiting[0]
                    files.swap(self._disk, self._directory, new.base_offset, new.end_offset)
                    self.rewritten.append(waiting.pop(0))  # synced or not: opening the log would find it
                    self._disk.sync_directory(self._directory)
            except BaseException:
                # Records that stay there, or are back after a power cut, would count as clean.
                self.cleaned_offset = self._cleaned_before
                _discard(waiting)
                raise

    def _clear_away(self) -> None:
        _discard(self.rewritten)
        self.rewritten = []
        self.ended = True


def _first(entry: AbortedTransaction) -> int:
    return entry.first


def _discard(rewritten: list[Rewritten]) -> None:
    """Opening the log discards what is left."""
    with contextlib.suppress(OSError):
        for new in rewritten:
            new.discard()


class Rewritten:
    """A new segment in the making, in place of several old ones."""

    def __init__(self, disk: Disk, directory: str, group: list[Segment]) -> None:
        self.replaced = group
        self.base_offset = group[0].base_offset
        self.end_offset = group[-1].end_offset
        self.gone_markers: set[int] = set()  # offsets of markers that the new segment has not
        self._path = files.cleaned_path(directory, self.base_offset, self.end_offset)
        self._disk = disk
        self._buffers: list[memoryview | bytearray] = []
        self._buffered = 0
        self._due = group[0].index_interval
        self._time = NO_TIME
        disk.remove(self._path)
        self._file: File = disk.open(self._path, create=True)
        self.segment = Segment(disk, directory, self.base_offset, 0, self.end_offset)
        self.segment.index_interval = group[0].index_interval
        self.segment.path = files.swap_path(directory, self.base_offset, self.end_offset)
        self._index = SparseIndex(self.segment.index_path, self.base_offset)

    def append(self, old: BatchHeader | None, batch: memoryview | bytearray | None) -> None:
        """The batch as it is now, None if nothing of it stays; `old` is None for damaged bytes."""
        if batch is None:
            return
        position = self.segment.size
        if old is None:
            self._due = position  # what follows can't be reached by walking
        else:
            if position >= self._due:
                self._index.add(old.base_offset, position, self._time)
                self._due = position + self.segment.index_interval
            self._time = max(self._time, read_header(memoryview(batch)).max_timestamp)
        self.segment.size += len(batch)
        self._buffers.append(batch)
        self._buffered += len(batch)
        if self._buffered >= _WRITE_BYTES:
            self._flush()

    def finish(self) -> None:
        """Written and synced; the segment is ready to be used once it is swapped."""
        self._flush()
        self._file.sync()
        aborted = [entry for segment in self.replaced for entry in segment.aborted]
        if aborted or self.replaced[0].aborted_filed:
            self._disk.replace(self.segment.aborted_path, encode_aborted(aborted))
            self.segment.trust_aborted_file()
        self.segment.adopt(self._file, self._index, self._time)

    def forget_aborted(self) -> None:
        """Transactions without a marker have no batches either. One that is still listed does no harm."""
        if self.gone_markers and self.segment.aborted_filed:
            with contextlib.suppress(OSError):
                entries = self.segment.aborted
                self.segment.aborted = [entry for entry in entries if entry.marker not in self.gone_markers]
                self.segment.save_aborted()

    def discard(self) -> None:
        self._disk.remove(self._path)

    def _flush(self) -> None:
        self._file.append(self._buffers)
        self._buffers, self._buffered = [], 0


class CompactionEnd:
    """After a job was installed: the old files go and the new ones get their names. For a thread."""

    def __init__(self, disk: Disk, directory: str, rewritten: list[Rewritten]) -> None:
        self._disk = disk
        self._directory = directory
        self._pending = list(rewritten)
        self._lock = self._disk.mutex()

    def run(self) -> None:
        """Raises OSError; it may then run again, and opening the log does it, too."""
        with self._lock:
            while self._pending:
                new = self._pending[0]
                files.finish(self._disk, self._directory, new.base_offset, new.end_offset)
                new.segment.renamed_to(log_path(self._directory, new.base_offset))
                new.forget_aborted()
                self._pending.pop(0)


def _groups(segments: list[Segment], segment_bytes: int, end: int) -> Iterator[list[Segment]]:
    """Neighbours that fit into one segment together; those from `end` on have not been looked at."""
    group: list[Segment] = []
    for segment in segments:
        if segment.base_offset >= end:
            break
        if group and sum(member.size for member in group) + segment.size > segment_bytes:
            yield group
            group = []
        group.append(segment)
    if group:
        yield group
