"""Looking up records by time (ListOffsets)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from postroad.log.epochs import LeaderEpochs
from postroad.log.scan import walk
from postroad.log.segment import NO_TIME, Segment
from postroad.wire.batch import BatchHeader
from postroad.wire.records import decode_records


class TimePosition(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


def offset_for_time(
    segments: Sequence[Segment], timestamp_ms: int, start_offset: int, epochs: LeaderEpochs
) -> TimePosition | None:
    """The first record at or above the start offset that is not older. Raises CorruptMessage."""
    for segment in segments:
        if segment.max_timestamp >= timestamp_ms:
            found = _in_segment(segment, timestamp_ms, start_offset, epochs)
            if found is not None:
                return found
    return None


def max_timestamp(
    segments: Sequence[Segment], start_offset: int, epochs: LeaderEpochs
) -> TimePosition | None:
    """The first of the records that have the largest timestamp."""
    times = [_max_timestamp(segment, start_offset) for segment in segments]
    largest = max(times, default=NO_TIME)
    if largest == NO_TIME:
        return None
    return _in_segment(segments[times.index(largest)], largest, start_offset, epochs)


def _in_segment(
    segment: Segment, timestamp_ms: int, start_offset: int, epochs: LeaderEpochs
) -> TimePosition | None:
    entry = segment.before_time(timestamp_ms)
    for position, header in walk(segment.file, entry.position, segment.size, entry.offset):
        if header.max_timestamp >= timestamp_ms and header.last_offset >= start_offset:
            segment.verify(segment.file, position, position + header.size, epochs)
            found = _in_batch(segment, position, header, timestamp_ms, start_offset)
            if found is not None:
                return found
    return None


def _in_batch(
    segment: Segment, position: int, header: BatchHeader, timestamp_ms: int, start_offset: int
) -> TimePosition | None:
    batch = memoryview(segment.file.read(position, header.size))
    for record in decode_records(batch):
        if record.timestamp >= timestamp_ms and record.offset >= start_offset:
            return TimePosition(record.offset, record.timestamp, header.leader_epoch)
    return None


def _max_timestamp(segment: Segment, start_offset: int) -> int:
    """The segment's highest timestamp; where records were deleted, only the batches that are left count."""
    if start_offset <= segment.base_offset:
        return segment.max_timestamp
    batches = walk(segment.file, segment.boundary(start_offset), segment.size)
    return max((header.max_timestamp for _, header in batches), default=NO_TIME)
