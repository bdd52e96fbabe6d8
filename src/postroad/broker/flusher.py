"""Group commit: while one sync of a log runs, everything that arrives waits for the next one.

A partition asks once; its log says what is written but not synced (a SyncJob); the job runs in a
worker thread; the result comes back on the loop. There is at most one sync in flight for a log, so
the number of syncs follows the disk's pace and not the number of messages.
"""

from __future__ import annotations

import asyncio
import logging
from errno import EIO
from typing import TYPE_CHECKING, Final

from postroad.log.disk import DESCRIPTORS_SHORT
from postroad.log.partition_log import SyncJob
from postroad.system.workers import Workers

if TYPE_CHECKING:
    from postroad.broker.partition import Partition

PUT_OFF_MS: Final = 200  # until descriptors are looked for again; a client waits for the answer meanwhile

log = logging.getLogger(__name__)


class Flusher:
    def __init__(self, loop: asyncio.AbstractEventLoop, workers: Workers) -> None:
        self._loop = loop
        self._workers = workers

    def request(self, partition: Partition) -> None:
        """Sync what the partition has written so far, soon; `partition.synced` follows."""
        if partition.syncing:
            return  # picked up when the running one returns
        partition.log.watermark = partition.high_watermark
        job = partition.log.begin_sync()
        if job is None:
            return
        partition.syncing = True

        def done(_: object, error: BaseException | None) -> None:
            partition.syncing = False
            partition.note_quiet()
            if error is not None and not isinstance(error, OSError):
                log.error("a sync failed in an unexpected way", exc_info=error)
                error = OSError(EIO, str(error))
            if error is not None and error.errno in DESCRIPTORS_SHORT:
                self._put_off(partition, job, error)
                return
            partition.log.finish_sync(job, error)
            partition.synced()

        self._workers.run(job.run, done)

    def _put_off(self, partition: Partition, job: SyncJob, error: OSError) -> None:
        """Nothing was tried, so nothing is lost: those who wait go on waiting."""
        log.error("partition %s-%d: the sync waits: %s", partition.topic, partition.index, error.strerror)
        partition.log.put_off_sync(job)
        if not partition.closed:
            self.request_later(partition, PUT_OFF_MS)

    def request_later(self, partition: Partition, delay_ms: int) -> None:
        """Sync the partition after this delay at the latest (flush mode `interval`); it has one timer."""
        if partition.sync_timer is None:

            def due() -> None:
                partition.sync_timer = None
                self.request(partition)
                if partition.producers.waiting and partition.log.failed is not None and not partition.syncing:
                    partition.synced()  # a write has failed since the sync was put off: there will be none

            partition.sync_timer = self._loop.call_later(delay_ms / 1000, due)
