"""Which node leads which of a subscription's partitions, as far as that is known.

E1 what one topic or partition lacks does not stop the others.
E2 a topic in doubt is looked up again, soon where its leader has moved, but not all the time; the log says
   why once.
E3 partitions that a topic gets later are seen within seconds; nobody waits for that look.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Final

from postroad.client.client import Client
from postroad.client.metadata import NO_LEADER, Topic
from postroad.client.share_session import TopicIdPartition
from postroad.errors import (
    FencedLeaderEpoch,
    LeaderNotAvailable,
    NetworkException,
    NotLeaderOrFollower,
    PostroadError,
)

LOOK_AGAIN_S: Final = 1.0
WIDER_S: Final = 5.0  # between two looks whether a topic has got partitions
MOVED_S: Final = 0.1  # another leader is elected within a second, or is there already
MOVED: Final = (FencedLeaderEpoch, LeaderNotAvailable, NetworkException, NotLeaderOrFollower)

Topics = Callable[[], Awaitable[list[str]]]

log = logging.getLogger(__name__)


class Leaders:
    """`topics` tells the names of the subscription's topics, as they are now."""

    def __init__(self, client: Client, subscription: str, topics: Topics) -> None:
        self._client = client
        self._subscription = subscription
        self._topics = topics
        self._doubts: dict[str, PostroadError] = {}  # by topic: why it is to be looked up again
        self._asked_at: dict[str, float] = {}
        self._said: set[tuple[str, type[PostroadError]]] = set()
        self._seen_at: dict[str, float] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}

    async def by_node(self) -> dict[int, dict[TopicIdPartition, str]]:
        """The partitions that each leads, and their topics' names. Raises if there is none left, and why."""
        found: dict[int, dict[TopicIdPartition, str]] = {}
        lacks: PostroadError | None = None
        for name in await self._topics():
            topic = None if name in self._doubts else self._client.known_topic(name)
            if topic is None:
                topic = await self._look_up(name)
            if topic is not None:
                self._add(topic, found)
                self._look_for_more(name)
            lacks = self._doubts.get(name, lacks)
        if not found and lacks is not None:
            raise lacks
        return found

    def doubt(self, topic: str, error: PostroadError) -> None:
        """A request for a part of the topic failed: its leaders are looked up again."""
        self._doubts[topic] = error
        if (topic, type(error)) not in self._said:
            self._said.add((topic, type(error)))
            log.info("receiving for %s: %s: %s", self._subscription, topic, error)

    async def close(self) -> None:
        """Look no further."""
        looking = list(self._looking.values())
        for task in looking:
            task.cancel()
        await asyncio.gather(*looking, return_exceptions=True)
        self._looking.clear()  # one that had not begun takes nothing out itself

    def _look_for_more(self, name: str) -> None:
        """Ask for the topic as it is now, which the client remembers (E3)."""
        now = asyncio.get_running_loop().time()
        if now < self._seen_at.setdefault(name, now) + WIDER_S or name in self._looking:
            return
        self._seen_at[name] = now
        self._looking[name] = asyncio.create_task(self._see(name), name=f"look at {name}")

    async def _see(self, name: str) -> None:
        try:
            with contextlib.suppress(PostroadError):  # what is in doubt is looked up by others
                await self._client.topic_now(name)
        finally:
            self._looking.pop(name, None)

    def _add(self, topic: Topic, found: dict[int, dict[TopicIdPartition, str]]) -> None:
        for index, partition in enumerate(topic.partitions):
            if partition.leader == NO_LEADER:
                self.doubt(topic.name, LeaderNotAvailable(f"Partition {index} has no leader now."))
            else:
                found.setdefault(partition.leader, {})[topic.id, index] = topic.name

    async def _look_up(self, name: str) -> Topic | None:
        now = asyncio.get_running_loop().time()
        doubt = self._doubts.get(name)
        pause_s = MOVED_S if isinstance(doubt, MOVED) else LOOK_AGAIN_S
        if doubt is not None and now < self._asked_at.get(name, -math.inf) + pause_s:
            return self._client.known_topic(name)
        self._asked_at[name] = now
        self._client.forget(name)
        try:
            topic = await self._client.topic(name)
        except PostroadError as error:
            self.doubt(name, error)
            return None
        self._doubts.pop(name, None)
        return topic
