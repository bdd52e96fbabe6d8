"""`ScheduleFile`: where a queue with many delayed messages keeps what it knows of its log.

After a start all messages that are not done are read again. A million delayed ones take seconds, and what is
due lies behind them. So now and then their schedule is written to a file, and read back instead.

    base offset, CRC and leader epoch of the last batch that it tells of · CRC of the rest · the snapshot

It is a hint: never synced, and passed over unless all of it fits. The log is the same up to that batch if the
batch is: within a leader epoch a log only grows, and whoever cuts it begins another (L2).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection
from hashlib import blake2b
from struct import Struct
from typing import TYPE_CHECKING, Final
from zlib import crc32

from postroad.broker.partition import Partition
from postroad.cluster.ids import id_text
from postroad.errors import ApiError
from postroad.log.disk import Disk, read_file
from postroad.now import Now
from postroad.queues import schedule_snapshot
from postroad.queues.schedule_snapshot import Snapshot
from postroad.queues.share_partition import SharePartition
from postroad.wire import batch as batches

if TYPE_CHECKING:
    from postroad.broker.node import Node

DELAYED_MIN: Final = 20_000  # messages; fewer are read again in a moment
GROWTH: Final = 4  # written anew when a quarter has come since: in all some four times what is kept
_HEAD: Final = Struct("<qIiI")
_NEW: Final = ".new"
_ID_CHARACTERS: Final = 22

Identity = tuple[int, int, int]
"""Base offset, CRC and leader epoch of a batch."""

log = logging.getLogger(__name__)


class ScheduleFile:
    def __init__(self, node: Node, group: str, partition: Partition, core: SharePartition) -> None:
        self._node = node
        self._partition = partition
        self._core = core
        digest = blake2b(group.encode(), digest_size=12).hexdigest()
        name = f"{id_text(partition.topic_id)}-{partition.index}-{digest}"
        self._disk = node.runtime.disk
        self._directory = str(node.directory.schedules)
        self._name = name
        self._path = f"{self._directory}/{name}"
        self._saved_to = 0  # the frontier of what was written last
        self._writing = False

    def exists(self) -> bool:
        """Whether there is something to read. What can't be opened counts: reading it says why."""
        try:
            self._disk.open(self._path).close()
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return True

    def read(self) -> tuple[Identity, Snapshot] | None:
        """What the file says and of which log; None if it is not whole. Runs in a thread."""
        data = read_file(self._disk, self._path)
        if len(data) < _HEAD.size:
            return None
        *identity, crc = _HEAD.unpack_from(data)
        rest = data[_HEAD.size :]
        if crc32(rest) != crc:
            return None
        snapshot = schedule_snapshot.read(rest, self._node.clock.now())
        return None if snapshot is None else ((identity[0], identity[1], identity[2]), snapshot)

    def restore(self, identity: Identity, snapshot: Snapshot, now: Now) -> None:
        """What was read is known to the core, if it is of this very log."""
        if self._last_batch(snapshot.frontier) != identity:
            return
        if schedule_snapshot.restore(self._core, snapshot, now):
            self._saved_to = snapshot.frontier

    def save_if_worth(self, now: Now) -> None:
        """Save the schedule if it has grown enough; call it when the core has learned more."""
        delayed = self._core.delayed
        if delayed < DELAYED_MIN or self._writing:
            return
        if self._core.frontier - self._saved_to >= max(DELAYED_MIN, delayed // GROWTH):
            self._save(now)

    def _save(self, now: Now) -> None:
        frontier = self._core.frontier
        identity = self._last_batch(frontier)
        parts = schedule_snapshot.take(self._core, now) if identity is not None else None
        self._saved_to = frontier
        if identity is None or parts is None:
            return
        self._writing = True

        def done(_: None, error: BaseException | None) -> None:
            self._writing = False
            if error is not None:
                log.warning("the schedule of %s can't be written: %s", self._name, error)
            elif not self._partition.closed:
                self.save_if_worth(self._node.clock.now())  # much may have come meanwhile, and nothing since

        self._node.slow_workers.run(lambda: self._write(identity, parts), done)

    def _write(self, identity: Identity, parts: list[bytes]) -> None:
        """Runs in a thread."""
        data = b"".join(parts)
        new = self._path + _NEW
        self._disk.make_directory(self._directory)
        try:
            _write_file(self._disk, new, _HEAD.pack(*identity, crc32(data)) + data)
            self._disk.rename(new, self._path)
        except OSError:
            self._disk.unlink(new)  # a full disk needs the room
            raise

    def _last_batch(self, frontier: int) -> Identity | None:
        """What tells the batch that ends at the frontier from any other; None if none does."""
        try:
            found = self._partition.read(frontier - 1, 1)
            if found is None:
                return None
            header = batches.read_header(memoryview(found.file.read(found.position, batches.HEADER_BYTES)))
        except (ApiError, OSError):
            return None
        if header.next_offset != frontier:
            return None
        return header.base_offset, header.crc, header.leader_epoch


def remove_strays(disk: Disk, directory: str, topic_ids: Collection[str]) -> None:
    """Files of topics that are gone, and those that were half written. What can't be removed stays."""
    try:
        names = disk.list(directory)
    except OSError as error:
        log.warning("schedules of topics that are gone can't be removed: %s", error)
        return
    for name in names:
        if name.endswith(_NEW) or name[:_ID_CHARACTERS] not in topic_ids:
            with contextlib.suppress(OSError):
                disk.unlink(f"{directory}/{name}")


def _write_file(disk: Disk, path: str, content: bytes) -> None:
    file = disk.open(path, create=True)
    try:
        file.truncate(0)
        file.append([content])
    finally:
        file.close()
