"""`ClusterLedgers`: what a subscription is done with, on partitions of all nodes.

Whoever coordinates a group, or changes its configs, reaches its ledgers here: those of partitions that this
node leads by a call (`partition_ledgers`), the others through `peers`, at the nodes that lead them. A cluster
of one node asks nobody.

What members name must be held when their heartbeat is answered. `_ensured` remembers which partitions of
others are, so that heartbeats ask once; it is forgotten with the last member, or when something is removed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from postroad.broker.partitions import TopicPartition
from postroad.broker.replies import Reply, replied
from postroad.broker.subscriptions.ledger_creation import After, LedgerCreation
from postroad.broker.subscriptions.orders import Orders
from postroad.broker.subscriptions.partition_ledgers import LedgerPosition, PartitionLedgers
from postroad.cluster.image import Topic
from postroad.errors import ApiError, CoordinatorNotAvailable, UnknownTopicOrPartition, by_code
from postroad.groups.share import ShareGroups
from postroad.queues.update import Key
from postroad.wire import peer

if TYPE_CHECKING:
    from postroad.broker.node import Node

ENSURE_S: Final = 5.0  # for ledgers of other leaders; a client that waited for nothing tries again
ELECTION_S: Final = 2.0  # a partition without a leader for so long is offline, and not waited for
PAUSE_S: Final = 0.1  # between two attempts: a leader may just be changing
RETRY_S: Final = 1.0
TRIES_MAX: Final = 60  # for partitions that came later; by then a heartbeat has asked for them, too

T = TypeVar("T")
Leaders = dict[TopicPartition, int | None]
"""Who leads each partition; None: nobody that lives."""

log = logging.getLogger(__name__)


class ClusterLedgers:
    def __init__(
        self,
        node: Node,
        here: PartitionLedgers,
        creation: LedgerCreation,
        members: ShareGroups,
        orders: Orders,
    ) -> None:
        self._node = node
        self._orders = orders
        self._me = node.settings.node.id
        self._here = here
        self._creation = creation
        self._members = members
        self._ensured: dict[str, set[TopicPartition]] = {}  # at other leaders, by group
        self._offline_since: dict[TopicPartition, float] = {}  # by those who asked: without a leader

    # --- beginning

    def ensure(self, group_id: str, topic_names: Iterable[str], done: Reply) -> None:
        """`done` hears when every partition of these topics has its ledger, or why one has not.

        Partitions that nobody leads are left out: they begin when a member asks again."""
        names = list(topic_names)
        missing = [key for key in self._elsewhere(group_id, names) if not self._is_ensured(key)]
        if not missing:
            self._creation.ensure(group_id, names, done)
            return
        all_done = After(2, done)
        self._creation.ensure(group_id, names, all_done)
        self._node.tasks.start(self._ensure_members(missing, all_done), "ensure-ledgers")

    async def ensure_named(self, group_id: str, topic_names: Iterable[str]) -> None:
        """Returns when other leaders hold these topics for the group. Raises why they do not yet: they go on
        by themselves then, as their own image names the topics."""
        self.forget(group_id)
        try:
            await self._ensure(self._elsewhere(group_id, topic_names))
        finally:
            self.forget_idle()

    def hold_new(self, topic: Topic, first: int) -> None:
        """Partitions came into being: other leaders hear who has begun with the topic. What the
        coordination store says of it they know by themselves."""
        named = self._node.image.named_by.get(topic.name, ())
        keys = [
            Key(group_id, topic.id, index)
            for group_id in self._creation.interested_in(topic)
            if group_id not in named
            for index in range(first, len(topic.partitions))
            if self._leader(topic.id, index) != self._me
        ]
        if keys and not topic.internal:
            self._node.tasks.start(self._hold_new(keys), "hold-new-partitions")

    async def _ensure_members(self, keys: list[Key], done: Reply) -> None:
        try:
            await self._ensure(keys)
        except ApiError as error:
            done(error)
        except BaseException:  # whoever waits must not hang
            done(CoordinatorNotAvailable())
            raise
        else:
            done(None)

    async def _ensure(self, keys: list[Key]) -> None:
        began = self._node.loop.time()
        while True:
            by_leader = self._by_leader(keys)
            offline = by_leader.pop(None, [])
            waited = self._node.loop.time() - began
            errors = await self._ask_all(by_leader, from_first=False)
            keys = [key for key in keys if not self._is_ensured(key)]
            if not errors and (not offline or waited > ELECTION_S):
                return
            if errors and waited > ENSURE_S:
                raise errors[0]
            await asyncio.sleep(PAUSE_S)

    async def _hold_new(self, keys: list[Key]) -> None:
        for _ in range(TRIES_MAX):
            by_leader = self._by_leader(keys)
            offline = by_leader.pop(None, [])
            failed = await self._ask_all(by_leader, from_first=True)
            self.forget_idle()
            if not failed and not offline:
                return
            known = self._node.image.topics_by_id
            keys = [key for key in keys if key.topic_id in known]
            await asyncio.sleep(RETRY_S)
        log.warning("%d new partitions could not be held for subscriptions without configs", len(keys))

    async def _ask_all(self, by_leader: dict[int | None, list[Key]], from_first: bool) -> list[ApiError]:
        """Ask each leader to hold its partitions; what went wrong."""

        async def ask(leader: int | None, keys: list[Key]) -> ApiError | None:
            assert leader is not None
            try:
                for group_id in dict.fromkeys(key.group for key in keys):
                    await self._ask_to_hold(leader, group_id, keys, from_first)
            except ApiError as error:
                return error
            return None

        found = await asyncio.gather(*(ask(leader, keys) for leader, keys in by_leader.items()))
        return [error for error in found if error is not None]

    async def _ask_to_hold(self, leader: int, group_id: str, keys: list[Key], from_first: bool) -> None:
        partitions = [_place(key) for key in keys if key.group == group_id]
        if leader == self._me:  # it was elected meanwhile
            mine = [key for key in keys if key.group == group_id]
            await replied(partial(self._creation.ensure_keys, mine, from_first))
        else:
            revision = self._node.image.revision
            question = peer.EnsureLedgers(group_id, partitions, revision, from_first)
            await self._node.peers.ask(leader, question)
        self._ensured.setdefault(group_id, set()).update(partitions)

    def _is_ensured(self, key: Key) -> bool:
        return _place(key) in self._ensured.get(key.group, ())

    def forget(self, group_id: str) -> None:
        """Ledgers of the group may be gone, or nobody asks for them any more."""
        self._ensured.pop(group_id, None)

    def forget_idle(self) -> None:
        """Forget the groups that have no members here."""
        for group_id in [group for group in self._ensured if not self._members.has_members(group)]:
            del self._ensured[group_id]

    # --- looking and changing

    async def held(self, group_id: str, topic_id: bytes = b"", *, all_known: bool = False) -> list[Key]:
        """All partitions that the group has met, or those of one topic. Raises if a leader can't say.

        Partitions that are offline are left out; with `all_known` they are an error."""
        leaders = await self._elected(topic_id)
        if all_known and None in leaders.values():
            raise CoordinatorNotAvailable("A partition has no leader.")
        found = self._here.held(group_id, topic_id, all_known=all_known)
        for answer in await self._ask_holders(leaders, peer.FindHeld(group_id, topic_id, all_known)):
            found += [Key(group_id, *where) for where in answer.partitions]
        return sorted(set(found))

    async def groups(self) -> set[str]:
        """The ids of all groups that have met a partition. Raises if a leader can't say."""
        leaders = await self._elected()
        found = set(self._here.groups())
        for answer in await self._ask_holders(leaders, peer.FindGroups()):
            found.update(answer.groups)
        return found

    async def position(self, key: Key) -> LedgerPosition | None:
        """How far the group has come; None if it has not met the partition. Raises what a client is told."""
        leader = self._checked_leader(key)
        if leader == self._me:
            return self._here.position(key)
        answer = await self._node.peers.ask(leader, peer.FindPositions(key.group, [_place(key)]))
        [result] = answer.results
        if result.error_code:
            raise by_code(result.error_code, result.error_message)
        found = result.position
        return None if found is None else LedgerPosition(found.start, found.leader_epoch, found.lag)

    async def reset(self, key: Key, start: int) -> None:
        """Go on from this offset, whatever was acknowledged or is held. Raises what is wrong with that."""
        leader = self._checked_leader(key)
        if leader == self._me:
            await self._here.reset(key, start)
        else:
            order = self._orders.give(key.group)
            await self._node.peers.ask(leader, peer.ResetLedger(key.group, _place(key), start, *order))

    async def remove(self, keys: Sequence[Key]) -> None:
        """The group is as if it had never met these partitions. Raises the first error; others are done."""
        for group_id in dict.fromkeys(key.group for key in keys):
            self.forget(group_id)
        by_leader = self._by_leader(keys)
        errors: list[ApiError] = []
        if None in by_leader:
            by_leader.pop(None)
            errors.append(CoordinatorNotAvailable("A partition has no leader."))
        for leader, led in by_leader.items():
            assert leader is not None
            try:
                await self._remove(leader, led)
            except ApiError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    async def _remove(self, leader: int, keys: list[Key]) -> None:
        if leader == self._me:
            await replied(partial(self._remove_here, keys))
            return
        for group_id in dict.fromkeys(key.group for key in keys):
            partitions = [_place(key) for key in keys if key.group == group_id]
            question = peer.RemoveLedgers(group_id, partitions, *self._orders.give(group_id))
            answer = await self._node.peers.ask(leader, question)
            for result in answer.results:
                if result.error_code:
                    raise by_code(result.error_code, result.error_message)

    def _remove_here(self, keys: list[Key], done: Reply) -> None:
        all_done = After(len(keys), done)
        for key in keys:
            self._here.remove(key, all_done)

    # --- who leads what

    def _elsewhere(self, group_id: str, topic_names: Iterable[str]) -> list[Key]:
        """Partitions of these topics that this node does not lead."""
        topics = self._node.image.topics
        return [
            Key(group_id, topic.id, index)
            for name in topic_names
            if (topic := topics.get(name)) is not None and not topic.internal
            for index, state in enumerate(topic.partitions)
            if state.leader != self._me
        ]

    def _by_leader(self, keys: Iterable[Key]) -> dict[int | None, list[Key]]:
        """None: nobody leads them that lives. Those of deleted topics are left out."""
        found: dict[int | None, list[Key]] = {}
        for key in keys:
            if key.topic_id in self._node.image.topics_by_id:
                found.setdefault(self._leader(key.topic_id, key.partition), []).append(key)
        return found

    def _leader(self, topic_id: bytes, index: int) -> int | None:
        leader = self._node.image.topics_by_id[topic_id].partitions[index].leader
        return leader if leader == self._me or leader in self._node.image.nodes else None

    def _checked_leader(self, key: Key) -> int:
        topic = self._node.image.topics_by_id.get(key.topic_id)
        if topic is None or not 0 <= key.partition < len(topic.partitions):
            raise UnknownTopicOrPartition()
        leader = self._leader(key.topic_id, key.partition)
        if leader is None:
            raise CoordinatorNotAvailable("The partition has no leader.")
        return leader

    async def _elected(self, topic_id: bytes = b"") -> Leaders:
        """Who leads the partitions that have ledgers, once elections that are under way are over.

        Without that wait, who asks right after the death of a node would hear of too little: a purge would
        leave messages, and a list would lack subscriptions."""
        while True:
            leaders, now = self._leaders(topic_id), self._node.loop.time()
            offline = {where for where, leader in leaders.items() if leader is None}
            for where in leaders.keys() - offline:
                self._offline_since.pop(where, None)
            if all(
                now - self._offline_since.setdefault(where, now) > ELECTION_S for where in sorted(offline)
            ):
                return leaders
            await asyncio.sleep(PAUSE_S)

    def _leaders(self, topic_id: bytes = b"") -> Leaders:
        topics = self._node.image.topics_by_id
        wanted = topics.values() if not topic_id else [topics[topic_id]] if topic_id in topics else []
        return {
            (topic.id, index): self._leader(topic.id, index)
            for topic in wanted
            for index, state in enumerate(topic.partitions)
            if state.ledger
        }

    async def _ask_holders(self, leaders: Leaders, question: peer.AnyQuestion) -> list[peer.PeerAnswer]:
        """The answers of all other nodes that lead a partition with a ledger. Raises if leaders change
        meanwhile: a partition may then be missing from all answers."""
        others = {leader for leader in leaders.values() if leader is not None and leader != self._me}
        answers = await _all(partial(self._node.peers.ask, question=question), sorted(others))
        now = self._leaders()
        if any(now.get(where, leader) != leader for where, leader in leaders.items()):
            raise CoordinatorNotAvailable("Partitions have other leaders by now: ask again.")
        return answers


async def _all(ask: Callable[[int], Awaitable[T]], whom: Sequence[int]) -> list[T]:
    return list(await asyncio.gather(*(ask(each) for each in whom)))


def _place(key: Key) -> TopicPartition:
    return key.topic_id, key.partition
