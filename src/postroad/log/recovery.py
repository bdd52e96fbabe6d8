"""Opening a log: what a stop, a kill or a power cut left behind becomes a log that can be used.

Only the region above the checkpoint's recovery point is in doubt. It is written anew, in place, and synced;
then it is scanned batch by batch and cut at the first one that does not hold, the segments after that
one are removed, and the checkpoint moves up. Below the point nothing is read and nothing is ever cut: a batch
that was damaged since stays where it is, and reading it is answered with CorruptMessage.

R1 after `recover` every batch of the region in doubt has a good CRC and is synced.
   Reading and syncing would not do: a sync may have failed before the restart, and what the kernel then
   shows is neither on the disk nor would it be written by another sync (D5). Writing comes before the
   scan, for until it is synced the kernel may drop what the scan has seen.
R2 each step can be interrupted and begun again: the bytes are the same before and after; later segments
   go, durably, before the cut; the checkpoint moves after the sync. So a crash or an error during
   recovery leaves a log that recovers to the same.
R3 segments adjoin: one whose base is not the end of the segment before it in the region in doubt was
   made after something that is lost, and goes with it.
R4 a log that lost its end keeps no start, cleaned offset or recovery point above it: new messages come to lie
   there, and they are neither deleted nor compacted nor known to be synced.
R5 in the newest segment of a log without other replicas batches adjoin, too. A copied one may have gaps
   where its leader's has been compacted (`Checkpoint.copied`): there offsets only rise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from postroad.log import compaction_files
from postroad.log.aborted import ABORTED_SUFFIX, aborted_path
from postroad.log.checkpoint import FILE_NAME as CHECKPOINT_FILE
from postroad.log.checkpoint import Checkpoint, CheckpointFile, Point, read_checkpoint
from postroad.log.disk import Disk, File
from postroad.log.epochs import FILE_NAME as EPOCHS_FILE
from postroad.log.epochs import LeaderEpochs, encode_epochs, read_epochs
from postroad.log.order import in_order
from postroad.log.producers import SUFFIX as SNAPSHOT_SUFFIX
from postroad.log.producers import Producers
from postroad.log.replay import replay
from postroad.log.run import NO_BATCH
from postroad.log.scan import CHUNK_BYTES_MAX, OFFSET_MAX, DamagedBatch, scan, scan_unordered, walk
from postroad.log.segment import INDEX_SUFFIX, LOG_SUFFIX, Segment
from postroad.log.settings import LogSettings
from postroad.wire.batch import HEADER_BYTES, LENGTH_END, BatchHeader, read_header

_LOG_FILES: Final = (LOG_SUFFIX, INDEX_SUFFIX, ABORTED_SUFFIX, SNAPSHOT_SUFFIX, EPOCHS_FILE)


class Report(NamedTuple):
    """What opening found and did, for the node's log."""

    scanned_bytes: int
    cut_bytes: int
    removed_segments: int
    reason: str  # why something was cut; empty if nothing was


class Recovered(NamedTuple):
    disk: Disk
    directory: str
    segments: list[Segment]
    checkpoint: CheckpointFile
    epochs: LeaderEpochs
    producers: Producers
    start_offset: int
    end_offset: int
    watermark: int  # as the checkpoint has it, a hint; -1 if unknown
    first_ms: int  # when the newest segment got its first batch
    unsynced_names: bool  # of files that were made just now
    unsaved_epochs: bool  # their file lacks some: the point must not pass them before it has them
    sealed: bool  # index and snapshot on the disk tell all of it, as a stop leaves them
    report: Report


