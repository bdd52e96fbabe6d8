"""Which segments are old, or too many: they leave the log's view at once and the disk in a thread.

T1 segments go from the oldest on, so the log stays without holes.
T2 one call never removes the segment that was the newest when it began. If all of that is too old, it is
   closed now and removed by the next call, if it still is too old then: a clock that jumped
   ahead and was put right between the two has cost nothing of it.
T3 a segment without any timestamp does not grow old; only its size counts.
T4 nothing at or above the watermark goes, however old or large it is: it is not committed yet.
T5 the new start is on the disk before the first file goes. A power cut may keep any of the names: a segment
   that is back without those behind it would leave a hole in the log.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from postroad.log.checkpoint import CheckpointFile
from postroad.log.disk import Disk
from postroad.log.segment import NO_TIME, Segment
from postroad.log.settings import NO_LIMIT, LogSettings

if TYPE_CHECKING:
    from postroad.log.partition_log import PartitionLog


class RemovedSegment:
    """No longer in the log; `run`, in a thread, deletes its files. Readers under way are not disturbed."""

    __slots__ = ("_checkpoint", "_disk", "_paths", "base_offset", "size")

    def __init__(self, disk: Disk, checkpoint: CheckpointFile, segment: Segment) -> None:
        self._disk = disk
        self._checkpoint = checkpoint
        self._paths = (segment.index_path, segment.aborted_path, segment.path)
        self.base_offset = segment.base_offset
        self.size = segment.size

    def run(self) -> None:
        """Raises OSError; it may then run again, and opening the log deletes what is left, too."""
        try:
            self._checkpoint.sync()  # T5
        except FileNotFoundError:  # the log was deleted as a whole meanwhile
            return
        for path in self._paths:
            self._disk.remove(path)


def expire(log: PartitionLog, now_ms: int, below: int) -> list[RemovedSegment]:
    """See PartitionLog.expire."""
    settings, newest = log.settings, log.active
    log.producer_states.expire(now_ms, settings.producer_expiry_ms)
    if newest.size and (log.is_roll_due(now_ms) or is_old(newest, settings, now_ms)):
        log.roll()
    closed = [s for s in log.segments[: log.segments.index(newest)] if s.end_offset <= below]
    count = outgrown(closed, log.size_bytes, log.start_offset, settings, now_ms)
    removed = list(itertools.takewhile(log.is_free, closed[:count]))
    log.drop(removed)
    return [RemovedSegment(log.disk, log.checkpoint, segment) for segment in removed]


def outgrown(
    closed: Sequence[Segment], total_bytes: int, start_offset: int, settings: LogSettings, now_ms: int
) -> int:
    """How many of the closed segments, from the oldest on, are to go."""
    count = 0
    for segment in closed:
        too_much = 0 <= settings.retention_bytes <= total_bytes - segment.size and settings.cleanup_delete
        if not (segment.end_offset <= start_offset or too_much or is_old(segment, settings, now_ms)):
            break
        total_bytes -= segment.size
        count += 1
    return count


def is_old(segment: Segment, settings: LogSettings, now_ms: int) -> bool:
    """Whether every record in it is older than the topic keeps them; compaction may have left none."""
    if settings.retention_ms == NO_LIMIT or not settings.cleanup_delete:
        return False
    newest = segment.max_timestamp
    return not segment.size or (newest != NO_TIME and newest < now_ms - settings.retention_ms)
