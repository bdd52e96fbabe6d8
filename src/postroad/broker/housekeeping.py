"""What a node does to its logs when nobody asks: retention, compaction, and rolls that are due.

Decisions are made on the loop and cost little; the work on files runs in a thread, one log at a
time, so that it never stands in front of a message. What goes wrong with one log is told and does
not keep the others from their turn.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from postroad.broker.partition import Partition
from postroad.cluster.topic_config import TopicSettings
from postroad.errors import ApiError
from postroad.log.compaction import CompactionEnd, CompactionJob
from postroad.log.retention import RemovedSegment

if TYPE_CHECKING:
    from postroad.broker.node import Node

log = logging.getLogger(__name__)


class Housekeeping:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._compacting: tuple[Partition, CompactionJob] | None = None
        self._unremoved: list[RemovedSegment] = []  # their files could not be deleted yet

    async def run_retention(self) -> None:
        """Apply retention to all logs, again and again, for as long as the node lives."""
        while True:
            await asyncio.sleep(self._node.settings.storage.retention_check_ms / 1000)
            self._node.directory.reserve.lay_aside()
            unremoved, self._unremoved = self._unremoved, []
            self._remove(unremoved)
            for partition in self._healthy():
                committed = await self._committed(partition)
                if not partition.closed:
                    self.expire(partition, committed)

    async def run_compaction(self) -> None:
        """Compact one log after the other, for as long as the node lives."""
        while self._node.settings.storage.compaction:
            await asyncio.sleep(self._node.settings.storage.compaction_check_ms / 1000)
            for partition in self._healthy():
                try:
                    await self.compact(partition)
                except (OSError, ApiError) as error:
                    log.error("compaction of %s-%d: %s", partition.topic, partition.index, error)
                except Exception:
                    log.exception("compaction of %s-%d", partition.topic, partition.index)

    def _healthy(self) -> list[Partition]:
        every = (log for partition in self._node.partitions for log in partition.with_ledger())
        return [p for p in every if not p.closed and p.log.failed is None]

    def expire(self, partition: Partition, committed: int | None = None) -> None:
        """Segments past their time leave the log now; their files follow in a thread.

        `committed`: below this offset every group is done with the partition, on whichever node it is; None
        where only this node's groups are known."""
        try:
            self._drop_acknowledged(partition, committed)
            removed = partition.log.expire(self._node.clock.now_ms(), partition.high_watermark)
        except (OSError, ApiError) as error:
            log.error("retention of %s-%d: %s", partition.topic, partition.index, error)
            return
        except Exception:
            log.exception("retention of %s-%d", partition.topic, partition.index)
            return
        self._remove(removed)

    def _remove(self, segments: list[RemovedSegment]) -> None:
        """Delete their files in a thread; those that can't be deleted are tried again at the next check."""

        def done(segment: RemovedSegment, _: object, error: BaseException | None) -> None:
            if error is not None:
                log.error("a segment's files could not be removed: %s", error)
                self._unremoved.append(segment)

        for segment in segments:
            self._node.slow_workers.run(segment.run, partial(done, segment))

    async def _committed(self, partition: Partition) -> int | None:
        """What groups of all nodes have committed, where that counts and other nodes must be asked."""
        groups, settings = self._node.groups, self._settings(partition)
        if groups.knows_all or not partition.leads or settings is None:
            return None
        if not settings.retention_acknowledged or not settings.retention_groups:
            return None
        try:
            end = partition.high_watermark
            return await groups.committed_anywhere(partition.topic, partition.index, end)
        except ApiError as error:  # nothing is deleted for now; the next check asks again
            log.info("retention of %s-%d waits for groups: %s", partition.topic, partition.index, error)
            return None

    def _settings(self, partition: Partition) -> TopicSettings | None:
        topic = self._node.image.topics_by_id.get(partition.topic_id)
        return None if topic is None else self._node.replicas.settings_of(topic)

    def _drop_acknowledged(self, partition: Partition, committed: int | None) -> None:
        """Where a topic keeps messages until they are acknowledged: what everybody is done with goes.

        A topic without subscriptions keeps everything, as long as its time limit lets it.
        """
        settings = self._settings(partition)
        if settings is None or not settings.retention_acknowledged:
            return
        done = self._node.subscriptions.done_below(partition.topic_id, partition.index)
        if done is None:
            return
        if settings.retention_groups:
            groups = self._node.groups
            if committed is None and not groups.knows_all:
                return  # a group of another node may not have read them
            done = groups.committed_below(partition.topic, partition.index, done)
            done = done if committed is None else min(done, committed)
        if done > partition.log.start_offset:
            below = partition.high_watermark
            partition.log.delete_before(min(done, below), below)

    async def compact(self, partition: Partition) -> None:
        """Bring the log's closed segments down to the latest record of each key, if it is worth it.

        What the last compaction could not finish is finished first.
        """
        if partition.closed:
            return
        if (unfinished := partition.log.unfinished_compaction) is not None:
            await self._finish_compaction(partition, unfinished)
        if partition.closed:
            return
        job = partition.log.compaction(self._node.clock.now_ms(), partition.high_watermark)
        if job is None:
            return
        partition.busy = True
        self._compacting = partition, job
        try:
            await self._run(partition, job)
        finally:
            self._compacting = None
            partition.busy = False
            partition.note_quiet()

    async def _finish_compaction(self, partition: Partition, compaction_end: CompactionEnd) -> None:
        partition.busy = True
        try:
            await self._node.slow_workers.call(compaction_end.run)
        finally:
            partition.busy = False
            partition.note_quiet()

    async def _run(self, partition: Partition, job: CompactionJob) -> None:
        failed: Exception | None = None
        try:
            await self._node.slow_workers.call(job.run)
        except Exception as error:
            failed = error
        if job.swapped and not partition.closed:  # also those that were swapped before it failed count
            compaction_end = partition.log.install(job)
            await self._node.slow_workers.call(compaction_end.run)
        if failed is not None:
            raise failed

    async def stop_compaction(self, partition: Partition) -> None:
        """The partition closes: a compaction of its log ends with the batch that it is at."""
        if self._compacting is not None and self._compacting[0] is partition:
            await self._node.slow_workers.call(self._compacting[1].cancel)