def recover(disk: Disk, directory: str, settings: LogSettings, now_ms: int, clean: bool) -> Recovered:
    """Raises OSError. `clean` (the node was stopped in order) leaves the index to be read on demand."""
    disk.make_directory(directory)
    names = compaction_files.finish_all(disk, directory)
    found = read_checkpoint(disk, directory)
    resetting = found is not None and found[1].resetting
    if resetting:
        names = _remove_all(disk, directory, names)
    segments = _find_segments(disk, directory, names, settings, found[1].start_offset if found else 0)
    unsynced_names = not segments or not found  # the first checkpoint comes after the first segment
    if not segments:
        segments = [_create(disk, directory, found[1].point.offset if found else 0)]
    point = _trusted_point(segments, found[1].point if found else None)
    known = found[1] if found else Checkpoint(segments[0].base_offset, 0, point, copied=settings.copied)
    with_gaps = settings.copied or known.copied
    end_offset, report = _recover_tail(disk, directory, segments, point, with_gaps, clean)

    newest = segments[-1]
    watermark = min(known.watermark, end_offset)
    start_offset = min(max(known.start_offset, segments[0].base_offset), end_offset)
    cleaned_offset = min(known.cleaned_offset, end_offset)
    lost = end_offset < max(known.start_offset, known.cleaned_offset, known.point.offset)
    saved = read_epochs(disk, directory)
    epochs, producers = replay(disk, directory, segments, names, saved, point.offset, end_offset, now_ms)
    current = Checkpoint(
        start_offset,
        cleaned_offset,
        known.point,
        watermark,
        known.copied,
        purged_offset=known.purged_offset,
    )
    checkpoint = CheckpointFile(disk, directory, found[0] if found else 0, current)
    end = Point(newest.base_offset, newest.size, end_offset)
    if resetting:  # or the next opening would remove what is appended now: both slots are written
        checkpoint.save_point(end, watermark)
        checkpoint.sync()
    unsaved_epochs = epochs.entries != (saved or [])
    with contextlib.suppress(OSError):  # a full disk: the point lags, and the log still opens
        if unsaved_epochs:
            disk.replace(f"{directory}/{EPOCHS_FILE}", encode_epochs(epochs.entries))
            unsaved_epochs = False
        if found is None or lost or end != known.point:
            checkpoint.save_point(end, watermark)
            if CHECKPOINT_FILE not in names:  # made just now, which syncs the directory
                unsynced_names = False
        if lost:  # as for a truncation: what comes next lies below what is known of the lost end (R4)
            checkpoint.sync()
        if settings.copied and not known.copied:
            checkpoint.mark_copied()
    first_ms = _first_time(newest, now_ms)
    if not clean:
        newest.load_index()
    newest.let_file_go()
    return Recovered(
        disk=disk,
        directory=directory,
        segments=segments,
        checkpoint=checkpoint,
        epochs=epochs,
        producers=producers,
        start_offset=start_offset,
        end_offset=end_offset,
        watermark=watermark,
        first_ms=first_ms,
        unsynced_names=unsynced_names,
        unsaved_epochs=unsaved_epochs,
        sealed=(clean and not report.scanned_bytes and not report.reason and not unsaved_epochs)
        or _is_empty(segments, end_offset),
        report=report,
    )


def _remove_all(disk: Disk, directory: str, names: list[str]) -> list[str]:
    """A reset was begun: of the log's files only the checkpoint stays. Returns the names that are there then.

    What else lies in the directory is not this log's.
    """
    gone = [name for name in names if name.endswith(_LOG_FILES)]
    for name in gone:
        disk.remove(f"{directory}/{name}")
    disk.sync_directory(directory)
    return [name for name in names if name not in gone]


def _find_segments(
    disk: Disk, directory: str, names: list[str], settings: LogSettings, start_offset: int
) -> list[Segment]:
    """In order; those that end at or below the start offset were about to be removed."""
    for orphan in compaction_files.orphans(names):
        disk.remove(f"{directory}/{orphan}")
    bases = compaction_files.base_offsets(names)
    present = {name for name in names if name.endswith(ABORTED_SUFFIX)}
    segments = []
    for base, end in zip(bases, [*bases[1:], OFFSET_MAX], strict=False):
        segment = Segment(disk, directory, base, 0, end)
        segment.index_interval = settings.index_interval_bytes
        segment.closed = end < OFFSET_MAX
        if aborted_path("", base).removeprefix("/") in present:
            segment.trust_aborted_file()
        if end <= start_offset:
            segment.remove_files()
            continue
        segment.size = segment.own_from = segment.file.size()
        segment.let_file_go()
        segments.append(segment)
    return segments


def _create(disk: Disk, directory: str, base_offset: int) -> Segment:
    segment = Segment(disk, directory, base_offset, 0, base_offset)
    segment.create()  # its name is synced with the checkpoint's, or with the first message
    return segment


def _trusted_point(segments: list[Segment], point: Point | None) -> Point:
    """The recovery point where the files bear it out; else as far as they can be trusted."""
    newest = segments[-1]
    if point is None:
        return Point(newest.base_offset, 0, newest.base_offset)
    for segment in segments:
        if segment.base_offset == point.segment:
            return point if point.position <= segment.size else _last_whole(segment)
    below = [segment for segment in segments if segment.base_offset <= point.offset]
    if not below:
        return Point(segments[0].base_offset, 0, segments[0].base_offset)
    try:
        return Point(below[-1].base_offset, below[-1].locate(point.offset), point.offset)
    except DamagedBatch:
        return _last_whole(below[-1])


