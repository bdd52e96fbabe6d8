"""`Administration`: what operators do to subscriptions: seek, forget topics, delete."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from postroad.broker.replies import Reply, replied
from postroad.broker.subscriptions.ledger_creation import After, LedgerCreation
from postroad.broker.subscriptions.ledgers import Ledgers
from postroad.broker.subscriptions.partition_ledgers import PartitionLedgers
from postroad.cluster import controller
from postroad.cluster.image import Topic
from postroad.errors import CoordinatorLoadInProgress, GroupIdNotFound, NonEmptyGroup
from postroad.queues.update import Key

if TYPE_CHECKING:
    from postroad.broker.node import Node


class Administration:
    def __init__(
        self, node: Node, ledgers: Ledgers, leaders: PartitionLedgers, creation: LedgerCreation
    ) -> None:
        self._node = node
        self._ledgers = ledgers
        self._leaders = leaders
        self._creation = creation

    async def remove(self, group_id: str, topic: Topic) -> None:
        """The subscription is as if it had never heard of the topic."""
        if not self._ledgers.knows_topic(topic):
            raise CoordinatorLoadInProgress()
        held = self._ledgers.of_group(group_id)
        keys = [ledger.key for ledger in held if ledger.key.topic_id == topic.id]
        if keys:
            # Should it be held again it begins as a topic that exists, not with its first message.
            await self._node.topics.decide(partial(controller.note_topic, group_id=group_id, topic=topic))
        await self._remove_all(keys)

    async def _remove_all(self, keys: Sequence[Key]) -> None:
        def remove_all(done: Reply) -> None:
            all_done = After(len(keys), done)
            for key in keys:
                self._leaders.remove(key, all_done)

        if keys:
            await replied(remove_all)

    async def delete(self, group_id: str) -> None:
        """The subscription goes with all that it knows. Raises NonEmptyGroup while it has members."""
        subscriptions = self._node.subscriptions
        if not subscriptions.exists(group_id):
            raise GroupIdNotFound()
        if subscriptions.members.has_members(group_id):
            raise NonEmptyGroup()
        if not self._ledgers.complete or self._creation.is_under_way(group_id):
            raise CoordinatorLoadInProgress()
        self._creation.forget(group_id)
        await self._remove_all([ledger.key for ledger in self._ledgers.of_group(group_id)])
        if group_id in self._node.image.groups:
            await self._node.topics.decide(lambda image: controller.delete_group_config(image, group_id))
        subscriptions.let_go(group_id)

    async def reset(self, key: Key, start: int) -> None:
        """Go on from this offset, whatever was acknowledged or is held. Raises what is wrong with that."""
        await self._leaders.reset(key, start)
