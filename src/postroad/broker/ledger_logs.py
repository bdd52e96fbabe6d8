"""`LedgerLogs`: opens the second log of a partition, its ledger, beside the one of its messages.

A ledger is a `Partition` of its own, so that whatever appends, syncs, commits and replicates messages does so
for ledgers, too. It has the leader and the leader epoch of its messages, and a high watermark of its own. No
client finds it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from postroad.broker.data_directory import DataDirectory
from postroad.broker.log_settings import log_settings
from postroad.broker.partition import Partition
from postroad.cluster.ids import ledger_id
from postroad.cluster.image import Topic
from postroad.cluster.internal_topics import LEDGER_CONFIG
from postroad.cluster.topic_config import resolve
from postroad.log.partition_log import PartitionLog
from postroad.log.segment_cache import SegmentCache

if TYPE_CHECKING:
    from postroad.broker.node import Node


class LedgerLogs:
    def __init__(self, node: Node, directory: DataDirectory, cache: SegmentCache) -> None:
        self._node = node
        self._directory = directory
        self._cache = cache
        self._settings = resolve(LEDGER_CONFIG, node.settings.topic_defaults)

    async def open(self, topic: Topic, index: int, clean: bool) -> PartitionLog:
        """Create the ledger's log, or recover it. Raises OSError."""
        node = self._node
        copied = len(topic.partitions[index].replicas) > 1
        settings = log_settings(self._settings, node.settings.storage.producer_expiry_ms, copied)
        path, now_ms = self._directory.ledger_directory(topic.id, index), node.clock.now_ms()
        work = partial(PartitionLog.open, node.runtime.disk, path, settings, now_ms, clean, self._cache)
        opened: PartitionLog = await node.slow_workers.call(work)
        return opened

    def ledger(self, messages: Partition, opened: PartitionLog) -> Partition:
        """The ledger of a partition, over the log that was opened for it."""
        return Partition(
            f"ledger of {messages.topic}",
            ledger_id(messages.topic_id),
            messages.index,
            opened,
            self._node.turn,
            self._node.flusher,
            self._settings.flush,
            self._settings.flush_interval_ms,
            internal=True,
        )
