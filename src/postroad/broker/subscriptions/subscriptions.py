"""All subscriptions of this node: who is a member, what they have done, and where each queue is.

A subscription is there as soon as it has a ledger (`states`): when a member names a topic, or when it is
created with `postroad.topics`. From then on it holds the topic's messages, from the offset on that
`share.auto.offset.reset` chose then. A partition or a topic that comes later is held from its first message.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from postroad.broker.connection import Connection
from postroad.broker.partition import Partition
from postroad.broker.replies import Reply, heard
from postroad.broker.subscriptions.dead_letters import DeadLetters
from postroad.broker.subscriptions.ledger_creation import After, LedgerCreation
from postroad.broker.subscriptions.letter_routes import LetterRoutes
from postroad.broker.subscriptions.lookback import needed_from
from postroad.broker.subscriptions.queue import Queue
from postroad.broker.subscriptions.schedule_file import remove_strays
from postroad.broker.subscriptions.sessions import ShareSession, ShareSessions
from postroad.broker.subscriptions.state_topic import StateTopic
from postroad.broker.subscriptions.states import QueueStates
from postroad.broker.subscriptions.subscription import Subscription, queue_settings
from postroad.cluster import controller
from postroad.cluster.group_config import GroupSettings, settings_of
from postroad.cluster.image import Changes, Topic
from postroad.errors import (
    ApiError,
    CoordinatorNotAvailable,
    GroupIdNotFound,
    NonEmptyGroup,
    UnknownTopicId,
)
from postroad.groups.settings import ShareGroupSettings
from postroad.groups.share import ShareGroups
from postroad.queues.ledger import Ledger
from postroad.queues.share_partition import SharePartition
from postroad.queues.tally import Tally
from postroad.queues.update import Key, Update
from postroad.wire.subscription_names import BOOKKEEPING_CONFIG, TOPICS_CONFIG

if TYPE_CHECKING:
    from postroad.broker.node import Node

RETRY_S: Final = 1.0  # after a ledger could not be corrected
GROUPS_AT_ONCE: Final = 200  # are looked at when states were loaded; then others have their turn

log = logging.getLogger(__name__)


class Subscriptions:
    def __init__(self, node: Node) -> None:
        self.members = ShareGroups()
        self.sessions = ShareSessions(node.settings.limits.share_sessions_max)
        self.letter_routes = LetterRoutes(node)
        self.dead_letters = DeadLetters(node)
        self._node = node
        self._topic = StateTopic(node, self._loaded)
        self._creation = LedgerCreation(node, self._topic, self.members)
        self._subscriptions: dict[str, Subscription] = {}  # those that were asked for
        self._timer: asyncio.TimerHandle | None = None

    # --- start and end

    async def start(self) -> None:
        topic_ids = {topic.id_text for topic in self._node.image.topics.values()}
        schedules = self._node.directory.schedules
        await self._node.slow_workers.call(partial(remove_strays, schedules, topic_ids))
        await self._topic.start(self._node.settings.groups.share_state_partitions)

    def partition_opened(self, topic: str, index: int) -> None:
        """A partition that was offline is back, perhaps one of ours."""
        self._topic.partition_opened(topic, index)
        partition = self._node.partitions.find(topic, index)
        if partition is not None:
            for ledger in list(self._topic.of_topic(partition.topic_id)):
                if ledger.key.partition == index:
                    self._meet(ledger, partition)
            self._creation.partition_opened(partition)

    async def _loaded(self, states: QueueStates) -> None:
        image = self._node.image
        for ledger in list(states.ledgers()):
            partition = self._node.partitions.find(ledger.key.topic_id, ledger.key.partition)
            if ledger.key.topic_id not in image.topics_by_id:  # deleted just before the node stopped
                states.remove(ledger.key, _ignore)
            elif partition is not None:
                self._meet(ledger, partition)
        of_these = [group_id for group_id in image.groups if self._topic.find(group_id) is states]
        for count, group_id in enumerate(of_these, 1):
            self._creation.hold_named(group_id, since_start=True)
            if count % GROUPS_AT_ONCE == 0:
                await asyncio.sleep(0)
        self._creation.retry()

    def _meet(self, ledger: Ledger, partition: Partition) -> None:
        """What was left when the node stopped: both are there for the first time since then."""
        states = self._topic.find(ledger.key.group)
        if states is None or not states.loaded:
            return
        correction = ledger.ending_at(partition.opened_at)
        if correction is not None:
            lost = "%s-%d has lost its end: %s goes on at offset %d with what comes next"
            log.warning(lost, partition.topic, partition.index, ledger.key.group, partition.opened_at)
            self._correct(states, ledger, correction)
        elif ledger.dying and self.queue_in_use(ledger.key) is None:
            self._queue_of(ledger.key)

    def _correct(self, states: QueueStates, ledger: Ledger, correction: Update) -> None:
        """Nobody is served before it is written, or what was lost would be passed over."""

        def done(error: ApiError | None) -> None:
            if error is not None:
                _ignore(error)
                self._node.loop.call_later(RETRY_S, self._correct, states, ledger, correction)
            elif ledger.dying:
                self._queue_of(ledger.key)

        states.correct(ledger, correction, done)
        self._close_queue(ledger.key)

    def close(self) -> None:
        self._creation.close()
        if self._timer is not None:
            self._timer.cancel()
        for subscription in self._subscriptions.values():
            for queue in list(subscription.queues.values()):
                queue.close()

    # --- which there are

    def exists(self, group_id: str) -> bool:
        """Whether this id is a share group's."""
        if self.members.has_members(group_id):
            return True
        if self._node.image.groups.get(group_id, {}).get(TOPICS_CONFIG):
            return True
        return bool(self.ledgers(group_id))

    def ids(self) -> set[str]:
        """The ids of all subscriptions, with and without members."""
        found = self._topic.groups()
        found |= {group for group, config in self._node.image.groups.items() if config.get(TOPICS_CONFIG)}
        return found | {group.group_id for group in self.members.list((), ())}

    def is_bookkeeping(self, group_id: str) -> bool:
        """Whether it is only a tool's record, which lists leave out."""
        config = self._node.image.groups.get(group_id, {})
        return config.get(BOOKKEEPING_CONFIG, "").strip().lower() == "true"

    def ledgers(self, group_id: str) -> list[Ledger]:
        return self._topic.of_group(group_id)

    def is_in_doubt(self, group_id: str) -> bool:
        """Whether messages that it has accepted may be delivered again: its state was damaged."""
        states = self._topic.find(group_id)
        return states is not None and states.is_damaged

    def done_below(self, topic_id: bytes, index: int) -> int | None:
        """The offset below which every subscription is done with the partition, and needs nothing more to
        tell duplicates by; None without any, and while one that should hold it has no ledger yet. Raises what
        reading the log raises."""
        topic = self._node.image.topics_by_id.get(topic_id)
        ledgers = [ledger for ledger in self._topic.of_topic(topic_id) if ledger.key.partition == index]
        holders = {ledger.key.group for ledger in ledgers}
        if topic is None or not ledgers or self._creation.is_waited_for(topic, index, holders):
            return None
        done = min(ledger.start for ledger in ledgers)
        window_ms = max(self.settings(ledger.key.group).deduplicate_ms for ledger in ledgers)
        partition = self._node.partitions.find(topic_id, index)
        if window_ms and partition is not None:
            done = min(done, needed_from(partition, window_ms, self._node.clock.now_ms()))
        return done

    @property
    def loaded(self) -> bool:
        return self._topic.loaded

    def settings(self, group_id: str) -> GroupSettings:
        """What holds for the group, whether there is one or not."""
        found = self._subscriptions.get(group_id)
        if found is not None:
            return found.settings
        return self._configured_settings(group_id)

    def _configured_settings(self, group_id: str) -> GroupSettings:
        config = self._node.image.groups.get(group_id, {})
        return settings_of(config, self._node.settings.group_defaults)

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

    def group_settings(self, group_id: str) -> ShareGroupSettings:
        settings = self.settings(group_id)
        return ShareGroupSettings(
            settings.heartbeat_ms, settings.session_ms, self._node.settings.groups.members_max
        )

    def check_group_type(self, group_id: str) -> None:
        """Raises if the id is a consumer group's."""
        coordinator = self._node.groups.find(group_id)
        coordinator.check_loaded()
        if coordinator.groups.exists(group_id):
            raise GroupIdNotFound(f"Group {group_id} is not a share group.")

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
        states = self._topic.find(group_id)
        if states is None or not states.loaded:
            return None
        key = Key(group_id, topic_id, index)
        found = self._queue_of(key)
        if found is None and begin:
            self.letter_routes.check_member(group_id, [topic.name])
            self._creation.begin(key)
        return found

    def queue_in_use(self, key: Key) -> Queue | None:
        """The queue, if somebody has used it since the node was started."""
        subscription = self._subscriptions.get(key.group)
        queue = None if subscription is None else subscription.queues.get((key.topic_id, key.partition))
        return None if queue is None or queue.closed else queue

    def _queue_of(self, key: Key) -> Queue | None:
        states = self._topic.find(key.group)
        ledger = None if states is None or not states.loaded else states.find(key)
        partition = self._node.partitions.find(key.topic_id, key.partition)
        if states is None or ledger is None or partition is None:
            return None
        self._close_queue(key)  # of a partition that was closed and has been opened anew
        subscription = self.subscription(key.group)
        core = SharePartition(
            ledger, queue_settings(subscription.settings), subscription.holdings, random.random
        )
        queue = Queue(self._node, subscription, partition, core, states)
        subscription.queues[key.topic_id, key.partition] = queue
        if ledger.dying:  # archived, and perhaps not copied
            self.dead_letters.take(queue)
        return queue

    # --- beginning

    def ensure(self, group_id: str, topic_names: Iterable[str], done: Reply) -> None:
        """`done` hears when every partition of these topics (as far as they exist) has its ledger."""
        self._creation.ensure(group_id, topic_names, done)

    async def configured(self, group_id: str) -> None:
        """The group's configs have changed: they hold when this returns, and its topics are held."""
        settings = self._configured_settings(group_id)
        if group_id in self._subscriptions:
            self._subscriptions[group_id].configure(settings, self._node.clock.now())
        await heard(partial(self._creation.hold_named, group_id))

    # --- changes around it

    def changed(self, changes: Changes) -> None:
        """Topics came or went, or groups were configured, here or by another node's hand."""
        if not self._topic.started:
            return
        for group_id in changes.groups:
            if group_id in self._subscriptions:
                settings = self._configured_settings(group_id)
                self.subscription(group_id).configure(settings, self._node.clock.now())
            self._creation.hold_named(group_id)
        for topic in changes.deleted:
            self._forget(topic)
        for topic in changes.created:
            self._creation.hold_new(topic, 0)
        for before, after in changes.altered:
            self._creation.hold_new(after, len(before.partitions))

    def _forget(self, topic: Topic) -> None:
        for states in self._topic.states.values():
            for key in [ledger.key for ledger in states.ledgers() if ledger.key.topic_id == topic.id]:
                self._remove(states, key, _ignore)

    def _remove(self, states: QueueStates, key: Key, done: Reply) -> None:
        """The ledger goes, and its queue at once. No other can come up over it: nobody finds the ledger."""
        states.remove(key, done)
        self._close_queue(key)

    def _close_queue(self, key: Key) -> None:
        subscription = self._subscriptions.get(key.group)
        queue = None if subscription is None else subscription.queues.pop((key.topic_id, key.partition), None)
        if queue is not None:
            queue.close()

    # --- administration

    async def remove(self, group_id: str, keys: Sequence[Key]) -> None:
        """These ledgers go: the subscription is as if it had never heard of the partitions."""
        self._topic.ready(group_id)
        await self._note_topics(group_id, {key.topic_id for key in keys})
        await self._remove_all(group_id, keys)

    async def _remove_all(self, group_id: str, keys: Sequence[Key]) -> None:
        states = self._topic.ready(group_id)

        def remove_all(done: Reply) -> None:
            all_done = After(len(keys), done)
            for key in keys:
                self._remove(states, key, all_done)

        if keys:
            await heard(remove_all)

    async def _note_topics(self, group_id: str, topic_ids: set[bytes]) -> None:
        """Should these be held again they begin as topics that exist, not with their first message."""
        for topic_id in topic_ids:
            topic = self._node.image.topics_by_id.get(topic_id)
            if topic is not None:
                await self._node.topics.decide(partial(controller.note_topic, group_id=group_id, topic=topic))

    async def delete(self, group_id: str) -> None:
        """The subscription goes with all that it knows. Raises NonEmptyGroup while it has members."""
        if not self.exists(group_id):
            raise GroupIdNotFound()
        if self.members.has_members(group_id):
            raise NonEmptyGroup()
        self._creation.forget(group_id)
        await self._remove_all(group_id, [ledger.key for ledger in self.ledgers(group_id)])
        if group_id in self._node.image.groups:
            await self._node.topics.decide(lambda image: controller.delete_group_config(image, group_id))
        subscription = self._subscriptions.get(group_id)
        if subscription is not None and not subscription.queues:  # a consumer may have begun a new one
            del self._subscriptions[group_id]

    async def reset(self, key: Key, start: int) -> None:
        """Go on from this offset, whatever was acknowledged or is held. Raises what is wrong with that."""
        states = self._topic.ready(key.group)
        partition = self._node.partitions.lead(key.topic_id, key.partition)
        start = min(max(start, partition.log.start_offset), partition.high_watermark)
        if states.find(key) is None:
            await heard(partial(states.create, key, start))
            return
        queue = self.queue(*key)
        if queue is None:
            raise CoordinatorNotAvailable()
        await heard(partial(queue.reset, start))

    def check_ready(self, group_id: str) -> None:
        """Raises what clients should be told while the group's state can't be had."""
        self._topic.ready(group_id)

    # --- members and sessions

    def arm_members(self) -> None:
        """After a heartbeat: a member that goes silent is noticed in time."""
        at = self.members.next_deadline()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            delay_ms = max(at - self._node.clock.monotonic_ms(), 0) + 1
            self._timer = self._node.loop.call_later(delay_ms / 1000, self._expire_members)

    def _expire_members(self) -> None:
        self._timer = None
        for group_id, member in self.members.expire(self._node.clock.now()):
            self.left(group_id, member)
        self.arm_members()

    def left(self, group_id: str, member: str) -> None:
        """What it held is there for others."""
        subscription = self._subscriptions.get(group_id)
        if subscription is not None:
            subscription.release_member(member)

    def open_session(self, group: str, member: str, connection: Connection) -> ShareSession:
        session = self.sessions.open(group, member, connection)
        connection.when_closed(self.disconnected)
        return session

    def end_session(self, session: ShareSession) -> None:
        if self.sessions.close(session):
            self.left(session.group, session.member)

    def disconnected(self, connection: Connection) -> None:
        for session in self.sessions.of(connection):
            self.end_session(session)
            settings = self.group_settings(session.group)
            self.members.suspect(session.group, session.member, settings, self._node.clock.now())
        self.arm_members()


def _ignore(error: ApiError | None) -> None:
    if error is not None:
        log.warning("a subscription's state could not be written: %s", error)
