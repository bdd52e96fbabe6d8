"""`Ledgers`: what subscriptions are done with on every partition that this node leads.

A partition has a ledger from its first subscription on, and keeps it: the coordination store says so before
the subscription is there, so that every replica has one (`prepare`). While this node leads the partition its
ledger is in memory: it is loaded when the partition is led, and dropped when it is resigned.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from postroad.broker import internal_topic
from postroad.broker.partition import Partition
from postroad.broker.partitions import TopicPartition
from postroad.broker.subscriptions.states import QueueStates
from postroad.cluster import controller
from postroad.cluster.image import Topic
from postroad.errors import ApiError, CoordinatorLoadInProgress, NotLeaderOrFollower
from postroad.queues.ledger import Ledger
from postroad.queues.update import Key

if TYPE_CHECKING:
    from postroad.broker.node import Node

PREPARE_S: Final = 10.0  # a new ledger is loaded in a moment; who waits longer than this tries again

log = logging.getLogger(__name__)


class Ledgers:
    def __init__(self, node: Node, when_loaded: Callable[[QueueStates, bool], None]) -> None:
        """`when_loaded` hears of each ledger that was loaded, and whether it was just made."""
        self.started = False
        self._node = node
        self._when_loaded = when_loaded
        self._states: dict[TopicPartition, QueueStates] = {}
        self._loading: dict[TopicPartition, asyncio.Task[None]] = {}
        self._by_group: dict[str, dict[Key, Ledger]] = {}  # without those that are not loaded

    async def start(self) -> None:
        """Load the ledgers of all partitions; large ones are loaded on while clients retry."""
        self.started = True
        for partition in list(self._node.partitions):
            if partition.leads:
                self.lead(partition)
        if self._loading:
            await asyncio.wait(self._loading.values(), timeout=internal_topic.LOAD_WAIT_S)

    # --- roles

    def lead(self, partition: Partition, is_new: bool = False) -> None:
        """This node leads the partition from now on: its ledger, if it has one, is loaded and then served.

        Call it before anything is appended under the new leadership."""
        if not self.started or partition.ledger is None:
            return
        self.resign(partition.topic_id, partition.index)
        node, where = self._node, (partition.topic_id, partition.index)
        states = QueueStates(partition, node.clock, node.turn, node.settings.groups, self._by_group)
        self._states[where] = states
        task = self._loading[where] = node.tasks.start(self._load(states, is_new), "load-ledger")
        task.add_done_callback(partial(self._load_ended, where))

    def resign(self, topic_id: bytes, index: int) -> None:
        """The partition is another node's, or gone: its ledger is dropped."""
        states = self._states.pop((topic_id, index), None)
        if states is not None:
            states.resign()
        if (task := self._loading.pop((topic_id, index), None)) is not None:
            task.cancel()

    async def _load(self, states: QueueStates, is_new: bool) -> None:
        where = states.messages.topic, states.messages.index
        while True:
            try:
                await states.load(self._node.slow_workers)
                break
            except NotLeaderOrFollower as error:  # as in `internal_topic`
                log.info("the ledger of %s-%d can't be loaded yet: %s", *where, error)
            except (OSError, ApiError) as error:
                log.error("the ledger of %s-%d can't be loaded: %s", *where, error)
            except Exception:  # subscriptions wait for it: a defect must not be the end of that
                log.exception("the ledger of %s-%d can't be loaded", *where)
            await asyncio.sleep(internal_topic.LOAD_RETRY_S)
        log.debug("the ledger of %s-%d is loaded", *where)
        self._when_loaded(states, is_new)

    def _load_ended(self, where: TopicPartition, task: asyncio.Task[None]) -> None:
        if self._loading.get(where) is task:
            del self._loading[where]

    # --- new ones

    async def prepare(self, wanted: Sequence[TopicPartition]) -> None:
        """Give each of these partitions a ledger; they are loaded when this returns, unless they are offline.

        Raises what the coordination store raises, and CoordinatorLoadInProgress if loading takes long.
        """
        topics = self._node.topics
        for topic_id in dict.fromkeys(topic_id for topic_id, _ in wanted):
            indexes = {index for of_topic, index in wanted if of_topic == topic_id}
            await topics.decide(partial(controller.add_ledgers, topic_id=topic_id, indexes=indexes))
        await topics.reach(self._node.image.revision)  # another request may have been faster
        loading = [self._loading[where] for where in wanted if where in self._loading]
        if loading:
            _, unfinished = await asyncio.wait(loading, timeout=PREPARE_S)
            if unfinished:
                raise CoordinatorLoadInProgress()

    # --- which there are

    def find(self, topic_id: bytes, index: int) -> QueueStates | None:
        """What is known of the partition, loaded or not; None if it has no ledger, or is not led here."""
        return self._states.get((topic_id, index))

    def find_loaded(self, topic_id: bytes, index: int) -> QueueStates | None:
        """What is known of the partition; None while it is being loaded, too."""
        states = self._states.get((topic_id, index))
        return None if states is None or not states.loaded else states

    def groups(self) -> Collection[str]:
        """The ids of all groups that have a ledger here."""
        return self._by_group.keys()

    def of_group(self, group_id: str) -> list[Ledger]:
        return list(self._by_group.get(group_id, {}).values())

    def of_topic(self, topic: Topic) -> Iterator[Ledger]:
        """Every subscription's ledgers of the topic, as far as they are loaded."""
        for index in range(len(topic.partitions)):
            states = self._states.get((topic.id, index))
            if states is not None:
                yield from states.ledgers()

    @property
    def loading(self) -> bool:
        """Whether there is more than is known; what is offline is not waited for."""
        return not self.started or any(not states.loaded for states in self._states.values())

    @property
    def complete(self) -> bool:
        """Whether every ledger is known."""
        return not self.loading and all(map(self.knows_topic, self._node.image.topics.values()))

    def knows_topic(self, topic: Topic) -> bool:
        """Whether all ledgers of the topic that lie with this node's partitions are known."""
        return all(
            self.find_loaded(topic.id, index) is not None
            for index, state in enumerate(topic.partitions)
            if state.ledger and state.leader == self._node.settings.node.id
        )
