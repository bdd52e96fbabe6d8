"""All fetchers of this node: one for each leader that it follows, and another for logs with flush `sync`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from errno import EIO
from typing import TYPE_CHECKING

from postroad.broker.partition import FLUSH_SYNC, Partition
from postroad.replication.follower import Follower, Step

if TYPE_CHECKING:
    from postroad.broker.node import Node
    from postroad.broker.replica_fetcher import ReplicaFetcher

log = logging.getLogger(__name__)

Kind = tuple[int, bool]
"""A leader, and whether its logs are synced."""


class ReplicaFetchers:
    def __init__(self, node: Node, log_changed: Callable[[Partition], None]) -> None:
        """`log_changed` hears of partitions whose log was cut: they take their role then."""
        self._node = node
        self._log_changed = log_changed
        self._fetchers: dict[Kind, ReplicaFetcher] = {}
        self._tasks: dict[Kind, asyncio.Task[None]] = {}
        self._where: dict[Partition, Kind] = {}  # by log: what copies it
        self._cutting: dict[Partition, None] = {}  # logs of which some end is being taken back

    def add(self, partition: Partition, leader: int) -> None:
        """The logs of the partition follow this leader from here on, and no other."""
        for each in partition.with_ledger():
            kind = leader, each.flush == FLUSH_SYNC
            fetcher = self._fetchers.get(kind)
            if fetcher is None:
                fetcher = self._fetchers[kind] = self._made(leader, synced=kind[1])
                self._tasks[kind] = self._node.tasks.start(fetcher.run(), "fetch-replicas")
            if each.copying is not fetcher:
                self._remove_log(each)
                self._where[each] = kind
            fetcher.add(each)

    def _made(self, leader: int, *, synced: bool) -> ReplicaFetcher:
        from postroad.broker.replica_fetcher import ReplicaFetcher  # a lone node follows nobody

        return ReplicaFetcher(self._node, leader, self._cut, synced=synced)

    def remove(self, partition: Partition) -> None:
        """Nobody is followed."""
        for each in partition.with_ledger():
            self._remove_log(each)

    def _remove_log(self, partition: Partition) -> None:
        kind = self._where.pop(partition, None)
        if kind is None:
            return
        self._fetchers[kind].remove(partition)
        if not self._fetchers[kind].logs:
            del self._fetchers[kind]
            self._tasks.pop(kind).cancel()

    def is_cutting(self, partition: Partition) -> bool:
        return any(each in self._cutting for each in partition.with_ledger())

    def _cut(self, partition: Partition, step: Step) -> None:
        """Take back what the leader does not have: begun and finished here, done in a thread."""
        follower, node = partition.follower, self._node
        assert follower is not None
        before, now_ms = partition.log.end_offset, node.clock.now_ms()
        job = (
            partition.log.begin_truncation(follower.target, now_ms)
            if step is Step.TRUNCATE
            else partition.log.begin_reset(follower.target, now_ms, follower.target_purged)
        )
        if job is None:
            self._was_cut(partition, follower, step)
            return
        self._cutting[partition] = None
        partition.busy = True

        def done(_: object, error: BaseException | None) -> None:
            partition.busy = False
            partition.note_quiet()
            del self._cutting[partition]
            if error is not None and not isinstance(error, OSError):
                log.error("a log could not be cut", exc_info=error)
                error = OSError(EIO, str(error))
            partition.log.finish_truncation(job, error)
            if partition.closed:
                return
            if error is not None:
                log.error("%s-%d can't follow its leader: %s", partition.topic, partition.index, error)
                node.replicas.begin_anew(partition)
                return
            _tell(partition, follower, step, before)
            self._was_cut(partition, follower, step)

        node.slow_workers.run(job.run, done)

    def _was_cut(self, partition: Partition, follower: Follower, step: Step) -> None:
        if step is Step.TRUNCATE:
            follower.truncated(partition.log.end_offset, partition.log.last_epoch)
        else:
            follower.reset(partition.log.start_offset)
        partition.set_watermark(follower.watermark)
        self._log_changed(self._node.partitions.parent_of(partition))
        kind = self._where.get(partition)
        if kind is not None and partition.copying is self._fetchers[kind]:
            self._fetchers[kind].name_again(partition)


def _tell(partition: Partition, follower: Follower, step: Step, before: int) -> None:
    where, end = (partition.topic, partition.index), partition.log.end_offset
    if step is Step.TRUNCATE:
        log.info("%s-%d was cut from %d to %d, as its leader has it", *where, before, end)
    elif follower.target_purged == follower.purged:
        log.info("%s-%d begins anew at %d, where its leader's log starts", *where, end)
    else:
        text = "%s-%d begins anew at %d: deletions that its leader has forgotten may be missing here"
        log.info(text, *where, end)
