"""`Administration`: what operators do to subscriptions: seek, forget topics, delete."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from postroad.broker.replies import Reply, replied
from postroad.broker.subscriptions.ledger_creation import After, LedgerCreation
from postroad.broker.subscriptions.state_topic import StateTopic
from postroad.cluster import controller
from postroad.errors import CoordinatorNotAvailable, GroupIdNotFound, NonEmptyGroup
from postroad.queues.update import Key

if TYPE_CHECKING:
    from postroad.broker.node import Node


class Administration:
    def __init__(self, node: Node, states: StateTopic, creation: LedgerCreation) -> None:
        self._node = node
        self._states = states
        self._creation = creation

    async def remove(self, group_id: str, keys: Sequence[Key]) -> None:
        """These ledgers go: the subscription is as if it had never heard of the partitions."""
        self._states.ready(group_id)
        await self._note_topics(group_id, {key.topic_id for key in keys})
        await self._remove_all(group_id, keys)

    async def _remove_all(self, group_id: str, keys: Sequence[Key]) -> None:
        states = self._states.ready(group_id)

        def remove_all(done: Reply) -> None:
            all_done = After(len(keys), done)
            for key in keys:
                self._node.subscriptions.remove_ledger(states, key, all_done)

        if keys:
            await replied(remove_all)

    async def _note_topics(self, group_id: str, topic_ids: set[bytes]) -> None:
        """Should these be held again they begin as topics that exist, not with their first message."""
        for topic_id in topic_ids:
            topic = self._node.image.topics_by_id.get(topic_id)
            if topic is not None:
                await self._node.topics.decide(partial(controller.note_topic, group_id=group_id, topic=topic))

    async def delete(self, group_id: str) -> None:
        """The subscription goes with all that it knows. Raises NonEmptyGroup while it has members."""
        subscriptions = self._node.subscriptions
        if not subscriptions.exists(group_id):
            raise GroupIdNotFound()
        if subscriptions.members.has_members(group_id):
            raise NonEmptyGroup()
        self._creation.forget(group_id)
        await self._remove_all(group_id, [ledger.key for ledger in subscriptions.ledgers(group_id)])
        if group_id in self._node.image.groups:
            await self._node.topics.decide(lambda image: controller.delete_group_config(image, group_id))
        subscriptions.let_go(group_id)

    async def reset(self, key: Key, start: int) -> None:
        """Go on from this offset, whatever was acknowledged or is held. Raises what is wrong with that."""
        states = self._states.ready(key.group)
        partition = self._node.partitions.lead(key.topic_id, key.partition)
        start = min(max(start, partition.log.start_offset), partition.high_watermark)
        if states.find(key) is None:
            await replied(partial(states.create, key, start))
            return
        queue = self._node.subscriptions.queue(*key)
        if queue is None:
            raise CoordinatorNotAvailable()
        await replied(partial(queue.reset, start))
