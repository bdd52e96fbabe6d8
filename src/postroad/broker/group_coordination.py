"""All group coordinators of this node: one for each partition of `__consumer_offsets` that it leads.

A group's partition is a hash of its id, over all partitions of the topic, also those that are offline:
a group never changes its partition, or its commits would be lost with it (L14).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final
from zlib import crc32

from postroad.broker.coordinator import Coordinator
from postroad.broker.partition import Partition
from postroad.cluster.image import OFFSETS_TOPIC, Changes
from postroad.errors import ApiError, CoordinatorNotAvailable, InvalidGroupId
from postroad.groups.coordinator import Groups
from postroad.groups.requests import TopicInfo, Topics
from postroad.groups.settings import GroupSettings

if TYPE_CHECKING:
    from postroad.broker.node import Node

OFFSETS_CONFIG: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(100 * 1024 * 1024),  # small segments: compaction works on closed ones
    "max.message.bytes": str(16 * 1024 * 1024),  # a generation of thousands of members is one record
    "compression.type": "producer",
}
LOAD_WAIT_S: Final = 0.5  # a start waits so long for groups; large ones load on while clients retry
LOAD_RETRY_S: Final = 5.0

log = logging.getLogger(__name__)


class GroupCoordination:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._coordinators: dict[int, Coordinator] = {}  # by partition; without those that are offline
        self._partitions = 0
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
        self._partitions = len(node.image.topics[OFFSETS_TOPIC].partitions)
        loading = [self._coordinate(partition) for partition in node.partitions.of(OFFSETS_TOPIC)]
        if loading:
            await asyncio.wait(loading, timeout=LOAD_WAIT_S)

    def partition_opened(self, topic: str, index: int) -> None:
        """A partition that was offline is back, perhaps one of ours."""
        partition = self._node.partitions.find(topic, index)
        if topic == OFFSETS_TOPIC and partition is not None and index not in self._coordinators:
            self._coordinate(partition)

    def _coordinate(self, partition: Partition) -> asyncio.Task[None]:
        node = self._node
        coordinator = Coordinator(partition, Groups(group_settings(node)), node.clock, node.turn, node.loop)
        self._coordinators[partition.index] = coordinator
        return node.tasks.start(self._load(coordinator), "load-groups")

    async def _load(self, coordinator: Coordinator) -> None:
        while True:
            try:
                await coordinator.load(self._node.slow_workers)
                break
            except (OSError, ApiError) as error:
                log.error("%s-%d can't be read: %s", OFFSETS_TOPIC, coordinator.partition.index, error)
                await asyncio.sleep(LOAD_RETRY_S)
        for topic in coordinator.groups.topics_with_offsets() - self._node.image.topics.keys():
            coordinator.forget_topic(topic)  # deleted just before the node stopped

    def find(self, group_id: str) -> Coordinator:
        """The group's coordinator, by a hash of its id. Raises what the client should be told."""
        if not group_id:
            raise InvalidGroupId()
        if not self._partitions:
            raise CoordinatorNotAvailable()
        coordinator = self._coordinators.get(crc32(group_id.encode()) % self._partitions)
        if coordinator is None:
            raise CoordinatorNotAvailable("The group's partition of __consumer_offsets is offline.")
        return coordinator

    def all(self) -> list[Coordinator]:
        return list(self._coordinators.values())

    def committed_below(self, topic: str, index: int, below: int | None) -> int | None:
        """The lowest committed offset of all groups there, or `below` if that is lower."""
        for coordinator in self.all():
            if not coordinator.loaded:
                return 0  # what can't be known may not be passed over
            for group_id in coordinator.groups.groups_with_offsets(topic):
                for found in coordinator.groups.fetch(group_id, [(topic, index)]):
                    if found.value is not None:
                        below = found.value.offset if below is None else min(below, found.value.offset)
        return below

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
            for coordinator in self.all():
                coordinator.forget_topic(topic.name)

    def close(self) -> None:
        for coordinator in self.all():
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
