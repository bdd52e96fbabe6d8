"""What a node does to its logs when nobody asks: retention, compaction, and rolls that are due.

Decisions are made on the loop and cost little; the work on files runs in a thread, one log at a
time, so that it never stands in front of a message.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from postroad.broker.partition import Partition
from postroad.errors import ApiError

if TYPE_CHECKING:
    from postroad.broker.node import Node

log = logging.getLogger(__name__)


class Housekeeping:
    def __init__(self, node: Node) -> None:
        self._node = node

    async def run_retention(self) -> None:
        """For as long as the node lives."""
        while True:
            await asyncio.sleep(self._node.settings.storage.retention_check_ms / 1000)
            for partition in self._healthy():
                self.expire(partition)

    async def run_compaction(self) -> None:
        """For as long as the node lives, one log after the other."""
        while self._node.settings.storage.compaction:
            await asyncio.sleep(self._node.settings.storage.compaction_check_ms / 1000)
            for partition in self._healthy():
                try:
                    await self.compact(partition)
                except (OSError, ApiError) as error:
                    log.error("compaction of %s-%d: %s", partition.topic, partition.index, error)

    def _healthy(self) -> list[Partition]:
        return [p for p in self._node.partitions if not p.closed and p.log.failed is None]

    def expire(self, partition: Partition) -> None:
        """Segments past their time leave the log now; their files follow in a thread."""
        for removed in partition.log.expire(self._node.clock.now_ms()):
            self._node.slow_workers.run(removed.run, _report)

    async def compact(self, partition: Partition) -> None:
        """Bring the log's closed segments down to the latest record of each key, if it is worth it."""
        if partition.closed:
            return
        job = partition.log.compaction(self._node.clock.now_ms())
        if job is None:
            return
        partition.busy = True
        try:
            await self._node.slow_workers.call(job.run)
            if not partition.closed:
                partition.log.install(job)
        finally:
            partition.busy = False
            partition.note_quiet()


def _report(_: object, error: BaseException | None) -> None:
    if error is not None:
        log.error("a segment's files could not be removed: %s", error)
