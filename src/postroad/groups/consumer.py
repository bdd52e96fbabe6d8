"""A KIP-848 group: what is stored of it, and a draft in which a decision is worked out.

Three epochs move it. The group's rises when a member comes, goes or changes its subscription, or when a
subscribed topic changes. The target's follows when the assignor has run for it. Each member's follows when
it has given up what it must (`reconcile.py`). All of this is hard state, and changes by `apply` alone; a
heartbeat works on a `Draft`, whose records are the difference.

Invariants, asserted by `check`:
K1  a partition is held by at most one member (L14);
K2  member epoch ≤ target epoch ≤ group epoch (a static member that is away has -2);
K3  what a member owns at the target's epoch lies within its target;
K4  members alone have targets and currents, and an instance id belongs to one member;
K5  every member has a session deadline, and one that must give up partitions has a deadline for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, cast

from postroad.groups import records
from postroad.groups.assignors import DEFAULT_ASSIGNOR
from postroad.groups.deadlines import Timers
from postroad.groups.reconcile import NEWCOMER, NOTHING, Current, MemberState
from postroad.groups.records import ConsumerValue, CurrentValue, MemberValue, PartitionsValue, Record
from postroad.groups.regex import matcher
from postroad.groups.requests import Partitions, TopicPartition
from postroad.groups.settings import GroupSettings

CONSUMER_SESSION: Final = "consumer session"  # what a deadline is for: a member goes silent
REVOCATION: Final = "revocation"  # … a member does not give up what it must
CLASSIC_STEP: Final = "classic step"  # … a member of the classic protocol does not join or sync as it must
DEADLINES: Final = (CONSUMER_SESSION, REVOCATION, CLASSIC_STEP)


class ConsumerGroup:
    """Kept in three dicts, as it is stored: compaction may bring a member's target before its
    subscription."""

    def __init__(self, group_id: str, settings: GroupSettings, timers: Timers) -> None:
        self.group_id = group_id
        self.settings = settings
        self.timers = timers
        self.epoch = 0
        self.target_epoch = 0
        self.topics_digest = ""
        self.changed_ms = 0
        self.members: dict[str, MemberValue] = {}
        self.targets: dict[str, Partitions] = {}
        self.currents: dict[str, Current] = {}
        self.by_instance: dict[str, str] = {}
        self.holder: dict[TopicPartition, str] = {}
        # Soft: the topics' version for which the digest is known to hold.
        self.seen_topics_version = -1

    # --- apply ---

    def apply(self, record: Record) -> None:
        """A record of this group or of one of its members, but not the group's own tombstone."""
        decoded = records.decode(record)
        assert decoded is not None
        kind, _, rest, value = decoded
        if kind == records.CONSUMER:
            self.apply_group(cast(ConsumerValue, value))
        elif kind == records.MEMBER:
            self.apply_member(str(rest[0]), cast(MemberValue | None, value))
        elif kind == records.TARGET:
            self.apply_target(str(rest[0]), cast(PartitionsValue | None, value))
        else:
            self.apply_current(str(rest[0]), cast(CurrentValue | None, value))

    def apply_group(self, value: ConsumerValue) -> None:
        self.epoch, self.target_epoch = value.epoch, value.target_epoch
        self.topics_digest, self.changed_ms = value.topics, value.changed_ms

    def apply_member(self, member_id: str, value: MemberValue | None) -> None:
        former = self.members.pop(member_id, None)
        if former is not None and self.by_instance.get(former.instance_id or "") == member_id:
            del self.by_instance[former.instance_id or ""]
        if value is None:
            for what in DEADLINES:
                self.timers.cancel(what, member_id)
            return
        self.members[member_id] = value
        if value.instance_id is not None:
            self.by_instance[value.instance_id] = member_id

    def apply_target(self, member_id: str, value: PartitionsValue | None) -> None:
        self.targets.pop(member_id, None)
        if value is not None:
            self.targets[member_id] = records.unpack(value.partitions)

    def apply_current(self, member_id: str, value: CurrentValue | None) -> None:
        former = self.currents.pop(member_id, None)
        for tp in former.holds if former is not None else NOTHING:
            if self.holder.get(tp) == member_id:
                del self.holder[tp]
        if value is None:
            return
        assigned, revoking = records.unpack(value.assigned), records.unpack(value.revoking)
        current = Current(value.epoch, value.previous_epoch, MemberState(value.state), assigned, revoking)
        self.currents[member_id] = current
        if current.state is not MemberState.UNREVOKED:
            self.timers.cancel(REVOCATION, member_id)
        self.holder.update(dict.fromkeys(current.holds, member_id))

    # --- questions ---

    @property
    def state(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(self._has_its_target(member_id) for member_id in self.members):
            return "Stable"
        return "Reconciling"

    @property
    def assignor(self) -> str:
        return preferred_assignor(self.members.values())

    def subscribed(self, topic: str) -> bool:
        return any(
            topic in value.subscribed_names
            or (value.subscribed_regex and matcher(value.subscribed_regex).matches(topic))
            for value in self.members.values()
        )

    def current(self, member_id: str) -> Current:
        return self.currents.get(member_id, NEWCOMER)

    def session_timeout_ms(self, value: MemberValue) -> int:
        """The server sets it, but for members of the classic protocol."""
        if value.classic is not None:
            return value.classic.session_timeout_ms
        return self.settings.consumer_session_timeout_ms

    def _has_its_target(self, member_id: str) -> bool:
        current = self.current(member_id)
        return current.state is MemberState.STABLE and current.epoch == self.target_epoch

    def check(self) -> None:
        held: Counter[TopicPartition] = Counter()
        for member_id, current in self.currents.items():
            held.update(current.holds)
            assert not current.assigned & current.revoking, "K1"
            assert current.epoch <= self.target_epoch <= self.epoch, "K2"
            if current.epoch == self.target_epoch and current.state is not MemberState.UNREVOKED:
                assert current.assigned <= self.targets.get(member_id, NOTHING), "K3"
        assert all(count == 1 for count in held.values()), "K1"
        assert held.keys() == self.holder.keys(), "K1"
        assert self.currents.keys() <= self.members.keys(), "K4"
        assert self.targets.keys() <= self.members.keys(), "K4"
        instances = {v.instance_id: i for i, v in self.members.items() if v.instance_id is not None}
        assert instances == self.by_instance, "K4"
        for member_id in self.members:
            assert self.timers.get(CONSUMER_SESSION, member_id) is not None, "K5"
            if self.current(member_id).state is MemberState.UNREVOKED:
                assert self.timers.get(REVOCATION, member_id) is not None, "K5"


def preferred_assignor(members: Iterable[MemberValue]) -> str:
    """The assignor that most members ask for, or the default where none asks."""
    votes = Counter(value.assignor for value in members if value.assignor is not None)
    return min(votes, key=lambda name: (-votes[name], name), default=DEFAULT_ASSIGNOR)


class Draft:
    """A group as it would be: reads fall through to the stored group, writes stay here and become records."""

    def __init__(self, group: ConsumerGroup) -> None:
        self.group = group
        self.epoch = group.epoch
        self.target_epoch = group.target_epoch
        self.topics_digest = group.topics_digest
        self._members: dict[str, MemberValue] = {}
        self._targets: dict[str, Partitions] = {}
        self._currents: dict[str, Current] = {}
        self._removed: dict[str, None] = {}

    def members(self) -> dict[str, MemberValue]:
        """All members, in the order of joining."""
        merged = {**self.group.members, **self._members}
        for member_id in self._removed:
            merged.pop(member_id, None)
        return merged

    def member(self, member_id: str) -> MemberValue | None:
        if member_id in self._removed:
            return None
        return self._members.get(member_id) or self.group.members.get(member_id)

    def target(self, member_id: str) -> Partitions:
        found = self._targets.get(member_id)
        return self.group.targets.get(member_id, NOTHING) if found is None else found

    def current(self, member_id: str) -> Current:
        return self._currents.get(member_id) or self.group.current(member_id)

    def is_free_for(self, member_id: str, tp: TopicPartition) -> bool:
        """Nobody else holds it, but for members that this draft removes."""
        holder = self.group.holder.get(tp, member_id)
        return holder == member_id or holder in self._removed

    def put_member(self, member_id: str, value: MemberValue) -> None:
        if self.member(member_id) != value:
            self._members[member_id] = value

    def put_target(self, member_id: str, target: Partitions) -> None:
        if self.target(member_id) != target or member_id not in self.group.targets:
            self._targets[member_id] = target

    def put_current(self, member_id: str, current: Current) -> None:
        if self.current(member_id) != current or member_id not in self.group.currents:
            self._currents[member_id] = current

    def remove(self, member_id: str) -> None:
        self._members.pop(member_id, None)
        self._targets.pop(member_id, None)
        self._currents.pop(member_id, None)
        self._removed[member_id] = None

    def records(self, wall_ms: int) -> list[Record]:
        """What must be stored, removals first: a partition is never seen in two hands while they are
        applied."""
        group_id = self.group.group_id
        out: list[Record] = []
        for member_id in self._removed:
            out += [
                records.encode(kind, group_id, member_id, value=None)
                for kind in (records.CURRENT, records.TARGET, records.MEMBER)
            ]
        if self._group_changed():
            value = ConsumerValue(self.epoch, self.target_epoch, wall_ms, self.topics_digest)
            out.append(records.encode(records.CONSUMER, group_id, value=value))
        for member_id, member in self._members.items():
            out.append(records.encode(records.MEMBER, group_id, member_id, value=member))
        for member_id, target in self._targets.items():
            out.append(records.encode(records.TARGET, group_id, member_id, value=_stored_target(target)))
        for member_id, current in self._currents.items():
            out.append(records.encode(records.CURRENT, group_id, member_id, value=_stored_current(current)))
        return out

    def _group_changed(self) -> bool:
        group = self.group
        stored = (group.epoch, group.target_epoch, group.topics_digest)
        return (self.epoch, self.target_epoch, self.topics_digest) != stored


def _stored_target(target: Partitions) -> PartitionsValue:
    return PartitionsValue(records.pack(target))


def _stored_current(current: Current) -> CurrentValue:
    return CurrentValue(
        current.epoch,
        current.previous_epoch,
        str(current.state),
        records.pack(current.assigned),
        records.pack(current.revoking),
    )
