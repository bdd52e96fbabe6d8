"""`PartitionLedgers`: what the coordinator of a group asks of the leader of a partition.

Members, settings and names belong to the group's coordinator; what was acknowledged lies with the messages.
So all that the one does at the other goes through these few methods, each of which names the group, the
topic's id and the partition, and takes and gives plain values. For partitions that this node leads they are
calls, for others questions to their leaders (`cluster_ledgers`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from postroad.broker.replies import Reply, replied
from postroad.broker.subscriptions.isolation import readable_end
from postroad.broker.subscriptions.lag import lag
from postroad.broker.subscriptions.ledgers import Ledgers
from postroad.broker.subscriptions.starting import starting_offset
from postroad.broker.subscriptions.states import QueueStates
from postroad.cluster.start_at import StartAt
from postroad.errors import ApiError, CoordinatorLoadInProgress, CoordinatorNotAvailable
from postroad.queues.ledger import Ledger
from postroad.queues.update import Key

if TYPE_CHECKING:
    from postroad.broker.node import Node

Beginning = int | StartAt | None
"""An offset; what is to be found out as soon as the log can be read; None: the first message."""


class LedgerPosition(NamedTuple):
    """How far a subscription has come on a partition."""

    start: int  # it is done with everything below
    leader_epoch: int
    lag: int


class PartitionLedgers:
    def __init__(self, node: Node, ledgers: Ledgers) -> None:
        self._node = node
        self._ledgers = ledgers

    def create(self, key: Key, beginning: Beginning, reply: Reply) -> int | None:
        """The subscription begins at the partition; `reply` hears when that is durable, or why not.

        Returns the offset at which it will; None if it is there, or can't begin.
        """
        states = self._ledgers.find_loaded(key.topic_id, key.partition)
        if states is None:
            reply(CoordinatorNotAvailable("The partition's ledger can't be opened yet."))
            return None
        if states.find(key) is not None:
            reply(None)
            return None
        try:
            committed_only = self._node.subscriptions.settings(key.group).committed_only
            offset = self._offset(states, beginning, committed_only)
        except (ApiError, OSError) as error:
            reply(error if isinstance(error, ApiError) else CoordinatorNotAvailable(str(error)))
            return None
        states.create(key, offset, reply)
        return offset

    def _offset(self, states: QueueStates, beginning: Beginning, committed_only: bool) -> int:
        """Raises what reading the log raises."""
        messages = states.messages
        if states.is_damaged:  # it may have begun before, and nobody knows: the first message
            return messages.log.start_offset
        if isinstance(beginning, int):
            return max(beginning, messages.log.start_offset)
        return starting_offset(messages, beginning, self._node.clock.now_ms(), committed_only)

    def position(self, key: Key) -> LedgerPosition | None:
        """How far it has come; None if it has not met the partition. Raises what a client should be told."""
        messages = self._node.partitions.lead(key.topic_id, key.partition)
        self.check_loaded(key.topic_id, key.partition)
        states = self._ledgers.find(key.topic_id, key.partition)
        ledger = None if states is None else states.ledger(key)
        if ledger is None:
            return None
        start = max(ledger.start, messages.log.start_offset)
        end = readable_end(messages, self._node.subscriptions.settings(key.group).committed_only)
        behind = lag(ledger, messages.log.start_offset, end)
        return LedgerPosition(start, messages.leader_epoch, behind)

    async def reset(self, key: Key, start: int) -> None:
        """Go on from this offset, whatever was acknowledged or is held. Raises what is wrong with that."""
        messages = self._node.partitions.lead(key.topic_id, key.partition)
        await self._ledgers.prepare([(key.topic_id, key.partition)])
        states = self._loaded(key)
        start = min(max(start, messages.log.start_offset), messages.high_watermark)
        if states.find(key) is None:
            await replied(partial(states.create, key, start))
            return
        queue = self._node.subscriptions.queue(*key)
        if queue is None:
            raise CoordinatorNotAvailable()
        await replied(partial(queue.reset, start))

    def remove(self, key: Key, reply: Reply) -> None:
        """The subscription is as if it had never met the partition; its queue is gone at once.

        No other queue can come up over the ledger meanwhile: nobody finds it."""
        states = self._ledgers.find_loaded(key.topic_id, key.partition)
        if states is None:
            reply(CoordinatorLoadInProgress())
            return
        states.remove(key, reply)
        self._node.subscriptions.close_queue(key)

    def held(self, group_id: str, topic_id: bytes = b"", *, all_known: bool = False) -> list[Key]:
        """The partitions led here that the group has met, or those of one topic.

        Raises CoordinatorLoadInProgress while ledgers are being loaded, with `all_known` also while one can't
        be read."""
        if not self._are_known(topic_id, all_known):
            raise CoordinatorLoadInProgress()
        keys = sorted(ledger.key for ledger in self._ledgers.of_group(group_id))
        return [key for key in keys if key.topic_id == topic_id] if topic_id else keys

    def _are_known(self, topic_id: bytes, all_known: bool) -> bool:
        if not topic_id:
            return self._ledgers.complete if all_known else not self._ledgers.loading
        topic = self._node.image.topics_by_id.get(topic_id)
        return topic is None or self._ledgers.knows_topic(topic)

    def groups(self) -> list[str]:
        """The groups that have met a partition led here. Raises CoordinatorLoadInProgress while ledgers are
        being loaded."""
        if self._ledgers.loading:
            raise CoordinatorLoadInProgress()
        return sorted(self._ledgers.groups())

    def at(self, topic_id: bytes, index: int) -> list[Key] | None:
        """All ledgers of a partition; None while they are not known."""
        states = self._ledgers.find_loaded(topic_id, index)
        return None if states is None else [ledger.key for ledger in states.ledgers()]

    def find(self, key: Key) -> Ledger | None:
        """The ledger to look at, also while it is corrected or goes."""
        states = self._ledgers.find_loaded(key.topic_id, key.partition)
        return None if states is None else states.ledger(key)

    def check_loaded(self, topic_id: bytes, index: int) -> None:
        """Raises CoordinatorLoadInProgress while the partition's ledger is being loaded."""
        states = self._ledgers.find(topic_id, index)
        if states is not None and not states.loaded:
            raise CoordinatorLoadInProgress()

    def _loaded(self, key: Key) -> QueueStates:
        states = self._ledgers.find_loaded(key.topic_id, key.partition)
        if states is None:
            raise CoordinatorLoadInProgress()
        return states
