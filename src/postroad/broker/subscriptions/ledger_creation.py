"""`LedgerCreation`: makes the ledgers with which subscriptions begin to hold partitions.

Who asks: a member that names topics, `postroad.topics`, and a topic or partition that comes into being while
somebody has named its topic. A subscription holds a partition from its ledger's start on, so nothing may be
lost between the moment at which it should begin and the one at which the ledger could be written.

Where it begins. A partition that came later than the subscription is held from its first message; else
`share.auto.offset.reset` says where. Which of the two it is does not depend on when the ledger is made: the
coordination store has it (`Image.came_later`), so that it is the same after a crash, and for states that were
not loaded, offline or on a full disk when the partition came. For topics that only members name the ledgers
of lower partitions tell it: a higher one came later.

A partition's first subscription begins with its ledger's log: the coordination store is told first, so that
it is there on every replica (`Ledgers.prepare`).

What could not be made is owed. `_owed` remembers where it will begin: the first message, or the offset that
was the right one when it was asked for. It is tried again once a second, and when the partition's ledger was
loaded. After a restart `hold_named` and `partition_loaded` find again whatever `postroad.topics` asks for and
has no ledger; what was published since the start is held then, also with `latest`. Until the ledger is there
nobody may delete messages as acknowledged by all (`is_waited_for`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from postroad.broker.partition import Partition
from postroad.broker.replies import Reply
from postroad.broker.subscriptions.ledgers import Ledgers
from postroad.broker.subscriptions.partition_ledgers import Beginning, PartitionLedgers
from postroad.broker.subscriptions.starting import starting_offset
from postroad.broker.subscriptions.states import QueueStates
from postroad.cluster.group_config import settings_of
from postroad.cluster.image import Topic
from postroad.cluster.named_topics import named_topics
from postroad.cluster.start_at import StartAt
from postroad.errors import ApiError, CoordinatorLoadInProgress, CoordinatorNotAvailable, InvalidGroupId
from postroad.groups.share import ShareGroups
from postroad.queues.ledger import Ledger
from postroad.queues.update import Key

if TYPE_CHECKING:
    from postroad.broker.node import Node

RETRY_S: Final = 1.0  # after a ledger could not be written
GROUPS_TOLD_MAX: Final = 5  # by name, in one line of the log

log = logging.getLogger(__name__)


def _heard(error: ApiError | None) -> None:
    """Whoever made it has logged what was wrong, and tries it again."""


class LedgerCreation:
    def __init__(self, node: Node, ledgers: Ledgers, leaders: PartitionLedgers, members: ShareGroups) -> None:
        self._node = node
        self._ledgers = ledgers
        self._leaders = leaders
        self._members = members
        self._creating: dict[Key, list[Reply]] = {}  # ledgers that are on their way to the disk
        self._owed: dict[Key, Beginning] = {}  # at most one for each partition that a group has named
        self._timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    # --- who asks

    def ensure(self, group_id: str, topic_names: Iterable[str], done: Reply) -> None:
        """`done` hears when every partition of these topics that this node leads has its ledger."""
        if not group_id:
            done(InvalidGroupId())
            return
        self.ensure_keys(self._keys(group_id, topic_names), False, done)

    def ensure_keys(self, keys: Iterable[Key], from_first: bool, done: Reply) -> None:
        """`done` hears when each of these, of partitions that this node leads, has its ledger.

        `from_first`: the partitions came later than the subscription."""
        missing: list[Key] = []
        for key in keys:
            states = self._ledgers.find(key.topic_id, key.partition)
            if states is not None and not states.loaded:
                done(CoordinatorLoadInProgress())
                return
            if states is None or states.find(key) is None:
                missing.append(key)
        if from_first:
            self._owed.update((key, None) for key in missing)
            self._make(missing, done)
        else:
            self._create_all(missing, done)

    def hold_named(self, group_id: str, done: Reply = _heard, since_start: bool = False) -> None:
        """`done` hears when this node's partitions of `postroad.topics` are held, or why not yet: then it is
        tried again.

        `since_start`: the group named them before this node was started. Partitions that have a ledger are
        then left to `partition_loaded`."""
        owed: list[Key] = []
        for key in self._keys(group_id, named_topics(self._node.image.groups.get(group_id, {}))):
            states = self._ledgers.find(key.topic_id, key.partition)
            if states is None or not (since_start or states.knows(key)):
                owed.append(key)
                self._owe(key, since_start)
        self._make(owed, done)

    def hold_new(self, topic: Topic, first: int) -> None:
        """The topic's partitions from this one on came into being: whoever has named it holds them."""
        if topic.internal:
            return
        led = [index for index in range(first, len(topic.partitions)) if self._leads(topic, index)]
        owed = [Key(group_id, topic.id, index) for group_id in self.interested_in(topic) for index in led]
        for key in owed:
            self._owe(key)
        self._make(owed, _heard)

    def hold_led(self, partition: Partition) -> None:
        """This node leads the partition, which has no ledger: whoever has named its topic holds it.

        The leader before may have ended in between; what came while this node had the log is held."""
        if partition.internal:
            return
        named = self._node.image.named_by.get(partition.topic, ())
        owed = [Key(group_id, partition.topic_id, partition.index) for group_id in named]
        for key in owed:
            self._owe(key, since_start=True)
        self._make(owed, _heard)

    def resigned(self, topic_id: bytes, index: int) -> None:
        """What is owed there is its next leader's to make, which knows it from the coordination store."""
        topic = self._node.image.topics_by_id.get(topic_id)
        if topic is None or not self._leads(topic, index):
            for key in [key for key in self._owed if key[1:] == (topic_id, index)]:
                del self._owed[key]

    def begin(self, key: Key) -> None:
        """A member asks for messages of a partition that the subscription has not met."""
        self._create_all([key], _heard)

    def partition_loaded(self, states: QueueStates, is_new: bool) -> None:
        """The partition's ledger was loaded: whoever should hold the partition and does not is owed it.

        `is_new`: the ledger was just made for somebody who is owed it, or asks."""
        topic_id, index = states.messages.topic_id, states.messages.index
        for group_id in () if is_new else self._node.image.named_by.get(states.messages.topic, ()):
            key = Key(group_id, topic_id, index)
            if not states.knows(key):
                self._owe(key, since_start=True)
        self._make([key for key in self._owed if key[1:] == (topic_id, index)], _heard)

    def forget_key(self, key: Key) -> None:
        """The group forgets the partition. Raises CoordinatorLoadInProgress while it just begins there."""
        if key in self._creating:
            raise CoordinatorLoadInProgress()
        self._owed.pop(key, None)

    def forget(self, group_id: str) -> None:
        """The group is deleted, or is to begin anew."""
        for key in [key for key in self._owed if key.group == group_id]:
            del self._owed[key]

    def is_under_way(self, group_id: str) -> bool:
        """Whether ledgers of the group are just being made."""
        return any(key.group == group_id for key in self._creating)

    def is_waited_for(self, topic: Topic, index: int, holders: set[str]) -> bool:
        """Whether somebody besides these groups, who have a ledger of the partition, is to get one."""
        if any(group_id not in holders for group_id in self._node.image.named_by.get(topic.name, ())):
            return True
        if any(key[1:] == (topic.id, index) for key in self._owed):
            return True
        return any(ledger.key.group not in holders for ledger in self._ledgers.of_topic(topic))

    def interested_in(self, topic: Topic) -> dict[str, None]:
        """Groups that were created for the topic, or have begun with it or have members that name it here."""
        found = dict(self._node.image.named_by.get(topic.name, {}))
        found |= dict.fromkeys(ledger.key.group for ledger in self._ledgers.of_topic(topic))
        for group in self._members.list():
            if topic.name in self._members.topics_of(group.group_id):
                found[group.group_id] = None
        return found

    def _keys(self, group_id: str, topic_names: Iterable[str]) -> list[Key]:
        """Partitions of these topics that this node leads."""
        return [
            Key(group_id, topic.id, index)
            for name in topic_names
            if (topic := self._node.image.topics.get(name)) is not None and not topic.internal
            for index in range(len(topic.partitions))
            if self._leads(topic, index)
        ]

    def _leads(self, topic: Topic, index: int) -> bool:
        """Whether the coordination store names this node as the partition's leader."""
        return topic.partitions[index].leader == self._node.settings.node.id

    # --- what is owed

    def retry(self) -> None:
        """Make what is still owed, as far as its states can be had."""
        interested: dict[bytes, dict[str, None]] = {}
        for key in list(self._owed):
            topic = self._node.image.topics_by_id.get(key.topic_id)
            if topic is not None and topic.id not in interested:
                interested[topic.id] = self.interested_in(topic)
            if key.group not in interested.get(key.topic_id, ()):
                del self._owed[key]
        self._make(list(self._owed), _heard)

    def _owe(self, key: Key, since_start: bool = False) -> None:
        """From now on the partition will be held, whenever that can be written."""
        if key not in self._owed:
            partition = self._node.partitions.find(key.topic_id, key.partition)
            self._owed[key] = self._beginning(key, partition, since_start)

    def _beginning(self, key: Key, partition: Partition | None, since_start: bool) -> Beginning:
        image = self._node.image
        topic = image.topics_by_id[key.topic_id]
        named = key.group in image.named_by.get(topic.name, ())
        if not named or image.came_later(key.group, topic, key.partition):
            return None
        start = self._policy(key.group)
        if partition is None:
            return start
        try:
            settings = self._node.subscriptions.settings(key.group)
            now_ms = self._node.clock.now_ms()
            offset = starting_offset(partition, start, now_ms, settings.committed_only)
        except (ApiError, OSError):
            return start  # whoever makes the ledger meets the error again
        return min(offset, partition.opened_at) if since_start else offset

    def _make(self, keys: list[Key], done: Reply) -> None:
        """Make those that can be made now. `done` hears when they are, or what is wrong with the others."""
        ready: list[Key] = []
        refused: ApiError | None = None
        for key in keys:
            states = self._ledgers.find(key.topic_id, key.partition)
            if states is not None and not states.loaded:
                refused = CoordinatorLoadInProgress()  # it comes again when they are loaded
            elif states is not None and states.knows(key):
                self._owed.pop(key, None)
            else:
                ready.append(key)

        def made(error: ApiError | None) -> None:
            if error is not None:
                self._retry_later()
            if error or refused:
                groups = ", ".join(sorted({key.group for key in keys})[:GROUPS_TOLD_MAX])
                told = "new partitions can't be held for %s yet; this is caught up later: %s"
                log.warning(told, groups, error or refused)
            done(error or refused)

        self._create_all(ready, made)

    def _retry_later(self) -> None:
        if self._timer is None:
            self._timer = self._node.loop.call_later(RETRY_S, self._retry_now)

    def _retry_now(self) -> None:
        self._timer = None
        self.retry()

    # --- making them

    def _create_all(self, keys: list[Key], done: Reply) -> None:
        if not keys:
            done(None)
            return
        all_done = After(len(keys), done)
        begun: list[Key] = []
        for key in keys:
            if key not in self._creating:
                begun.append(key)
            self._creating.setdefault(key, []).append(all_done)
        unprepared = [key for key in begun if self._ledgers.find(key.topic_id, key.partition) is None]
        if unprepared:
            self._node.tasks.start(self._prepare(unprepared), "prepare-ledgers")
        for key in begun:
            if key not in unprepared:
                self._create(key)

    async def _prepare(self, keys: list[Key]) -> None:
        """These are of partitions that have no ledger: make it, then write to it."""
        try:
            await self._ledgers.prepare(list(dict.fromkeys((key.topic_id, key.partition) for key in keys)))
        except ApiError as error:
            for key in keys:
                self._created(key, error)
            return
        except Exception:  # whoever waits must not hang
            for key in keys:
                self._created(key, CoordinatorNotAvailable())
            raise
        for key in keys:
            self._create(key)

    def _create(self, key: Key) -> None:
        partition = self._node.partitions.find(key.topic_id, key.partition)
        if partition is None:
            self._created(key, None)
            return
        owed = key in self._owed
        beginning = self._owed[key] if owed else self._unowed_beginning(key, partition)
        offset = self._leaders.create(key, beginning, partial(self._created, key))
        if offset is not None and key in self._owed:
            self._owed[key] = offset  # what comes from now on is held, also if this can't be written

    def _created(self, key: Key, error: ApiError | None) -> None:
        states = self._ledgers.find(key.topic_id, key.partition)
        if error is None and states is not None and states.find(key) is not None:
            self._owed.pop(key, None)
        for done in self._creating.pop(key):
            done(error)

    def _unowed_beginning(self, key: Key, partition: Partition) -> Beginning:
        """A member asks: of what `postroad.topics` names the store knows more than the ledgers."""
        topic = self._node.image.topics_by_id[key.topic_id]
        if key.group in self._node.image.named_by.get(topic.name, ()):
            return self._beginning(key, partition, since_start=False)
        lower = range(key.partition)
        came_later = any(ledger.key.partition in lower for ledger in self._held(key.group, key.topic_id))
        return None if came_later else self._policy(key.group)

    def _held(self, group_id: str, topic_id: bytes) -> Iterator[Ledger]:
        return (ledger for ledger in self._ledgers.of_group(group_id) if ledger.key.topic_id == topic_id)

    def _policy(self, group_id: str) -> StartAt:
        config, defaults = self._node.image.groups.get(group_id, {}), self._node.settings.group_defaults
        return settings_of(config, defaults).start


class After:
    """Calls on when all parts were heard of; with the first error, if there was one."""

    def __init__(self, parts: int, done: Reply) -> None:
        self._left = parts
        self._done = done
        self._error: ApiError | None = None

    def __call__(self, error: ApiError | None) -> None:
        self._error = self._error or error
        self._left -= 1
        if not self._left:
            self._done(self._error)