def _last_whole(segment: Segment) -> Point:
    """Bytes that were synced are missing at the end: where the last whole batch ends."""
    entry = segment.index.last()
    position, offset = entry.position, entry.offset
    with contextlib.suppress(DamagedBatch):
        for at, header in walk(segment.file, position, segment.size, offset):
            position, offset = at + header.size, header.next_offset
    return Point(segment.base_offset, position, offset)


def _recover_tail(
    disk: Disk, directory: str, segments: list[Segment], point: Point, with_gaps: bool, clean: bool
) -> tuple[int, Report]:
    """Make durable and scan from the point on, cut at the first bad batch. Returns the log's end offset."""
    first = next(i for i, segment in enumerate(segments) if segment.base_offset == point.segment)
    for segment in segments[first:]:
        position = point.position if segment.base_offset == point.segment else 0
        if position < segment.size or not clean:
            _write_anew(segment, position)
    position, end_offset, scanned, reason = point.position, point.offset, 0, ""
    kept, cut = first, position
    for kept in range(first, len(segments)):
        segment = segments[kept]
        if kept > first and segment.base_offset != end_offset:
            kept, cut, reason = (
                kept - 1,
                segments[kept - 1].size,
                "a segment does not adjoin the one before it",
            )
            break
        cut = position
        is_newest = kept == len(segments) - 1
        batches = _rising if with_gaps and is_newest else _adjoining if is_newest else scan
        try:
            for at, header in batches(segment.file, position, segment.size, end_offset):
                cut, end_offset = at + header.length + LENGTH_END, header.next_offset
        except DamagedBatch as damage:
            reason = str(damage)
        scanned += cut - position
        segment.verified.add(position, cut)
        position = 0
        if reason:
            break
    tail, later = segments[kept], segments[kept + 1 :]
    report = Report(scanned, tail.size - cut + sum(segment.size for segment in later), len(later), reason)
    if scanned or reason or kept > first:  # a name may be unsynced though its file is empty
        del segments[kept + 1 :]
        _cut(disk, directory, segments[first:], later, cut, point)
    tail.end_offset, tail.closed = end_offset, False
    return end_offset, report


def _adjoining(file: File, position: int, end: int, floor: int) -> Iterator[tuple[int, BatchHeader]]:
    """As `scan`, of a log that was not copied: only compaction leaves gaps, and never in the newest segment.

    The offset lies outside the CRC; here every wrong one is found.
    """
    for at, header in scan(file, position, end, floor):
        if header.base_offset != floor:
            raise DamagedBatch(at, f"claims offset {header.base_offset} after {floor - 1}")
        yield at, header
        floor = header.next_offset


def _rising(file: File, position: int, end: int, floor: int) -> Iterator[tuple[int, BatchHeader]]:
    """As `scan`, of a log with gaps: a wrong offset is found where the batch behind it contradicts."""
    for at, header, right in in_order(scan_unordered(file, position, end), floor, OFFSET_MAX):
        if not right:
            raise DamagedBatch(at, f"claims offset {header.base_offset}, which is not its own")
        yield at, header


def _write_anew(segment: Segment, position: int) -> None:
    """What is there from the position on is on the disk, whether it was or not (R1).

    So is the size, though nothing may be there: a write for which there was no room had made the file longer.
    """
    file = segment.file
    for start in range(position, segment.size, CHUNK_BYTES_MAX):
        file.write(start, file.read(start, min(CHUNK_BYTES_MAX, segment.size - start)))
    file.sync()
    segment.let_file_go()


def _cut(
    disk: Disk, directory: str, kept: list[Segment], later: list[Segment], cut: int, point: Point
) -> None:
    """In this order (R2): later segments are gone, names are synced, the tail is cut, indexes are right."""
    for segment in reversed(later):
        segment.remove_files()
    disk.sync_directory(directory)
    tail = kept[-1]
    if cut < tail.size:
        tail.file.truncate(cut)
        tail.file.sync()
        tail.size = tail.own_from = cut
    for segment in kept:
        segment.renew_index(point.position if segment.base_offset == point.segment else 0)
        segment.let_file_go()


def _is_empty(segments: list[Segment], end_offset: int) -> bool:
    return segments[0].base_offset == end_offset


def _first_time(segment: Segment, now_ms: int) -> int:
    """When the segment's first batch came, as far as can be known: its age counts from there."""
    if segment.size < HEADER_BYTES:
        return NO_BATCH
    time = read_header(segment.file.read(0, HEADER_BYTES)).max_timestamp
    return min(time, now_ms) if time >= 0 else now_ms
