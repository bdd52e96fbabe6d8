"""Restoring a backup into the data directory of one node.

1. `restoring` is put into the directory, durably: no node starts there as long as it is.
2. Each log is written anew from its parts, by the same code that copies a leader's log, and synced.
3. The coordination store is written: one node leads everything.
4. node.json is written, and the mark is taken away.

A restore that was ended early is begun anew when it is given again: it removes what it had written. It never
removes anything of a directory that a node has used.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from postroad.backups import batches, contents
from postroad.backups.errors import BackupError
from postroad.backups.manifest import LogCopy, Manifest
from postroad.backups.target import Target
from postroad.backups.verify import pieces, read_part
from postroad.broker.data_directory import DataDirectory
from postroad.cluster import keys
from postroad.cluster.ids import id_bytes, id_text, make_id
from postroad.cluster.importing import plan
from postroad.cluster.sqlite import SqliteStore
from postroad.cluster.store import Snapshot, StoreEntry
from postroad.errors import PostroadError
from postroad.log.disk import OsDisk
from postroad.log.partition_log import PartitionLog
from postroad.log.settings import LogSettings

LEDGER_SEGMENT_BYTES: Final = 16 * 1024 * 1024
RESTORED: Final = ("logs", "schedules")  # directories that hold what a restore writes, or a node after it
FILES: Final = ("node.json", "boot-id", "clean-shutdown", "reserve")

Progress = Callable[[int], None]


class Restoring:
    """One directory and one backup. Everything blocks."""

    def __init__(
        self, target: Target, read: Manifest, path: Path, node: int, random: Callable[[int], bytes]
    ) -> None:
        self._target = target
        self._read = read
        self._path = path
        self._node = node
        self._random = random
        self._disk = OsDisk()
        self._directory = DataDirectory(path, self._disk)

    def run(self, master: bytes | None, progress: Progress) -> None:
        """The directory is as after a clean stop of its node. Raises BackupError, PostroadError."""
        assert self._read.store is not None
        entries = contents.decode(read_part(self._target, self._read.store, "the coordination store"))
        values = contents.opened(entries, master)
        logs = {log.key: log for log in self._read.logs}
        made = contents.for_one_node(values, logs, self._node)
        cluster = keys.decode(keys.CLUSTER, made[keys.CLUSTER], keys.ClusterValue).id
        self._refuse_used()
        self._directory.begin_restore()
        try:
            self._clear()
            self._disk.make_directory(str(self._directory.logs))
            for log in self._read.logs:
                self._restore(log, _segment_bytes(values, log), progress)
            asyncio.run(self._write_store(made))
            self._directory.note(cluster, self._node, id_text(make_id(self._random(16))))
            self._directory.end_restore()
        except OSError as error:
            raise BackupError(f"{self._path} can't be written: {error.strerror}") from None
        finally:
            self._directory.close(clean=False)

    def _refuse_used(self) -> None:
        if self._directory.is_restoring():
            return
        for name in (
            "node.json",
            "nodes.json",
            "logs",
            "coordination.sqlite",
            "coordination.sqlite.imported",
        ):
            if (self._path / name).exists():
                raise BackupError(
                    f"{self._path} is a node's data directory, {name} is in it: restore into an empty one"
                )

    def _clear(self) -> None:
        """What a restore before has written."""
        for name in RESTORED:
            shutil.rmtree(self._path / name, ignore_errors=True)
        for path in [*(self._path / name for name in FILES), *self._path.glob("coordination.sqlite*")]:
            path.unlink(missing_ok=True)

    def _restore(self, copy: LogCopy, segment_bytes: int, progress: Progress) -> None:
        topic_id = id_bytes(copy.topic_id)
        if copy.is_ledger:
            path = self._directory.ledger_directory(topic_id, copy.index)
        else:
            path = self._directory.partition_directory(topic_id, copy.index)
        self._disk.make_directory(path)
        now_ms = time.time_ns() // 1_000_000
        settings = LogSettings(segment_bytes=segment_bytes, copied=True)
        log = PartitionLog.open(self._disk, path, settings, now_ms, clean=True)
        first = copy.parts[0].first if copy.parts else copy.end
        if first or copy.purged:
            job = log.begin_reset(first, now_ms, copy.purged)
            job.run()
            log.finish_truncation(job, None)
        for part in copy.parts:
            for piece in pieces(self._target, part, str(copy)):
                _append(log, piece, part.last_epoch, now_ms)
            progress(part.bytes)
        if copy.parts and log.end_offset < copy.end:
            epoch = copy.parts[-1].last_epoch
            _append(log, memoryview(batches.filler(log.end_offset, copy.end, epoch)), epoch, now_ms)
        log.delete_before(max(copy.start, log.start_offset), log.end_offset)
        log.watermark = log.end_offset
        log.close()

    async def _write_store(self, values: dict[str, bytes]) -> None:
        wanted = Snapshot([StoreEntry(key, values[key], 0) for key in sorted(values)], 0)
        store = await SqliteStore.open(self._directory.store)
        try:
            for compares, operations in plan(wanted, await store.list("")):
                if await store.commit(compares, operations) is None:
                    raise BackupError(f"somebody else writes to {self._directory.store}")
        finally:
            await store.close()


def _append(log: PartitionLog, piece: memoryview, epoch: int, now_ms: int) -> None:
    """The log has the batches, on the disk."""
    log.append_copy(piece, epoch, now_ms)
    log.write()
    job = log.begin_sync()
    if job is not None:
        job.run()
        log.finish_sync(job, None)


def _segment_bytes(values: dict[str, bytes], copy: LogCopy) -> int:
    """As large as the topic's, where it says so: retention and compaction work on segments."""
    default = LEDGER_SEGMENT_BYTES if copy.is_ledger else LogSettings().segment_bytes
    value = values.get(keys.topic_key(copy.topic))
    if value is None or copy.is_ledger:
        return default
    try:
        text = keys.decode(copy.topic, value, keys.TopicValue).config.get("segment.bytes", "")
    except PostroadError:
        return default
    return int(text) if text.isdecimal() else default
