"""Changes of topics that requests ask for: create, delete, add partitions, alter configs.

`cluster.controller` decides and `Topics` commits and follows. When a method here returns the change can be
seen and used on this node, and by the leaders of new partitions if they answer within a second. What is wrong
with a request is raised as an ApiError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from postroad.broker.peers import Peers
from postroad.broker.topics import Topics
from postroad.cluster import controller, membership
from postroad.cluster.controller import Decision
from postroad.cluster.ids import make_id
from postroad.cluster.image import Image, Topic
from postroad.cluster.keys import PartitionState
from postroad.cluster.store import Event, Put
from postroad.config.sections import Topics as TopicDefaults
from postroad.errors import TopicDeletionDisabled, UnknownTopicOrPartition


class TopicChanges:
    def __init__(self, topics: Topics, peers: Peers, defaults: TopicDefaults, random: Random) -> None:
        self._topics = topics
        self._peers = peers
        self._defaults = defaults
        self._random = random

    async def create(
        self,
        name: str,
        *,
        partitions: int = -1,
        replicas: int = -1,
        assignments: Mapping[int, Sequence[int]] | None = None,
        config: Mapping[str, str | None] | None = None,
        validate_only: bool = False,
        internal: bool = False,
    ) -> Topic:
        """The topic, ready for use (only what it would be, if `validate_only`)."""
        topic_id = make_id(self._random.randbytes(16))

        def decision(image: Image) -> Decision:
            return controller.create_topic(
                image,
                name,
                topic_id,
                nodes=_placeable(image),
                down=_down(image),
                partitions=partitions,
                replicas=replicas,
                assignments=assignments,
                config=config,
                default_partitions=self._defaults.partitions,
                default_replicas=self._defaults.replicas,
                default_min_insync=self._defaults.min_insync_replicas,
                internal=internal,
            )

        if validate_only:
            return _imagined(decision(self._topics.image), name)
        await self._topics.decide(
            decision, done=lambda image: topic_id in image.topics_by_id or topic_id in image.deleted
        )
        created = self._topics.image.topics_by_id.get(topic_id)
        if created is None:
            raise UnknownTopicOrPartition(f"{name!r} was deleted as soon as it was created.")
        await self._let_leaders_follow(created.partitions)
        return created

    async def _let_leaders_follow(self, partitions: Sequence[PartitionState]) -> None:
        """Clients go to the leaders at once: they should know of the partitions by then."""
        await self._peers.let_follow({state.leader for state in partitions}, self._topics.image.revision)

    async def delete(self, topic: Topic) -> None:
        """The topic is gone for every client; its files go in the background."""
        if not self._defaults.deletable:
            raise TopicDeletionDisabled()

        def decision(image: Image) -> Decision:
            if topic.id not in image.topics_by_id:
                raise UnknownTopicOrPartition(f"Topic {topic.name!r} was deleted by another request.")
            return controller.delete_topic(image, topic.name)

        await self._topics.decide(
            decision, urgent=True, done=lambda image: topic.id not in image.topics_by_id
        )

    async def add_partitions(
        self, name: str, count: int, assignments: Sequence[Sequence[int]] | None, validate_only: bool
    ) -> None:
        """The topic has `count` partitions, all of them ready for use."""

        def decision(image: Image) -> Decision:
            return controller.add_partitions(
                image,
                name,
                count,
                nodes=_placeable(image),
                down=_down(image),
                assignments=assignments,
            )

        if validate_only:
            decision(self._topics.image)
        else:
            await self._topics.decide(decision, done=lambda image: image.has_partition(name, count - 1))
            topic = self._topics.image.topics.get(name)
            await self._let_leaders_follow(() if topic is None else topic.partitions)

    async def alter(self, make: Callable[[Image], Decision], validate_only: bool) -> None:
        """Change configs; a shorter retention is a way out of a full disk, so this is urgent."""
        if validate_only:
            make(self._topics.image)
        else:
            await self._topics.decide(make, urgent=True, current=True)

    async def alter_nodes(self, make: Callable[[Image], Decision], validate_only: bool) -> None:
        """Change configs of nodes, all of which follow then if they answer within a second."""
        await self.alter(make, validate_only)
        await self._peers.let_follow(set(self._topics.image.nodes), self._topics.image.revision)


def _placeable(image: Image) -> Sequence[int]:
    """The nodes that get new replicas; all of them while none serves, as when the first one starts."""
    return membership.placeable(image) or sorted(image.nodes)


def _down(image: Image) -> Sequence[int]:
    """The nodes that get replicas only where those above are too few."""
    used = _placeable(image)
    return [node for node in membership.down(image) if node not in used]


def _imagined(decision: Decision, name: str) -> Topic:
    """The topic as it would be, had the decision been committed."""
    image = Image()
    image.apply([Event(op.key, op.value, 1) for op in decision.operations if isinstance(op, Put)])
    return image.topics[name]
