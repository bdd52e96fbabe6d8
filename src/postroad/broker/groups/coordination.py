"""All group coordinators of this node: one for each partition of `__consumer_offsets` that it leads."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from postroad.broker.groups.coordinator import Coordinator
from postroad.broker.internal_topic import InternalTopic
from postroad.broker.partition import Partition
from postroad.cluster.image import NO_LEADER, Changes
from postroad.cluster.internal_topics import OFFSETS_TOPIC
from postroad.errors import CoordinatorNotAvailable, InvalidGroupId, NotCoordinator
from postroad.groups.coordinator import Groups
from postroad.groups.requests import TopicInfo, Topics
from postroad.groups.settings import GroupSettings, MigrationPolicy
from postroad.wire import peer

if TYPE_CHECKING:
    from postroad.broker.node import Node


PARTITIONS_SHARED: Final = 12  # where nodes share a store: the work of coordinators is spread over them


class GroupCoordination:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._me = node.settings.node.id
        self._topic = InternalTopic(node, OFFSETS_TOPIC, self._coordinate, self._loaded)
        self._topics = Topics(0, {})

    async def start(self) -> None:
        settings = self._node.settings
        wanted = settings.groups.offsets_partitions
        if wanted == 1 and settings.cluster.store:
            wanted = PARTITIONS_SHARED
        await self._topic.start(wanted)

    def partition_led(self, partition: Partition) -> None:
        """This node leads the partition, perhaps one of ours."""
        self._topic.partition_led(partition)

    def partition_left(self, partition: Partition) -> None:
        self._topic.partition_left(partition)

    def partition_resigned(self, partition: Partition) -> None:
        """This node does not lead the partition any more."""
        self._topic.partition_resigned(partition)

    def _coordinate(self, partition: Partition) -> Coordinator:
        node = self._node
        groups = Groups(group_settings(node), lambda: self.topics)
        has_evidence = partial(node.evidence.covers, partition)
        return Coordinator(partition, groups, node.clock, node.turn, node.loop, self._start_of, has_evidence)

    def _start_of(self, topic: str, index: int) -> int | None:
        """The first offset of a partition that there is; None if there is no such partition."""
        found = self._node.image.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        partition = self._node.partitions.find(topic, index)
        return 0 if partition is None else partition.log.start_offset

    async def _loaded(self, coordinator: Coordinator) -> None:
        for topic in coordinator.groups.topics_with_offsets() - self._node.image.topics.keys():
            coordinator.forget_topic(topic)  # deleted just before the node stopped

    def find(self, group_id: str, *, is_fenced: bool = False) -> Coordinator:
        """The group's coordinator. Raises what the client should be told.

        `is_fenced`: all that is asked of it is written before it is answered, so that a coordinator that has
        been replaced can't answer it; anything else needs evidence.
        """
        if not group_id:
            raise InvalidGroupId()
        coordinator = self._topic.find(group_id)
        if coordinator is None:
            if self.is_elsewhere(group_id):
                raise NotCoordinator()
            raise CoordinatorNotAvailable(f"The group's partition of {OFFSETS_TOPIC} is offline.")
        if not is_fenced:
            coordinator.check_evidence()
        return coordinator

    def check_coordinates(self, group_id: str) -> None:
        """Raise NotCoordinator if another node coordinates the group, or may do so."""
        coordinator = self._topic.find(group_id)
        if coordinator is not None:
            coordinator.check_evidence()
        elif self.is_elsewhere(group_id):
            raise NotCoordinator()

    def leader_of(self, group_id: str) -> int:
        """The node that coordinates the group; NO_LEADER while nobody does."""
        topic = self._node.image.topics.get(OFFSETS_TOPIC)
        return NO_LEADER if topic is None else topic.partitions[self._topic.index_of(group_id)].leader

    def epoch_of(self, group_id: str) -> int:
        """The leader epoch in which the group is coordinated, as far as this node knows."""
        topic = self._node.image.topics.get(OFFSETS_TOPIC)
        return 0 if topic is None else topic.partitions[self._topic.index_of(group_id)].leader_epoch

    def is_elsewhere(self, group_id: str) -> bool:
        """Whether another node coordinates the group."""
        return self.leader_of(group_id) not in (self._me, NO_LEADER)

    def index_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` whose leader coordinates the group."""
        return self._topic.index_of(group_id)

    def all(self) -> list[Coordinator]:
        return list(self._topic.states.values())

    def check_knows(self, indexes: Iterable[int]) -> None:
        """Raises NotCoordinator unless this node knows all groups of these partitions of
        `__consumer_offsets`."""
        for index in indexes:
            coordinator = self._topic.states.get(index)
            if coordinator is None or not coordinator.loaded:
                raise NotCoordinator()

    @property
    def knows_all(self) -> bool:
        """Whether no other node coordinates any group."""
        topic = self._node.image.topics.get(OFFSETS_TOPIC)
        return topic is None or all(state.leader == self._me for state in topic.partitions)

    async def committed_anywhere(self, topic: str, index: int, below: int) -> int:
        """As `committed_below`, of the groups of all nodes. Raises ApiError if a coordinator can't say."""
        by_leader: dict[int, list[int]] = {}
        for number, state in enumerate(self._node.image.topic(OFFSETS_TOPIC).partitions):
            by_leader.setdefault(state.leader, []).append(number)
        self.check_knows(by_leader.pop(self._me, ()))
        below = self.committed_below(topic, index, below)
        for leader, indexes in sorted(by_leader.items()):
            question = peer.FindCommitted(indexes, topic, index, below)
            below = min(below, (await self._node.peers.ask(leader, question)).offset)
        return below

    def committed_below(self, topic: str, index: int, below: int) -> int:
        """The lowest committed offset of this node's groups there, or `below` if that is lower."""
        for coordinator in self.all():
            if not coordinator.loaded:
                return 0  # what can't be known may not be passed over
            for group_id in coordinator.groups.groups_with_offsets(topic):
                for found in coordinator.groups.fetch(group_id, [(topic, index)]):
                    if found.value is not None:
                        below = min(below, found.value.offset)
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
        initial_rebalance_delay_alone_ms=given.rebalance_delay_alone_ms,
        initial_rebalance_delay_ms=given.rebalance_delay_ms,
        initial_rebalance_delay_max_ms=given.rebalance_delay_max_ms,
        group_size_max=given.members_max,
        consumer_heartbeat_interval_ms=given.consumer_heartbeat_ms,
        consumer_session_timeout_ms=given.consumer_session_ms,
        consumer_group_size_max=given.members_max,
        migration=MigrationPolicy(given.migration_policy),
        offset_metadata_bytes_max=given.offset_metadata_bytes_max,
        offsets_retention_ms=given.offsets_retention_ms,
    )
