"""A group with members changes its protocol (KIP-848): classic to consumer, and back.

Up: a KIP-848 member joins a classic group. The group becomes a KIP-848 group whose epoch is the classic
generation. Its classic members go on with JoinGroup, SyncGroup and Heartbeat (`classic_members.py`) and own
what they were last assigned, so nothing of it is given to others before they have given it up (L14).

Down: the last KIP-848 member leaves or goes silent, and classic members remain. They become a classic group
whose generation is the epoch. It has no leader, which says that a rebalance is due, also after a restart.

Either way is one batch of records: the old group's tombstones, then the new group.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from postroad.errors import GroupIdNotFound, RebalanceInProgress
from postroad.groups import assignment, rebalance, records
from postroad.groups.answers import Outcome
from postroad.groups.assignment import Malformed
from postroad.groups.classic import JOIN, SESSION, ClassicGroup, ClassicMember
from postroad.groups.consumer import CONSUMER_SESSION, ConsumerGroup, Draft
from postroad.groups.reconcile import Current, MemberState
from postroad.groups.records import ClassicMemberValue, ClassicSide, ClassicValue, MemberValue, Record
from postroad.groups.requests import Partitions, TopicPartition, Topics
from postroad.groups.subscription import CONSUMER_PROTOCOL, read_subscription
from postroad.now import Now


class Upgraded(NamedTuple):
    """A classic group as a KIP-848 group, and the records that make it one."""

    group: ConsumerGroup
    records: list[Record]


# --- classic to KIP-848 ---


def upgrade(classic: ClassicGroup, epoch_min: int, topics: Topics, now: Now) -> Upgraded:
    """Changes nothing yet. `epoch_min`: that of an empty KIP-848 group which the classic one has not yet
    replaced. Raises GroupIdNotFound where the group has to stay classic."""
    _check_upgrade(classic)
    group = ConsumerGroup(classic.group_id, classic.settings, classic.timers)
    draft = Draft(group)
    draft.epoch = draft.target_epoch = max(classic.generation, epoch_min)
    taken: set[TopicPartition] = set()
    for member_id, member in classic.members.items():
        # Classic members may agree to share a partition. Only the first one keeps it.
        owned = _assigned(member, topics) - taken
        taken |= owned
        draft.put_member(member_id, _as_consumer(classic, member))
        draft.put_target(member_id, owned)
        generation = classic.generation
        draft.put_current(member_id, Current(generation, generation, MemberState.STABLE, owned, frozenset()))
    made = draft.records(now.wall_ms)
    for record in made:
        group.apply(record)
    return Upgraded(group, [records.encode(records.CLASSIC, classic.group_id, value=None), *made])


def hand_over(classic: ClassicGroup, group: ConsumerGroup, now: Now, out: Outcome) -> None:
    """The upgrade has been decided: classic members that wait are to join again."""
    for member_id, member in classic.members.items():
        rebalance.answer_waiting(classic, member, RebalanceInProgress(), out)
        timeout_ms = group.session_timeout_ms(group.members[member_id])
        group.timers.set(CONSUMER_SESSION, now.ms + timeout_ms, member_id)


def _check_upgrade(classic: ClassicGroup) -> None:
    settings = classic.settings
    if not settings.migration.allows_upgrade:
        raise GroupIdNotFound("The group's members use the classic protocol: stop them first.")
    if classic.members and classic.protocol_type != CONSUMER_PROTOCOL:
        raise GroupIdNotFound("The group's members use the classic protocol, and are no consumers.")
    if len(classic.members) > settings.consumer_group_size_max:
        raise GroupIdNotFound("The group has too many members to change its protocol.")


def _assigned(member: ClassicMember, topics: Topics) -> Partitions:
    try:
        return assignment.by_id(assignment.decode(member.value.assignment), topics)
    except Malformed:
        raise GroupIdNotFound("An assignment of the classic group can't be read.") from None


def _as_consumer(classic: ClassicGroup, member: ClassicMember) -> MemberValue:
    value = member.value
    metadata = member.metadata(classic.protocol) or value.protocols[0][1]
    try:
        subscribed = read_subscription(metadata).topics
    except Malformed:
        raise GroupIdNotFound("A subscription of the classic group can't be read.") from None
    return MemberValue(
        value.rebalance_timeout_ms,
        tuple(sorted(subscribed)),
        instance_id=value.instance_id,
        client_id=value.client_id,
        client_host=value.client_host,
        classic=ClassicSide(value.session_timeout_ms, value.protocols),
    )


# --- members leave, and perhaps KIP-848 to classic ---


def remove_members(draft: Draft, member_ids: Collection[str], topics: Topics, now: Now) -> list[Record]:
    """The group without these members: a classic one, if only members of that protocol remain."""
    remaining = len(draft.members().keys() - member_ids)
    if remaining and may_downgrade(draft, member_ids):
        return downgrade(draft, member_ids, topics, now)
    for member_id in member_ids:
        draft.remove(member_id)
    draft.epoch += 1
    return draft.records(now.wall_ms)


def may_downgrade(draft: Draft, leaving: Collection[str]) -> bool:
    """Do all who remain speak the classic protocol, and may the group follow them?"""
    settings = draft.group.settings
    staying = [value for member_id, value in draft.members().items() if member_id not in leaving]
    return (
        settings.migration.allows_downgrade
        and all(value.classic is not None for value in staying)
        and len(staying) <= settings.group_size_max
    )


def downgrade(draft: Draft, leaving: Collection[str], topics: Topics, now: Now) -> list[Record]:
    group = draft.group
    members = [
        _as_classic(draft, member_id, value, topics)
        for member_id, value in group.members.items()
        if member_id not in leaving
    ]
    _arm_classic(group, members, now)
    value = ClassicValue(group.epoch, now.wall_ms, CONSUMER_PROTOCOL, members=tuple(members))
    return [*tombstones(group), records.encode(records.CLASSIC, group.group_id, value=value)]


def _as_classic(draft: Draft, member_id: str, value: MemberValue, topics: Topics) -> ClassicMemberValue:
    assert value.classic is not None
    version = read_subscription(value.classic.protocols[0][1]).version
    held = assignment.by_name(draft.current(member_id).holds, topics)
    return ClassicMemberValue(
        member_id,
        value.classic.session_timeout_ms,
        value.rebalance_timeout_ms,
        value.classic.protocols,
        assignment.encode(held, version),
        value.instance_id,
        value.client_id,
        value.client_host,
    )


def _arm_classic(group: ConsumerGroup, members: Collection[ClassicMemberValue], now: Now) -> None:
    timeouts = [group.settings.expiry_retry_ms]  # the records must be committed before the first deadline
    for member in members:
        group.timers.set(SESSION, now.ms + member.session_timeout_ms, member.member_id)
        timeouts.append(member.rebalance_timeout_ms)
    if members:
        group.timers.set(JOIN, now.ms + max(timeouts))


def tombstones(group: ConsumerGroup) -> list[Record]:
    """Members before the group: a record of a member would make the group again."""
    of_members = [
        records.encode(kind, group.group_id, member_id, value=None)
        for member_id in group.members
        for kind in (records.CURRENT, records.TARGET, records.MEMBER)
    ]
    return [*of_members, records.encode(records.CONSUMER, group.group_id, value=None)]
