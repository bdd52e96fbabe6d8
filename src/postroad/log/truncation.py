"""Taking back the end of a log: a follower whose leader knows better (KIP-101).

The order makes it safe to stop anywhere: first the checkpoint falls, durably, so that nobody believes in
what is about to go; then later segments go, then the bytes. What is left is opened as after a crash,
which finds the producers and leader epochs that belong to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postroad.log.checkpoint import Checkpoint, Point
from postroad.log.compaction_files import numbered
from postroad.log.epochs import FILE_NAME as EPOCHS_FILE
from postroad.log.producers import SUFFIX, snapshot_path
from postroad.log.recovery import Recovered, recover

if TYPE_CHECKING:
    from postroad.log.partition_log import PartitionLog


def truncate(log: PartitionLog, offset: int, now_ms: int) -> Recovered:
    """Nothing from the batch that holds `offset` on is left. Raises OSError, CorruptMessage."""
    count = sum(segment.base_offset <= offset for segment in log.segments)
    tail, later = log.segments[count - 1], log.segments[count:]
    position = tail.locate(offset)
    end = tail.offset_at(position, offset)
    old = log.checkpoint.current
    point = Point(tail.base_offset, position, end) if end < old.point.offset else old.point
    log.checkpoint.retire(
        old._replace(
            start_offset=min(old.start_offset, end),
            cleaned_offset=min(old.cleaned_offset, end),
            point=point,
            watermark=min(log.watermark, end),
        )
    )
    for segment in reversed(later):
        log.cache.drop(segment)
        segment.remove_files()
    log.disk.sync_directory(log.directory)
    tail.file.truncate(position)
    tail.file.sync()
    log.cache.drop(tail)
    return recover(log.disk, log.directory, log.settings, now_ms, clean=False)


def reset(log: PartitionLog, offset: int, now_ms: int) -> Recovered:
    """Nothing is left; the log goes on at `offset`. Raises OSError."""
    copied = log.checkpoint.current.copied
    log.checkpoint.retire(Checkpoint(offset, offset, Point(offset, 0, offset), offset, copied))
    for snapshot in numbered(log.disk.list(log.directory), SUFFIX):
        log.disk.remove(snapshot_path(log.directory, snapshot))
    log.disk.remove(f"{log.directory}/{EPOCHS_FILE}")
    for segment in reversed(log.segments):
        log.cache.drop(segment)
        segment.remove_files()
    log.disk.sync_directory(log.directory)
    return recover(log.disk, log.directory, log.settings, now_ms, clean=False)
