"""All group coordinators of this node: one for each partition of `__consumer_offsets` that it leads."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final
from zlib import crc32

from postroad.broker.coordinator import Coordinator
from postroad.cluster.image import OFFSETS_TOPIC, Changes
from postroad.errors import CoordinatorNotAvailable, InvalidGroupId
from postroad.groups.coordinator import Groups
from postroad.groups.requests import TopicInfo, Topics
from postroad.groups.settings import GroupSettings

if TYPE_CHECKING:
    from postroad.broker.node import Node

OFFSETS_CONFIG: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(100 * 1024 * 1024),  # small segments: compaction works on closed ones
    "compression.type": "producer",
}
LOAD_WAIT_S: Final = 0.5  # a start waits so long for groups; large ones load on while clients retry

log = logging.getLogger(__name__)


class GroupCoordination:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._coordinators: list[Coordinator] = []
        self._topics = Topics(0, {})

    async def start(self) -> None:
        node = self._node
        if OFFSETS_TOPIC not in node.image.topics:
            await node.create_topic(
                OFFSETS_TOPIC,
                partitions=node.settings.groups.offsets_partitions,
                config=OFFSETS_CONFIG,
                internal=True,
            )
        settings = group_settings(node)
        self._coordinators = [
            Coordinator(partition, Groups(settings), node.clock, node.turn, node.loop)
            for partition in node.partitions.of(OFFSETS_TOPIC)
        ]
        loading = [node.tasks.start(self._load(c), "load-groups") for c in self._coordinators]
        await asyncio.wait(loading, timeout=LOAD_WAIT_S)

    async def _load(self, coordinator: Coordinator) -> None:
        records = await self._node.slow_workers.call(coordinator.read_records)
        coordinator.load(records)
        for topic in coordinator.groups.topics_with_offsets() - self._node.image.topics.keys():
            coordinator.forget_topic(topic)  # deleted just before the node stopped

    def find(self, group_id: str) -> Coordinator:
        """The group's coordinator, by a hash of its id. Raises what the client should be told."""
        if not group_id:
            raise InvalidGroupId()
        if not self._coordinators:
            raise CoordinatorNotAvailable()
        return self._coordinators[crc32(group_id.encode()) % len(self._coordinators)]

    def all(self) -> list[Coordinator]:
        return self._coordinators

    @property
    def topics(self) -> Topics:
        """What the groups room needs to know of the topics."""
        image = self._node.image
        if self._topics.version != image.revision:
            by_name = {
                t.name: TopicInfo(t.id, len(t.partitions)) for t in image.topics.values() if not t.internal
            }
            self._topics = Topics(image.revision, by_name)
        return self._topics

    def topics_changed(self, changes: Changes) -> None:
        for topic in changes.deleted:
            for coordinator in self._coordinators:
                coordinator.forget_topic(topic.name)

    def close(self) -> None:
        for coordinator in self._coordinators:
            coordinator.close()


def group_settings(node: Node) -> GroupSettings:
    given = node.settings.groups
    return GroupSettings(
        session_timeout_min_ms=given.session_min_ms,
        session_timeout_max_ms=given.session_max_ms,
        initial_rebalance_delay_ms=given.rebalance_delay_ms,
        group_size_max=given.members_max,
        consumer_heartbeat_interval_ms=given.consumer_heartbeat_ms,
        consumer_session_timeout_ms=given.consumer_session_ms,
        consumer_group_size_max=given.members_max,
        offset_metadata_bytes_max=given.offset_metadata_bytes_max,
        offsets_retention_ms=given.offsets_retention_ms,
    )
