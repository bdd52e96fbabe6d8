"""`Groups`: every group of one partition of `__consumer_offsets`, and all that the broker calls.

The broker's part of the bargain:
- A method that returns an `Outcome` has decided, not done: its records are appended as one batch, applied
  with `apply` in the log's order when they are committed, and then its replies are answered (see
  `answers.py`).
- Calls of one group are kept apart as their docstrings say. *Alone*: no other undecided call of that group,
  neither alone nor shared (first come, first served). *Shared*: any number of shared calls at once. *Free*:
  at any time, answered at once.
- An ApiError that is raised is the answer to this request; nothing has changed.
- Recovery: `apply` every record from the start of the log, then `resume`. Until then nothing else is called.
- The timer: at `next_deadline` call `due`; for every group that it names call `expire` once, as one of the
  group's calls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, cast

from postroad.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InvalidGroupId,
    NonEmptyGroup,
    RebalanceInProgress,
    StaleMemberEpoch,
    UnknownMemberId,
)
from postroad.groups import (
    classic_members,
    describe,
    heartbeat,
    join,
    leave,
    migration,
    rebalance,
    records,
    sync,
)
from postroad.groups.answers import (
    ClassicDescription,
    Committed,
    ConsumerDescription,
    Deleted,
    Left,
    ListedGroup,
    OffsetsDeleted,
    Outcome,
)
from postroad.groups.classic import ClassicGroup, ClassicState
from postroad.groups.consumer import DEADLINES
from postroad.groups.deadlines import Deadlines
from postroad.groups.group import SWEEP, Group
from postroad.groups.offsets import OffsetKey
from postroad.groups.records import (
    ClassicValue,
    ConsumerValue,
    OffsetValue,
    PendingValue,
    Record,
)
from postroad.groups.requests import (
    JOIN_EPOCH,
    CommitRequest,
    HeartbeatRequest,
    JoinRequest,
    MemberIdentity,
    SyncRequest,
    Topics,
)
from postroad.groups.settings import GroupSettings
from postroad.groups.subscription import CONSUMER_PROTOCOL
from postroad.now import Now


class Fetched(NamedTuple):
    topic: str
    partition: int
    value: OffsetValue | None  # None: nothing was committed; answered as offset -1, no error


class Groups:
    def __init__(self, settings: GroupSettings, topics: Callable[[], Topics]) -> None:
        """`topics` says which topics there are now."""
        self.settings = settings
        self._topics = topics
        self._groups: dict[str, Group] = {}
        self._deadlines = Deadlines()

    # --- hard state ---

    def apply(self, record: Record) -> None:
        """A committed record, live or while the log is read."""
        decoded = records.decode(record)
        if decoded is None:
            return
        kind, group_id, rest, value = decoded
        group = self._ensure(group_id)
        if kind == records.OFFSET:
            topic, partition = cast(tuple[str, int], rest)
            group.offsets.apply(topic, partition, cast(OffsetValue | None, value))
            group.pending.overtaken(topic, partition)
        elif kind == records.PENDING:
            producer_id, topic, partition = cast(tuple[int, str, int], rest)
            group.pending.apply(producer_id, topic, partition, cast(PendingValue | None, value))
        elif kind == records.CLASSIC:
            group.apply_classic(cast(ClassicValue | None, value))
        elif kind == records.CONSUMER:
            group.apply_consumer(cast(ConsumerValue | None, value))
        else:
            group.ensure_consumer().apply(record)
        self._drop_if_gone(group)

    def resume(self, now: Now) -> None:
        """All records were applied: members go on as they were, with all of their session's time before
        them."""
        for group in self._groups.values():
            group.arm_sweep(now)
            if group.classic is not None:
                rebalance.resume(group.classic, now)
            if group.consumer is not None:
                heartbeat.resume(group.consumer, now)

    def parked(self) -> list[object]:
        """The tokens of all requests that wait here: when another coordinator takes over they are told."""
        return [
            token
            for group in self._groups.values()
            if group.classic is not None
            for member in group.classic.members.values()
            for token in (member.join_token, member.sync_token)
            if token is not None
        ]

    # --- time ---

    def next_deadline(self) -> int | None:
        """The next deadline on the monotonic clock, or None. Any call may bring it forward."""
        return self._deadlines.next()

    def due(self, now: Now) -> list[str]:
        """Groups in which a deadline has passed; `expire` must be called for each."""
        return self._deadlines.due(now.ms)

    def expire(self, group_id: str, now: Now) -> Outcome:
        """Alone. Silent members are removed, rebalances end, old offsets expire."""
        out = Outcome()
        keys = self._deadlines.take(group_id, now.ms)
        group = self._groups.get(group_id)
        if group is None or not keys:
            return out
        if group.consumer is not None:
            heartbeat.expire(
                group.consumer, [key for key in keys if key.what in DEADLINES], self._topics(), now, out
            )
        if group.classic is not None:
            leave.expire(group.classic, keys, now, out)
            group.replace_other(out, kind=records.CLASSIC)
        if any(key.what == SWEEP for key in keys):
            if out.records:  # it is simpler to look at a group that does not change just now
                group.timers.set(SWEEP, now.ms + self.settings.expiry_retry_ms)
            else:
                group.sweep(now, out)
        self._tidy(group)
        return out

    # --- the classic protocol ---

    def join(self, request: JoinRequest, new_member_id: str, token: object, now: Now) -> Outcome:
        """Alone. `new_member_id` is unique, for a member that brings none. Answered by Joined or
        MemberIdGiven, perhaps in the outcome of a later call."""
        _check_group_id(request.group_id)
        join.check_request(request, self.settings)
        if request.member_id and request.group_id not in self._groups:
            raise UnknownMemberId
        group = self._ensure(request.group_id)
        out = Outcome()
        consumer = group.with_consumers
        if consumer is not None:
            classic_members.join(consumer, request, new_member_id, self._topics(), token, now, out)
            return out
        try:
            join.join(group.ensure_classic(), request, new_member_id, token, now, out)
        finally:
            self._tidy(group)
        group.replace_other(out, kind=records.CLASSIC)
        group.arm_sweep(now)
        return out

    def sync(self, request: SyncRequest, token: object, now: Now) -> Outcome:
        """Alone. Answered by Synced, perhaps in the outcome of a later call."""
        _check_group_id(request.group_id)
        group = self._find_with_member(request.group_id)
        out = Outcome()
        consumer = group.with_consumers
        if consumer is not None:
            classic_members.sync(consumer, request, self._topics(), token, now, out)
            return out
        sync.sync(group.classic_of_member(), request, token, now, out)
        group.replace_other(out, kind=records.CLASSIC)
        return out

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, now: Now
    ) -> None:
        """Free. Returns if all is well; raises RebalanceInProgress when the member must join again."""
        _check_group_id(group_id)
        group = self._find_with_member(group_id)
        consumer = group.with_consumers
        if consumer is not None:
            classic_members.beat(consumer, member_id, instance_id, generation, now)
            return
        sync.heartbeat(group.classic_of_member(), member_id, instance_id, generation, now)

    def leave(self, group_id: str, who: Sequence[MemberIdentity], token: object, now: Now) -> Outcome:
        """Alone. Answered by Left."""
        _check_group_id(group_id)
        out = Outcome()
        try:
            group = self._find_with_member(group_id)
            consumer = group.with_consumers
            if consumer is not None:
                classic_members.leave(consumer, who, self._topics(), token, now, out)
                return out
            classic = group.classic_of_member()
        except UnknownMemberId as error:
            out.reply(token, Left(tuple(error for _ in who)))
            return out
        leave.leave(classic, who, token, now, out)
        group.replace_other(out, kind=records.CLASSIC)
        self._tidy(group)
        return out

    # --- KIP-848 ---

    def consumer_heartbeat(
        self, request: HeartbeatRequest, new_member_id: str, token: object, now: Now
    ) -> Outcome:
        """Alone. `new_member_id` is for a member that brings none. Answered by HeartbeatAnswer, at once."""
        heartbeat.check_request(request)
        group = self._groups.get(request.group_id)
        joining = request.epoch == JOIN_EPOCH
        if group is None or (group.consumer is None and not joining):
            if not joining:
                raise GroupIdNotFound
            group = Group(request.group_id, self.settings, self._deadlines)
        out = Outcome()
        topics = self._topics()
        classic = group.with_classics
        if classic is not None:
            epoch_min = group.consumer.epoch if group.consumer is not None else 0
            upgraded = migration.upgrade(classic, epoch_min, topics, now)
            out.records += upgraded.records
            heartbeat.heartbeat(upgraded.group, request, new_member_id, topics, token, now, out)
            migration.hand_over(classic, upgraded.group, now, out)
            return out
        consumer = group.stored_or_blank_consumer()
        heartbeat.heartbeat(consumer, request, new_member_id, topics, token, now, out)
        group.replace_other(out, kind=records.CONSUMER)
        group.arm_sweep(now)
        return out

    # --- offsets ---

    def commit(self, request: CommitRequest, token: object, now: Now) -> Outcome:
        """Shared. Answered by Committed."""
        group = self._groups.get(request.group_id)
        if group is None:
            if request.generation >= 0:
                raise IllegalGeneration
            group = Group(request.group_id, self.settings, self._deadlines)
        self._check_commit(group, request, now)
        out = Outcome()
        out.records, errors = group.offsets.commit(request, self.settings, now)
        out.reply(token, Committed(tuple(errors)))
        group.arm_sweep(now)
        return out

    def commit_in_transaction(
        self, request: CommitRequest, producer_id: int, epoch: int, token: object, now: Now
    ) -> Outcome:
        """Shared. The offsets count when `complete` says so. Answered by Committed."""
        group = self._groups.get(request.group_id)
        if group is None:
            if request.generation >= 0:
                raise IllegalGeneration
            group = Group(request.group_id, self.settings, self._deadlines)
        if request.member_id or request.generation >= 0:
            self._check_commit(group, request, now)
        out = Outcome(records=group.pending.commit(request, producer_id, epoch, now))
        out.reply(token, Committed(tuple(None for _ in request.offsets)))
        return out

    def complete(
        self,
        group_id: str,
        producer_id: int,
        epoch: int,
        commit: bool,
        token: object,
        *,
        strict: bool = False,
    ) -> Outcome:
        """Alone. The producer's transaction has ended: so are its offsets. Answered by Committed.

        `strict`: the epoch is above that of the offsets (KIP-890)."""
        group, out = self._groups.get(group_id), Outcome()
        if group is not None:
            out.records += group.pending.complete(producer_id, epoch, commit, strict)
        out.reply(token, Committed(()))
        return out

    def pending(self) -> dict[str, dict[int, int]]:
        """Free. By group: the producers whose transactions are to commit offsets there, with their epochs."""
        return {
            group_id: group.pending.producers() for group_id, group in self._groups.items() if group.pending
        }

    def unstable(self, group_id: str, offset_keys: Sequence[OffsetKey]) -> set[OffsetKey]:
        """Free. Those of the partitions of which a transaction that is open may commit an offset."""
        group = self._groups.get(group_id)
        if group is None or not group.pending:
            return set()
        return {offset_key for offset_key in offset_keys if group.pending.has(offset_key)}

    def fetch(
        self,
        group_id: str,
        offset_keys: Sequence[OffsetKey] | None,
        member_id: str | None = None,
        epoch: int = -1,
    ) -> list[Fetched]:
        """Free. What is committed for each partition, or for all that the group has (None). An unknown group
        has nothing. A KIP-848 member that says who it is must be current."""
        group = self._groups.get(group_id)
        if group is None:
            if member_id and epoch >= 0:
                raise UnknownMemberId
            return [Fetched(topic, partition, None) for topic, partition in offset_keys or ()]
        if group.is_consumer and (member_id or epoch >= 0):
            _check_member_epoch(group, member_id or "", epoch)
        wanted = group.offsets.offset_keys() if offset_keys is None else offset_keys
        return [Fetched(topic, partition, group.offsets.get(topic, partition)) for topic, partition in wanted]

    def delete_offsets(self, group_id: str, offset_keys: Sequence[OffsetKey], token: object) -> Outcome:
        """Alone. Answered by OffsetsDeleted."""
        group = self._groups.get(group_id)
        if group is None:
            raise GroupIdNotFound
        classic = group.classic
        if classic is not None and classic.members and classic.protocol_type != CONSUMER_PROTOCOL:
            raise NonEmptyGroup
        subscribed = {topic: group.subscribed(topic) for topic in {topic for topic, _ in offset_keys}}
        errors = tuple(GroupSubscribedToTopic() if subscribed[topic] else None for topic, _ in offset_keys)
        out = Outcome()
        out.records += group.offsets.delete(
            offset_key for offset_key in dict.fromkeys(offset_keys) if not subscribed[offset_key[0]]
        )
        out.reply(token, OffsetsDeleted(errors))
        return out

    def without_members(self, group_id: str) -> list[Record]:
        """While recovering, where records of the group are lost: its KIP-848 members join anew. A classic
        group is one record, which is there whole or not at all."""
        group = self._groups.get(group_id)
        if group is None or group.consumer is None:
            return []
        return migration.tombstones(group.consumer)

    def forget_topic(self, group_id: str, topic: str) -> Outcome:
        """Alone. The topic was deleted: so are its offsets, whoever is subscribed. No reply."""
        out = Outcome()
        group = self._groups.get(group_id)
        if group is not None:
            offset_keys = group.offsets.offset_keys()
            out.records += group.offsets.delete(
                offset_key for offset_key in offset_keys if offset_key[0] == topic
            )
            out.records += group.pending.delete(
                offset_key for offset_key in group.pending.offset_keys() if offset_key[0] == topic
            )
        return out

    def groups_with_offsets(self, topic: str) -> list[str]:
        """Free. Whom to call `forget_topic` for."""
        return [
            group_id
            for group_id, group in self._groups.items()
            if topic in group.offsets.topics() or topic in group.pending.topics()
        ]

    def topics_with_offsets(self) -> set[str]:
        """Free. After recovery, those that no longer exist are to be forgotten."""
        return {
            topic
            for group in self._groups.values()
            for topic in (*group.offsets.topics(), *group.pending.topics())
        }

    # --- administration ---

    def delete(self, group_id: str, token: object) -> Outcome:
        """Alone. Answered by Deleted."""
        group = self._groups.get(group_id)
        if group is None:
            raise GroupIdNotFound
        out = Outcome(records=group.delete())
        out.reply(token, Deleted())
        return out

    def exists(self, group_id: str) -> bool:
        """Free. Whether anything is known of the group: members, or offsets only."""
        return group_id in self._groups

    def list(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[ListedGroup]:
        """Free. Those in one of the states and of one of the types, in any case; empty: all."""
        return describe.listed(self._groups.values(), states, types)

    def describe_classic(self, group_id: str) -> ClassicDescription:
        """Free. DescribeGroups; Dead if there is no such classic group."""
        return describe.classic(group_id, self._groups.get(group_id))

    def describe_consumer(self, group_id: str) -> ConsumerDescription:
        """Free. ConsumerGroupDescribe; raises GroupIdNotFound if there is no such KIP-848 group."""
        group = self._groups.get(group_id)
        if group is None or group.consumer is None or not group.is_consumer:
            raise GroupIdNotFound("There is no group of this id with group.protocol=consumer.")
        return describe.consumer(group.consumer)

    def check(self) -> None:
        """Assert every invariant of every group."""
        for group_id, group in self._groups.items():
            assert group.group_id == group_id
            assert not group.is_gone
            group.check()

    # --- helpers ---

    def _ensure(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = Group(group_id, self.settings, self._deadlines)
        return group

    def _find_with_member(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            raise UnknownMemberId
        return group

    def _tidy(self, group: Group) -> None:
        group.drop_idle_classic()
        self._drop_if_gone(group)

    def _drop_if_gone(self, group: Group) -> None:
        if group.is_gone:
            self._groups.pop(group.group_id, None)

    def _check_commit(self, group: Group, request: CommitRequest, now: Now) -> None:
        outside = request.generation < 0
        if outside and not group.has_members:
            return
        if group.is_consumer:
            _check_member_epoch(group, request.member_id, request.generation)
        elif group.classic is None:
            raise IllegalGeneration
        else:
            _check_generation(group.classic, request, now)


def _check_group_id(group_id: str) -> None:
    """Members need a name to meet under. Offsets may be kept under an empty one, as old clients do."""
    if not group_id:
        raise InvalidGroupId


def _check_member_epoch(group: Group, member_id: str, epoch: int) -> None:
    assert group.consumer is not None
    member = group.consumer.members.get(member_id)
    if member is None:
        raise UnknownMemberId
    if group.consumer.current(member_id).epoch != epoch:
        raise StaleMemberEpoch if member.classic is None else IllegalGeneration


def _check_generation(classic: ClassicGroup, request: CommitRequest, now: Now) -> None:
    """A commit is a sign of life. While the leader assigns, partitions may be changing hands: commit again
    after that."""
    member = classic.find_member(request.member_id, request.instance_id)
    if request.generation != classic.generation:
        raise IllegalGeneration
    if classic.state is ClassicState.COMPLETING:
        raise RebalanceInProgress
    classic.keep_alive(member, now.ms)
