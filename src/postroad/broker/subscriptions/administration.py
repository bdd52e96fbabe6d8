"""`Administration`: what operators do to subscriptions: seek, forget topics, delete."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from postroad.broker.subscriptions.cluster_ledgers import ClusterLedgers
from postroad.broker.subscriptions.ledger_creation import LedgerCreation
from postroad.cluster import controller
from postroad.cluster.image import Topic
from postroad.errors import CoordinatorLoadInProgress, GroupIdNotFound, NonEmptyGroup
from postroad.queues.update import Key

if TYPE_CHECKING:
    from postroad.broker.node import Node


class Administration:
    def __init__(self, node: Node, cluster: ClusterLedgers, creation: LedgerCreation) -> None:
        self._node = node
        self._cluster = cluster
        self._creation = creation

    async def remove(self, group_id: str, topic: Topic) -> None:
        """The subscription is as if it had never heard of the topic."""
        keys = await self._cluster.held(group_id, topic.id)
        if keys:
            # Should it be held again it begins as a topic that exists, not with its first message.
            await self._node.topics.decide(partial(controller.note_topic, group_id=group_id, topic=topic))
        await self._cluster.remove(keys)

    async def delete(self, group_id: str) -> None:
        """The subscription goes with all that it knows. Raises NonEmptyGroup while it has members."""
        subscriptions = self._node.subscriptions
        if not await subscriptions.exists_anywhere(group_id):
            raise GroupIdNotFound()
        if subscriptions.members.has_members(group_id):
            raise NonEmptyGroup()
        self._check_complete(group_id)
        # First, and by what the store says now: configs that come round later would name topics again.
        await self._node.topics.decide(
            lambda image: controller.delete_group_config(image, group_id), current=True
        )
        held = await self._cluster.held(group_id, all_known=True)
        self._check_complete(group_id)
        self._creation.forget(group_id)
        await self._cluster.remove(held)
        subscriptions.let_go(group_id)

    def _check_complete(self, group_id: str) -> None:
        """Raises CoordinatorLoadInProgress while ledgers of the subscription are being made."""
        if self._creation.is_under_way(group_id):
            raise CoordinatorLoadInProgress()

    async def reset(self, key: Key, start: int) -> None:
        """Go on from this offset, whatever was acknowledged or is held. Raises what is wrong with that."""
        await self._cluster.reset(key, start)
