"""A topic of the node's own that holds the state of groups, one part of it in each partition.

A group's partition is a hash of its id, over all partitions of the topic, also those that are offline: a
group never changes its partition, or what was written of it would be lost with it (L14).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar
from zlib import crc32

from postroad.broker.joining import patiently
from postroad.broker.partition import Partition
from postroad.broker.replies import replied
from postroad.cluster.internal_topics import INTERNAL_TOPICS
from postroad.cluster.membership import placeable
from postroad.errors import ApiError, NotLeaderOrFollower, TopicAlreadyExists
from postroad.system.workers import Workers

if TYPE_CHECKING:
    from postroad.broker.node import Node

LOAD_WAIT_S: Final = 0.5  # a start waits so long; large states load on while clients retry
LOAD_RETRY_S: Final = 5.0

log = logging.getLogger(__name__)


class InternalState(Protocol):
    """What the records of one partition add up to."""

    loaded: bool

    def send_away(self) -> None:
        """Another node may have it by now. Whoever waits is told; what was decided may still be committed."""

    def resign(self) -> None:
        """Another node has it from here on. Whoever waits is told."""

    async def load(self, workers: Workers) -> None:
        """Read all of them. Raises what reading them raises; call it again."""


S = TypeVar("S", bound=InternalState)


class InternalTopic(Generic[S]):
    def __init__(
        self,
        node: Node,
        name: str,
        make: Callable[[Partition], S],
        when_loaded: Callable[[S], Awaitable[None]],
    ) -> None:
        """`make` a partition's state, empty; `when_loaded` hears of each that is ready."""
        self.name = name
        self.states: dict[int, S] = {}  # by partition; without those that are offline
        self._node = node
        self._make = make
        self._when_loaded = when_loaded
        self._loading: dict[int, asyncio.Task[None]] = {}

    async def start(self, partitions: int) -> None:
        """Create the topic, so large, if there is none, and load what it holds."""
        node = self._node
        if self.name not in node.image.topics:
            await patiently(partial(self._create, partitions), node.settings.cluster.lease_length_ms)
        if self._loading:
            await asyncio.wait(self._loading.values(), timeout=LOAD_WAIT_S)

    async def _create(self, partitions: int) -> None:
        node, config = self._node, INTERNAL_TOPICS[self.name]
        # The controller adds replicas as nodes come.
        replicas = min(node.settings.topics.internal_replicas, len(placeable(node.image)) or 1)
        try:
            await node.topic_changes.create(
                self.name, partitions=partitions, replicas=replicas, config=config, internal=True
            )
        except TopicAlreadyExists:  # another node that starts was faster; or a name collides with it
            if self.name not in node.image.topics:
                raise
            await node.topics.reach(node.image.revision)

    def partition_led(self, partition: Partition) -> None:
        """This node leads the partition, perhaps one of ours: its state is loaded."""
        if partition.topic == self.name:
            self.partition_resigned(partition)
            state = self.states[partition.index] = self._make(partition)
            loading = self._load(state, partition, partition.log.end_offset)
            self._loading[partition.index] = self._node.tasks.start(loading, f"load-{self.name}")

    def partition_left(self, partition: Partition) -> None:
        """Another node may lead the partition by now; its state is kept, for this one may still lead it."""
        if partition.topic == self.name and partition.index in self.states:
            self.states[partition.index].send_away()

    def partition_resigned(self, partition: Partition) -> None:
        """Another node leads the partition, or nobody: its state is let go."""
        if partition.topic == self.name and partition.index in self.states:
            self._loading.pop(partition.index).cancel()
            self.states.pop(partition.index).resign()

    @property
    def started(self) -> bool:
        return self._partitions > 0

    @property
    def _partitions(self) -> int:
        topic = self._node.image.topics.get(self.name)
        return 0 if topic is None else len(topic.partitions)

    def index_of(self, group_id: str) -> int:
        """The partition that holds the group."""
        return crc32(group_id.encode()) % max(self._partitions, 1)

    @property
    def loaded(self) -> bool:
        """Whether the state of every group is known."""
        return len(self.states) == self._partitions and all(state.loaded for state in self.states.values())

    def find(self, group_id: str) -> S | None:
        """The state that the group is part of, loaded or not; None while its partition is offline."""
        return self.states.get(self.index_of(group_id))

    async def _load(self, state: S, partition: Partition, epoch_start: int) -> None:
        """Everything from before this leadership is committed first, or an acknowledged change is missed."""
        index = partition.index
        while True:
            try:
                await replied(partial(partition.when_committed, epoch_start))
                await state.load(self._node.slow_workers)
                break
            except NotLeaderOrFollower as error:  # another node leads in a moment, or this one after all
                log.info("%s-%d can't be loaded yet: %s", self.name, index, error)
            except (OSError, ApiError) as error:
                log.error("%s-%d can't be loaded: %s", self.name, index, error)
            except Exception:  # groups wait for it: a defect must not be the end of that
                log.exception("%s-%d can't be loaded", self.name, index)
            await asyncio.sleep(LOAD_RETRY_S)
        log.debug("%s-%d is loaded", self.name, index)
        await self._when_loaded(state)
