"""Finding again what the batches themselves tell: leader epochs, producers, aborted transactions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from postroad.log.aborted import AbortedTransaction
from postroad.log.compaction_files import numbered
from postroad.log.disk import Disk
from postroad.log.epochs import LeaderEpochs
from postroad.log.producers import SUFFIX, Producers, read_producers, snapshot_path
from postroad.log.scan import DamagedBatch, walk
from postroad.log.segment import Segment
from postroad.log.sync import Snapshot, save_snapshot
from postroad.wire.batch import CONTROL, NO_PRODUCER, BatchHeader

REPLAYED_MAX: Final = 10_000  # headers; beyond some 20 ms of them the next opening is spared the work


def replay(
    disk: Disk,
    directory: str,
    segments: list[Segment],
    names: list[str],
    saved_epochs: list[tuple[int, int]] | None,
    known_offset: int,
    end_offset: int,
    now_ms: int,
) -> tuple[LeaderEpochs, Producers]:
    """The state at `end_offset`: from the newest files that fit, and from the headers after them.

    The saved epochs are complete up to `known_offset`. A crash between the replacement of their file and of
    the checkpoint leaves later ones in it, too: these are found again in the batches, since an older batch
    after a later epoch would look as if the epochs had fallen. The lists of aborted transactions are complete
    up to the newest snapshot; those of segments that reach above it are right afterwards, and perhaps not
    saved.
    """
    if saved_epochs is None:
        known_offset = 0
    epochs = LeaderEpochs(saved_epochs)
    epochs.truncate(min(known_offset, end_offset))
    producers, snapshot_offset = newest_snapshot(disk, directory, names, end_offset)
    replayed, begins_at, end = 0, 0, max(known_offset, segments[0].base_offset)
    begins: BatchHeader | None = None  # another epoch, unless the next batch contradicts
    aborted: list[AbortedTransaction] = []
    for segment, position, header in headers(segments, min(known_offset, snapshot_offset), end_offset):
        replayed += 1
        if header.base_offset >= known_offset:
            if begins is not None and _confirms(header, begins, epochs.last):
                epochs.begin(begins.leader_epoch, begins_at)
            begins = header if 0 <= header.leader_epoch != epochs.last else None
            # Where the log ended, as when it was appended (P5); it may begin later, behind a gap.
            begins_at, end = end, header.next_offset
        if header.producer_id != NO_PRODUCER and header.base_offset >= snapshot_offset:
            is_control = header.attributes & CONTROL
            marker = segment.marker_at(position, header.size) if is_control else None
            entry = producers.replay(header, now_ms, marker)
            if entry is not None:
                aborted.append(entry)
    if begins is not None:
        epochs.begin(begins.leader_epoch, begins_at)
    producers.commit()
    _add_aborted(segments, aborted, snapshot_offset)
    if replayed > REPLAYED_MAX:
        with contextlib.suppress(OSError):
            for segment in segments:
                if not segment.aborted_saved:
                    segment.save_aborted()
            save_snapshot(disk, directory, Snapshot(end_offset, producers.encode()))
    return epochs, producers


def _add_aborted(segments: list[Segment], found: list[AbortedTransaction], floor: int) -> None:
    """The files know of what was aborted below the floor; this was found above it."""
    for segment in segments:
        if segment.end_offset > floor and (found or segment.aborted_filed):
            below = [entry for entry in segment.aborted if entry.marker < floor]
            here = [entry for entry in found if segment.base_offset <= entry.marker < segment.end_offset]
            segment.aborted = below + here


def _confirms(following: BatchHeader, begins: BatchHeader, last: int) -> bool:
    """Whether the batch after one of another epoch bears that out; else that one was damaged."""
    if begins.leader_epoch > last:
        return following.leader_epoch >= begins.leader_epoch
    return following.leader_epoch < last


def newest_snapshot(disk: Disk, directory: str, names: list[str], end_offset: int) -> tuple[Producers, int]:
    """The newest valid snapshot that the log reaches, and its offset; empty at 0 if there is none.

    Later ones tell of batches that are gone: they are removed, or they would be believed again when the
    log has grown past them.
    """
    offsets = numbered(names, SUFFIX)
    usable = [offset for offset in offsets if offset <= end_offset]
    for offset in offsets[len(usable) :]:
        disk.remove(snapshot_path(directory, offset))
    if len(usable) < len(offsets):
        disk.sync_directory(directory)
    for offset in reversed(usable):
        producers = read_producers(disk, snapshot_path(directory, offset))
        if producers is not None:
            return producers, offset
    return Producers(), 0


def headers(segments: list[Segment], start: int, end: int) -> Iterator[tuple[Segment, int, BatchHeader]]:
    """Segment, position and header of all batches from `start` to `end`.

    Around a damaged one as far as the index leads.
    """
    for segment in segments:
        if segment.end_offset > start and segment.base_offset < end:
            yield from _segment_headers(segment, start)


def _segment_headers(segment: Segment, start: int) -> Iterator[tuple[Segment, int, BatchHeader]]:
    position: int | None = 0 if start <= segment.base_offset else segment.index.before_offset(start).position
    while position is not None:
        try:
            for at, header in walk(segment.file, position, segment.size):
                if header.base_offset >= start:
                    yield segment, at, header
            return
        except DamagedBatch as damage:
            position = segment.index.after_position(damage.position)
