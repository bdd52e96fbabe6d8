"""Queues that get more partitions while this node is busy with them (`cluster.widening` decides)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from postroad.cluster import widening
from postroad.cluster.topic_config import partitions_auto
from postroad.cluster.widening import LOOKS, Busyness
from postroad.errors import ApiError, CoordinationError

if TYPE_CHECKING:
    from postroad.broker.node import Node

log = logging.getLogger(__name__)


class Widening:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._busyness = Busyness(node.settings.cluster.busy_percent)
        self._ends: dict[tuple[bytes, int], int] = {}  # of what is led here, at the last look

    async def run(self) -> None:
        """Look, again and again, for as long as the node lives."""
        pause_s = self._node.settings.cluster.busy_ms / LOOKS / 1000
        clock, runtime = self._node.clock, self._node.runtime
        at_ms, used_s = clock.monotonic_ms(), runtime.cpu_seconds()
        while True:
            await asyncio.sleep(pause_s)
            now_ms, now_used_s = clock.monotonic_ms(), runtime.cpu_seconds()
            is_busy = self._busyness.look(now_ms - at_ms, int((now_used_s - used_s) * 1000))
            at_ms, used_s = now_ms, now_used_s
            if len(self._node.image.nodes) <= 1 or not self._is_wanted():
                continue
            try:
                await self._look(is_busy)
            except (ApiError, CoordinationError) as error:
                log.warning("a busy topic did not get more partitions: %s", error)

    def _is_wanted(self) -> bool:
        return any(partitions_auto(topic.config) for topic in self._node.image.topics.values())

    async def _look(self, is_busy: bool) -> None:
        messages = self._messages()
        if not is_busy:
            return
        spread = {topic_id for topic_id in messages if self._may_spread(topic_id)}
        growth = widening.wider(self._node.image, self._node.settings.node.id, messages, spread)
        if growth is not None:
            log.info("%s gets %d partitions: this node is busy with it", growth.topic, growth.partitions)
            await self._node.topic_changes.add_partitions(
                growth.topic, growth.partitions, growth.assignments, validate_only=False
            )

    def _messages(self) -> dict[bytes, int]:
        """How many came since the last look to what this node leads, by topic id."""
        ends = {
            (partition.topic_id, partition.index): partition.high_watermark
            for partition in self._node.partitions
            if partition.leads
        }
        came: dict[bytes, int] = {}
        for where, end in ends.items():
            came[where[0]] = came.get(where[0], 0) + max(0, end - self._ends.get(where, end))
        self._ends = ends
        return came

    def _may_spread(self, topic_id: bytes) -> bool:
        """Whether it is a queue, and neither its subscriptions nor compaction go by keys."""
        subscriptions = self._node.subscriptions
        topic, led = self._node.image.topics_by_id.get(topic_id), self._node.partitions.of(topic_id)
        if topic is None or any(partition.log.settings.cleanup_compact for partition in led):
            return False
        groups = subscriptions.groups_of(topic)
        return bool(groups) and all(widening.may_spread(subscriptions.settings(each)) for each in groups)
