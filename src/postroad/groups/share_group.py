"""One share group: its members, and what each shall look after. Soft state, all of it.

A change of members, subscriptions or subscribed topics raises the group's epoch; the next heartbeat finds
the assignment of that epoch. Since members share partitions nothing has to be given up before another may
have it, so a member is told its part of a new assignment at once. Only in a large group, where finding an
assignment takes milliseconds, may newcomers have to wait for one that serves several of them.

Invariants (`check`):
- M1 A member's epoch is the one it was last told; it is at most the assignment's, and that at most the
  group's.
- M2 A member has shown that it knows an epoch that is not above the one it was told.
- M3 A member that was told the assignment's epoch was told its part of it (none, if it came later).
- M4 An assignment of the group's epoch is for exactly the members there are; each looks after partitions of
  topics that it subscribes to and that existed when the topics were last looked at.
- M5 In it each partition of a subscribed topic has two members, or its only subscriber; and each subscriber
  of a topic with partitions has a partition.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from postroad.errors import FencedMemberEpoch
from postroad.groups.answers import ShareDescription, ShareMemberDescription
from postroad.groups.assignors import Assignment, Subscriber
from postroad.groups.requests import (
    JOIN_EPOCH,
    Client,
    Partitions,
    ShareHeartbeat,
    TopicInfo,
    TopicPartition,
    Topics,
)
from postroad.groups.share_assignor import COPIES, spread

EMPTY: Final = "Empty"
STABLE: Final = "Stable"
ASSIGNOR: Final = "uniform"

# Finding an assignment takes some 6 µs for each member. A group that is larger than this rests after it for
# 16 times as long as it took, so that members that come in a flood can't hold up everybody else.
SMALL_GROUP: Final = 100
_MEMBERS_FOR_A_MS_OF_REST: Final = 10

_NOTHING: Final[Partitions] = frozenset()
_NOBODY: Final = Client()


@dataclass(slots=True)
class ShareMember:
    member_id: str
    subscribed_names: tuple[str, ...]  # in order, each once
    rack_id: str | None = None
    client: Client = _NOBODY
    epoch: int = 0  # that it was last told
    known_epoch: int = 0  # the last one that it has shown to know: an answer may have been lost since
    told: Partitions = _NOTHING  # its part of the assignment of `epoch`


class ShareGroup:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.members: dict[str, ShareMember] = {}
        self.epoch = 0
        self.target_epoch = 0
        self._targets: Assignment = {}
        self._topics: dict[str, TopicInfo] = {}  # those that someone subscribes to and that exist
        self._topics_version = -1
        self._rests_until_ms = 0

    # --- one heartbeat, in order: check, subscribe, assign, tell ---

    def check_epoch(self, member: ShareMember, epoch: int) -> None:
        """Until a member has shown that it knows the epoch it was told, it may come with the one before."""
        if epoch not in (JOIN_EPOCH, member.epoch, member.known_epoch):
            raise FencedMemberEpoch

    def subscribe(self, request: ShareHeartbeat) -> ShareMember:
        """Take up what the heartbeat says (all that counts, if it joins)."""
        member = self.members.get(request.member_id)
        names = None if request.subscribed_names is None else tuple(sorted(set(request.subscribed_names)))
        if member is None:
            member = self.members[request.member_id] = ShareMember(request.member_id, names or ())
            self._outdate()
        elif names is not None and names != member.subscribed_names:
            member.subscribed_names = names
            self._outdate()
            self._rests_until_ms = 0  # what it no longer subscribes to must not be in its next answer
        if request.rack_id is not None or request.epoch == JOIN_EPOCH:
            member.rack_id = request.rack_id
        member.client = request.client
        return member

    def assign(self, topics: Topics, now_ms: int) -> None:
        """Make the assignment fit the members and the topics that there are, unless the group rests."""
        up_to_date = self.epoch == self.target_epoch and topics.version == self._topics_version
        if up_to_date or now_ms < self._rests_until_ms:
            return
        found = {name: topics.by_name[name] for name in self.subscribed_names() if name in topics.by_name}
        if found != self._topics:
            self._outdate()
        self._topics, self._topics_version = found, topics.version
        if self.epoch > self.target_epoch:
            self._retarget()
            if len(self.members) > SMALL_GROUP:
                self._rests_until_ms = now_ms + len(self.members) // _MEMBERS_FOR_A_MS_OF_REST

    def tell(self, member: ShareMember, request: ShareHeartbeat) -> Partitions | None:
        """The member's part of the assignment; None if it knows it. It is told what it may have missed, and
        if it tells all itself."""
        target = self._targets.get(member.member_id, _NOTHING)
        knows_it = (
            target == member.told and request.epoch == member.epoch and request.subscribed_names is None
        )
        member.known_epoch = request.epoch
        member.epoch, member.told = self.target_epoch, target
        return None if knows_it else target

    def waits_ms(self, member: ShareMember, now_ms: int) -> int:
        """How soon a newcomer to a group that rests should ask again; 0 for everybody else."""
        return 0 if member.member_id in self._targets else max(self._rests_until_ms - now_ms, 1)

    def remove(self, member_id: str) -> None:
        del self.members[member_id]
        self._targets.pop(member_id, None)
        self._outdate()

    # --- who and what ---

    def subscribed_names(self) -> list[str]:
        """The topics that members subscribe to, in order, each once."""
        subscriptions = {member.subscribed_names for member in self.members.values()}  # most are alike
        return sorted({name for names in subscriptions for name in names})

    def describe(self) -> ShareDescription:
        members = tuple(
            ShareMemberDescription(
                member.member_id,
                member.rack_id,
                member.epoch,
                member.client.client_id,
                member.client.host,
                member.subscribed_names,
                member.told,
            )
            for member in self.members.values()
        )
        state = STABLE if members else EMPTY
        return ShareDescription(self.group_id, state, self.epoch, self.target_epoch, ASSIGNOR, members)

    # --- the assignment ---

    def _outdate(self) -> None:
        """The next heartbeat finds a new assignment; all changes until then are one."""
        self.epoch = self.target_epoch + 1

    def _retarget(self) -> None:
        subscribers = [
            Subscriber(member_id, None, self._topic_ids(member), self._targets.get(member_id, _NOTHING))
            for member_id, member in self.members.items()
        ]
        counts = {info.topic_id: info.partitions for info in self._topics.values()}
        self._targets = spread(subscribers, counts)
        self.target_epoch = self.epoch

    def _topic_ids(self, member: ShareMember) -> frozenset[bytes]:
        known = self._topics
        return frozenset(known[name].topic_id for name in member.subscribed_names if name in known)

    # --- invariants ---

    def check(self) -> None:
        assert self.target_epoch <= self.epoch, "M1"
        for member_id, member in self.members.items():
            assert member.member_id == member_id
            assert member.epoch <= self.target_epoch, "M1"
            assert member.known_epoch <= member.epoch, "M2"
            if member.epoch == self.target_epoch:
                assert member.told == self._targets.get(member_id, _NOTHING), "M3"
        if self.epoch == self.target_epoch:
            self._check_targets()

    def _check_targets(self) -> None:
        assert self._targets.keys() == self.members.keys(), "M4"
        readers: Counter[bytes] = Counter()
        holders: Counter[TopicPartition] = Counter()
        partitions = {info.topic_id: info.partitions for info in self._topics.values()}
        for member_id, member in self.members.items():
            target, topic_ids = self._targets[member_id], self._topic_ids(member)
            assert all(
                tp.topic_id in topic_ids and tp.partition < partitions[tp.topic_id] for tp in target
            ), "M4"
            assert target or not any(partitions[topic_id] for topic_id in topic_ids), "M5"
            readers.update(topic_ids)
            holders.update(target)
        for topic_id, count in partitions.items():
            for n in range(count):
                assert holders[TopicPartition(topic_id, n)] >= min(COPIES, readers[topic_id]), "M5"
