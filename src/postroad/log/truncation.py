"""Taking back the end of a log, or all of it: a follower whose leader knows better (KIP-101).

A job is made on the loop, `run` in a thread, and finished on the loop; meanwhile the log takes nothing in and
syncs nothing, and a read near its end may find damage where bytes have just gone.

Crash. The order makes it safe to stop anywhere. Truncation: first the checkpoint falls, durably, so that
nobody believes in what is about to go; then later segments go, then the bytes. What is left is a beginning of
what was there, and is opened as after a crash, which finds the producers and leader epochs that belong to
it. Reset: the checkpoint says so, durably; then opening the log removes everything, now or after a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postroad.log.checkpoint import Checkpoint, Point
from postroad.log.recovery import Recovered, recover

if TYPE_CHECKING:
    from postroad.log.partition_log import PartitionLog


class TruncationJob:
    """`run` in a thread, then PartitionLog.finish_truncation on the loop."""

    def __init__(self, log: PartitionLog, offset: int, now_ms: int, *, reset: bool, purged: int = 0) -> None:
        self.found: Recovered | None = None  # the log as it is afterwards
        self._log = log
        self._offset = offset
        self._now_ms = now_ms
        self._reset = reset
        self._purged = purged  # after a reset: below it the leader may have dropped tombstones
        self._compaction_end = log.unfinished_compaction

    def run(self) -> None:
        """Raises OSError, which is final for the log; CorruptMessage, and nothing has changed then."""
        if self._compaction_end is not None:
            self._compaction_end.run()
        if self._reset:
            self._retire_all()
        else:
            self._truncate()
        log = self._log
        self.found = recover(log.disk, log.directory, log.settings, self._now_ms, clean=False)

    def _truncate(self) -> None:
        """Nothing from the batch that holds the offset on is left."""
        log, offset = self._log, self._offset
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
            segment.remove_files()
        log.disk.sync_directory(log.directory)
        tail.file.truncate(position)
        tail.file.sync()

    def _retire_all(self) -> None:
        """The log begins anew at the offset: `recover` removes what is there."""
        offset, copied = self._offset, self._log.checkpoint.current.copied
        point = Point(offset, 0, offset)
        self._log.checkpoint.retire(
            Checkpoint(offset, offset, point, offset, copied, resetting=True, purged_offset=self._purged)
        )
