"""All subscriptions of this node, and their queues.

Beside them: who is a member (`membership`), the ledgers of the partitions that this node leads (`ledgers`),
how they begin (`ledger_creation`) and meet their messages when they were loaded (`reconciliation`), and what
operators do (`administration`).

A subscription is there as soon as it stands in a ledger: when a member names a topic, or when it is
created with `postroad.topics`. From then on it holds the topic's messages, from the offset on that
`share.auto.offset.reset` chose then. A partition or a topic that comes later is held from its first message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from postroad.broker.partition import Partition
from postroad.broker.replies import Reply, replied
from postroad.broker.subscriptions.administration import Administration
from postroad.broker.subscriptions.cluster_ledgers import ClusterLedgers
from postroad.broker.subscriptions.dead_letters import DeadLetters
from postroad.broker.subscriptions.ledger_creation import LedgerCreation
from postroad.broker.subscriptions.ledgers import Ledgers
from postroad.broker.subscriptions.letter_routes import LetterRoutes
from postroad.broker.subscriptions.lookback import needed_from
from postroad.broker.subscriptions.membership import Membership
from postroad.broker.subscriptions.migration import migrate
from postroad.broker.subscriptions.orders import Orders
from postroad.broker.subscriptions.partition_ledgers import PartitionLedgers
from postroad.broker.subscriptions.queue import Queue
from postroad.broker.subscriptions.reconciliation import Reconciliation
from postroad.broker.subscriptions.schedule_file import remove_strays
from postroad.broker.subscriptions.states import QueueStates
from postroad.broker.subscriptions.subscription import Subscription, queue_settings
from postroad.cluster.group_config import GroupSettings, settings_of
from postroad.cluster.image import Changes, Topic
from postroad.cluster.named_topics import named_topics
from postroad.errors import CoordinatorLoadInProgress, InvalidGroupId, UnknownTopicId
from postroad.queues.ledger import Ledger
from postroad.queues.share_partition import SharePartition
from postroad.queues.tally import Tally
from postroad.queues.update import Key
from postroad.wire.subscription_names import BOOKKEEPING_CONFIG, TOPICS_CONFIG

if TYPE_CHECKING:
    from postroad.broker.node import Node

GROUPS_AT_ONCE: Final = 200  # are looked at when the node is started; then others have their turn


class Subscriptions:
    def __init__(self, node: Node) -> None:
        self.membership = Membership(node)
        self.members = self.membership.members
        self.sessions = self.membership.sessions
        self.letter_routes = LetterRoutes(node)
        self.dead_letters = DeadLetters(node)
        self._node = node
        self._ledgers = Ledgers(node, self._loaded)
        self.leaders = PartitionLedgers(node, self._ledgers)
        self._creation = LedgerCreation(node, self._ledgers, self.leaders, self.members)
        self.orders = Orders(node)
        self.cluster = ClusterLedgers(node, self.leaders, self._creation, self.members, self.orders)
        self._reconciliation = Reconciliation(node, self._creation)
        self.administration = Administration(node, self.cluster, self._creation)
        self._subscriptions: dict[str, Subscription] = {}  # those that were asked for

    # --- start and end

    async def start(self) -> None:
        topic_ids = {topic.id_text for topic in self._node.image.topics.values()}
        disk, schedules = self._node.runtime.disk, str(self._node.directory.schedules)
        await self._node.slow_workers.call(partial(remove_strays, disk, schedules, topic_ids))
        await migrate(self._node)
        await self._ledgers.start()
        for count, group_id in enumerate(list(self._node.image.groups), 1):
            self._creation.hold_named(group_id, since_start=True)
            if count % GROUPS_AT_ONCE == 0:
                await asyncio.sleep(0)

    def partition_led(self, partition: Partition, is_new: bool = False) -> None:
        """This node leads the partition: its ledger is loaded, and then its subscriptions are served.

        Call it before anything is appended under the new leadership. `is_new`: the ledger was just made."""
        self._ledgers.lead(partition, is_new)
        if self._ledgers.started and partition.ledger is None:
            self._creation.hold_led(partition)

    def partition_resigned(self, topic_id: bytes, index: int) -> None:
        """Another node leads the partition, or it is gone: whoever waits there is answered.

        Call it when `Partitions` knows that already: answers then say where to go on."""
        self._ledgers.resign(topic_id, index)
        self._creation.resigned(topic_id, index)
        for subscription in self._subscriptions.values():
            queue = subscription.queues.pop((topic_id, index), None)
            if queue is not None:
                queue.close()

    def _loaded(self, states: QueueStates, is_new: bool) -> None:
        self._reconciliation.loaded(states, is_new)

    def close(self) -> None:
        self._creation.close()
        self.membership.close()
        for subscription in self._subscriptions.values():
            for queue in list(subscription.queues.values()):
                queue.close()

    # --- which there are

    async def exists_anywhere(self, group_id: str) -> bool:
        """Whether this id is a share group's, wherever its ledgers lie. Raises if a node can't say."""
        return self.exists(group_id) or bool(await self.cluster.held(group_id))

    async def ids_anywhere(self) -> set[str]:
        """The ids of all subscriptions that this node coordinates. Raises if a node can't say."""
        found = self.ids() | await self.cluster.groups()
        return {group_id for group_id in found if not self._node.groups.is_elsewhere(group_id)}

    def exists(self, group_id: str) -> bool:
        """Whether this id is a share group's, as far as this node knows by itself."""
        if self.members.has_members(group_id):
            return True
        if self._node.image.groups.get(group_id, {}).get(TOPICS_CONFIG):
            return True
        return bool(self.ledgers(group_id))

    def ids(self) -> set[str]:
        """The ids of all subscriptions that this node knows by itself, with and without members."""
        found = set(self._ledgers.groups())
        found |= {group for group, config in self._node.image.groups.items() if config.get(TOPICS_CONFIG)}
        return found | {group.group_id for group in self.members.list((), ())}

    def is_bookkeeping(self, group_id: str) -> bool:
        """Whether it is only a tool's record, which lists leave out."""
        config = self._node.image.groups.get(group_id, {})
        return config.get(BOOKKEEPING_CONFIG, "").strip().lower() == "true"

    def ledgers(self, group_id: str) -> list[Ledger]:
        return self._ledgers.of_group(group_id)

    def groups_of(self, topic: Topic) -> set[str]:
        """The ids of subscriptions that hold the topic, as far as this node knows by itself."""
        return {ledger.key.group for ledger in self._ledgers.of_topic(topic)}

    def is_in_doubt(self, group_id: str) -> bool:
        """Whether messages that it has accepted may be delivered again: its state was damaged."""
        found = (self._ledgers.find(*ledger.key[1:]) for ledger in self._ledgers.of_group(group_id))
        return any(states is not None and states.is_damaged for states in found)

    def done_below(self, topic_id: bytes, index: int) -> int | None:
        """The offset below which every subscription is done with the partition, and needs nothing more to
        tell duplicates by; None without any, and while one that should hold it has no ledger yet. Raises what
        reading the log raises."""
        topic = self._node.image.topics_by_id.get(topic_id)
        states = self._ledgers.find_loaded(topic_id, index)
        if topic is None or states is None or not self._ledgers.knows_topic(topic):
            return None
        ledgers = list(states.ledgers())
        holders = {ledger.key.group for ledger in ledgers}
        if not ledgers or self._creation.is_waited_for(topic, index, holders):
            return None
        done = min(ledger.start for ledger in ledgers)
        window_ms = max(self.settings(ledger.key.group).deduplicate_ms for ledger in ledgers)
        if window_ms:
            done = min(done, needed_from(states.messages, window_ms, self._node.clock.now_ms()))
        return done

    @property
    def loaded(self) -> bool:
        """Whether every subscription is known."""
        return self._ledgers.complete

    @property
    def loading(self) -> bool:
        """Whether more of them will be known in a moment."""
        return self._ledgers.loading

    def settings(self, group_id: str) -> GroupSettings:
        """What holds for the group, whether there is one or not."""
        found = self._subscriptions.get(group_id)
        if found is not None:
            return found.settings
        return self._configured_settings(group_id)

    def _configured_settings(self, group_id: str) -> GroupSettings:
        config = self._node.image.groups.get(group_id, {})
        return settings_of(config, self._node.settings.group_defaults)

    def let_go(self, group_id: str) -> None:
        """The subscription is deleted; but if a consumer has begun a new one meanwhile, that stays."""
        subscription = self._subscriptions.get(group_id)
        if subscription is not None and not subscription.queues:
            del self._subscriptions[group_id]

    def release_member(self, group_id: str, member: str) -> None:
        """What the member held is there for others."""
        subscription = self._subscriptions.get(group_id)
        if subscription is not None:
            subscription.release_member(member)

    def held_by(self, group_id: str, member: str) -> int:
        """How many messages of the subscription the member holds."""
        found = self._subscriptions.get(group_id)
        return 0 if found is None else found.holdings.by_member.get(member, 0)

    def subscription(self, group_id: str) -> Subscription:
        """It is remembered from now on; so for ids that have a ledger, or get one."""
        found = self._subscriptions.get(group_id)
        if found is None:
            found = self._subscriptions[group_id] = Subscription(group_id, self.settings(group_id))
        return found

    def tally(self, group_id: str) -> Tally:
        """All zeros where nobody has used the subscription since the node was started."""
        found = self._subscriptions.get(group_id)
        return Tally() if found is None else found.tally

    # --- queues

    def queue(self, group_id: str, topic_id: bytes, index: int, *, begin: bool = False) -> Queue | None:
        """The queue; None if there is none, or it is not ready yet. Raises what a client should be told.

        `begin`: where the subscription has not met the partition it begins there, now.
        """
        subscription = self._subscriptions.get(group_id)
        queue = None if subscription is None else subscription.queues.get((topic_id, index))
        if queue is not None and not queue.partition.closed:
            return queue
        topic = self._node.image.topics_by_id.get(topic_id)
        if topic is None or topic.internal:
            raise UnknownTopicId()
        self._node.partitions.lead(topic_id, index)  # raises if it is not here
        states = self._ledgers.find(topic_id, index)
        if states is not None and not states.loaded:
            return None
        key = Key(group_id, topic_id, index)
        found = self.open_queue(key)
        if found is None and begin:
            self.letter_routes.check_member(group_id, [topic.name])
            self._creation.begin(key)
        return found

    def queue_in_use(self, key: Key) -> Queue | None:
        """The queue, if somebody has used it since the node was started."""
        subscription = self._subscriptions.get(key.group)
        queue = None if subscription is None else subscription.queues.get((key.topic_id, key.partition))
        return None if queue is None or queue.closed else queue

    def open_queue(self, key: Key) -> Queue | None:
        """A new queue over the ledger; None if one of its parts is not there."""
        states = self._ledgers.find_loaded(key.topic_id, key.partition)
        ledger = None if states is None else states.find(key)
        if states is None or ledger is None or states.messages.closed:
            return None
        self.close_queue(key)  # of a partition that was closed and has been opened anew
        subscription = self.subscription(key.group)
        chance = self._node.runtime.random.random
        core = SharePartition(ledger, queue_settings(subscription.settings), subscription.holdings, chance)
        queue = Queue(self._node, subscription, states.messages, core, states)
        subscription.queues[key.topic_id, key.partition] = queue
        if ledger.dying:  # archived, and perhaps not copied
            self.dead_letters.take(queue)
        return queue

    # --- beginning

    def ensure(self, group_id: str, topic_names: Iterable[str], done: Reply) -> None:
        """`done` hears when every partition of these topics (as far as they exist) has its ledger."""
        self.cluster.ensure(group_id, topic_names, done)

    def ensure_here(self, keys: Iterable[Key], from_first: bool, done: Reply) -> None:
        """`done` hears when each of these, of partitions that this node leads, has its ledger.

        `from_first`: the partitions came later than the subscription."""
        self._creation.ensure_keys(keys, from_first, done)

    def remove_here(self, key: Key, done: Reply) -> None:
        """The group is as if it had never met the partition, which this node leads."""
        self._creation.forget_key(key)
        self.leaders.remove(key, done)

    async def configured(self, group_id: str) -> None:
        """The group's configs have changed: they hold when this returns, and its topics are held, whichever
        nodes lead them."""
        settings = self._configured_settings(group_id)
        if group_id in self._subscriptions:
            self._subscriptions[group_id].configure(settings, self._node.clock.now())
        await replied(partial(self._creation.hold_named, group_id))
        await self.cluster.ensure_named(group_id, named_topics(self._node.image.groups.get(group_id, {})))

    # --- changes around it

    def changed(self, changes: Changes) -> None:
        """Topics came or went, or groups were configured, here or by another node's hand."""
        if not self._ledgers.started:
            return
        for group_id in changes.groups:
            if group_id in self._subscriptions:
                settings = self._configured_settings(group_id)
                self.subscription(group_id).configure(settings, self._node.clock.now())
            self._creation.hold_named(group_id)
        for topic in changes.deleted:
            for index in range(len(topic.partitions)):
                self.partition_resigned(topic.id, index)
        for topic in changes.created:
            self._hold_new(topic, 0)
        for before, after in changes.altered:
            self._hold_new(after, len(before.partitions))

    def _hold_new(self, topic: Topic, first: int) -> None:
        self._creation.hold_new(topic, first)
        self.cluster.hold_new(topic, first)

    def close_queue(self, key: Key) -> None:
        """Whoever waits there is answered; the next one who asks opens another."""
        subscription = self._subscriptions.get(key.group)
        queue = None if subscription is None else subscription.queues.pop((key.topic_id, key.partition), None)
        if queue is not None:
            queue.close()

    def check_ready(self, group_id: str) -> None:
        """Raises what clients should be told while it is not known whether there is such a group."""
        if not group_id:
            raise InvalidGroupId()
        if not self._ledgers.started:
            raise CoordinatorLoadInProgress()
