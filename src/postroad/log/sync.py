"""A sync of one log: what to make durable, captured on the loop and done in a worker thread."""

from __future__ import annotations

import contextlib
from typing import Final, NamedTuple

from postroad.log import epochs
from postroad.log.checkpoint import CheckpointFile, Point
from postroad.log.compaction_files import numbered
from postroad.log.disk import Disk
from postroad.log.producers import SUFFIX, snapshot_path
from postroad.log.segment import Segment

SNAPSHOTS_KEPT: Final = 2


class Snapshot(NamedTuple):
    """The producers' state when the log ended at `offset`."""

    offset: int
    content: bytes


def save_snapshot(disk: Disk, directory: str, snapshot: Snapshot) -> None:
    """Not synced: one that a crash spoils fails its CRC, and the one before it is still there."""
    file = disk.open(snapshot_path(directory, snapshot.offset), create=True)
    try:
        file.truncate(0)
        file.append([snapshot.content])
    finally:
        file.close()
    for offset in numbered(disk.list(directory), SUFFIX)[:-SNAPSHOTS_KEPT]:
        disk.remove(snapshot_path(directory, offset))


class SyncJob:
    """Bytes first, then names, then what is told about them: a checkpoint never lies.

    `run` is for a worker thread; an OSError passes through and is final (see PartitionLog.finish_sync).
    """

    __slots__ = (
        "_directory",
        "_disk",
        "aborted",
        "aborted_done",
        "checkpoint",
        "durable",
        "epochs",
        "names",
        "point",
        "segments",
        "snapshot",
        "watermark",
    )

    def __init__(
        self, disk: Disk, directory: str, checkpoint: CheckpointFile, point: Point, watermark: int
    ) -> None:
        self._disk = disk
        self._directory = directory
        self.checkpoint = checkpoint
        self.point = point
        self.watermark = watermark
        self.segments: list[Segment] = []
        self.names = False  # files were created
        self.epochs: bytes | None = None
        self.aborted: dict[Segment, bytes] = {}  # lists of aborted transactions to be saved
        self.aborted_done: dict[Segment, bytes] = {}  # those that were
        self.snapshot: Snapshot | None = None
        self.durable = False  # the checkpoint itself is to survive a power cut
        # What could not be done is still set after `run`, and belongs into the next job.

    def run(self) -> None:
        for segment in self.segments:
            segment.file.sync()
        if self.names:
            self._disk.sync_directory(self._directory)
        # The messages are safe from here on. What follows spares a recovery some reading: it may
        # fail for want of room and lag behind, but the point never passes an epoch that is not saved.
        with contextlib.suppress(OSError), self.checkpoint.telling:
            if not self.checkpoint.retired:  # else it would tell of a log that was truncated meanwhile
                self._tell()

    def _tell(self) -> None:
        for segment in list(self.aborted):  # before the snapshot that lies behind their markers
            self._disk.replace(segment.aborted_path, self.aborted[segment])
            self.aborted_done[segment] = self.aborted.pop(segment)
        if self.snapshot is not None:
            save_snapshot(self._disk, self._directory, self.snapshot)
            self.snapshot = None
        if self.epochs is not None:
            self._disk.replace(f"{self._directory}/{epochs.FILE_NAME}", self.epochs)
            self.epochs = None
        self.checkpoint.save_point(self.point, self.watermark)
        if self.durable:
            self.checkpoint.sync()
            self.durable = False
