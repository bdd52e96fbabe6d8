"""`StateTopic`: the topic `__share_group_state`, in which every subscription's ledgers are kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from postroad.broker.internal_topic import InternalTopic
from postroad.broker.partition import Partition
from postroad.broker.subscriptions.states import QueueStates
from postroad.cluster.internal_topics import SHARE_STATE_TOPIC
from postroad.errors import CoordinatorLoadInProgress, CoordinatorNotAvailable, InvalidGroupId
from postroad.queues.ledger import Ledger

if TYPE_CHECKING:
    from postroad.broker.node import Node


class StateTopic(InternalTopic[QueueStates]):
    def __init__(self, node: Node, when_loaded: Callable[[QueueStates], Awaitable[None]]) -> None:
        def make(partition: Partition) -> QueueStates:
            return QueueStates(partition, node.clock, node.turn, node.settings.groups)

        super().__init__(node, SHARE_STATE_TOPIC, make, when_loaded)

    def ready(self, group_id: str) -> QueueStates:
        """The states that hold the group's. Raises what clients should be told while they can't be had."""
        if not group_id:
            raise InvalidGroupId()
        states = self.find(group_id)
        if states is None:
            raise CoordinatorNotAvailable(f"The group's partition of {SHARE_STATE_TOPIC} is offline.")
        if not states.loaded:
            raise CoordinatorLoadInProgress()
        return states

    def find_ready(self, group_id: str) -> QueueStates | None:
        """The same; None while they can't be had."""
        states = self.find(group_id)
        return None if states is None or not states.loaded else states

    def groups(self) -> set[str]:
        """The ids of all groups that have a ledger."""
        return {group for states in self.states.values() for group in states.groups()}

    def of_group(self, group_id: str) -> list[Ledger]:
        states = self.find(group_id)
        return [] if states is None else states.of_group(group_id)

    def of_topic(self, topic_id: bytes) -> Iterator[Ledger]:
        """Every subscription's ledgers of the topic, as far as they are loaded."""
        for states in self.states.values():
            for ledger in states.ledgers():
                if ledger.key.topic_id == topic_id:
                    yield ledger
