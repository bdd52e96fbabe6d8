"""How a classic group gets from one generation to the next. Soft, but for the step to an empty group."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from postroad.errors import ApiError, RebalanceInProgress, UnknownMemberId
from postroad.groups import records
from postroad.groups.answers import Joined, JoinedMember, Outcome
from postroad.groups.classic import JOIN, SESSION, SYNC, ClassicGroup, ClassicMember, ClassicState, Opening
from postroad.groups.records import ClassicMemberValue, ClassicValue
from postroad.now import Now


def prepare(group: ClassicGroup, now: Now, out: Outcome) -> None:
    """Ask all members to join again; no change if that is under way already."""
    if group.state is ClassicState.PREPARING:
        return
    was_empty = group.state is ClassicState.EMPTY
    for member in group.members.values():
        answer_waiting(group, member, RebalanceInProgress(), out)
    group.unsynced.clear()
    group.timers.cancel(SYNC)
    group.state = ClassicState.PREPARING
    if was_empty and _first_delay_ms(group) > 0:
        _open(group, now)
    else:
        group.timers.set(JOIN, now.ms + group.rebalance_timeout_ms)


def _first_delay_ms(group: ClassicGroup) -> int:
    """How long to wait for the next newcomer: a moment for a lone member, longer for one of several."""
    settings = group.settings
    if len(group.members) + len(group.pending) > 1:
        return settings.initial_rebalance_delay_ms
    return min(settings.initial_rebalance_delay_alone_ms, settings.initial_rebalance_delay_ms)


def _open(group: ClassicGroup, now: Now) -> None:
    settings = group.settings
    longest_ms = max(settings.initial_rebalance_delay_ms, settings.initial_rebalance_delay_max_ms)
    group.opening = Opening(now.ms + min(longest_ms, group.rebalance_timeout_ms))
    prolong_opening(group, now)


def prolong_opening(group: ClassicGroup, now: Now) -> None:
    """A newcomer was seen: wait for others that may have started with it. No change in a later rebalance."""
    if group.opening is not None:
        group.timers.set(JOIN, min(now.ms + _first_delay_ms(group), group.opening.ends_ms))


def resume(group: ClassicGroup, now: Now) -> None:
    """After the records were read: every member has its full time again, and a rebalance that was due is."""
    for member in group.members.values():
        group.keep_alive(member, now.ms)
    if group.state is ClassicState.PREPARING:
        group.timers.set(JOIN, now.ms + group.rebalance_timeout_ms)


def complete_if_all_joined(group: ClassicGroup, now: Now, out: Outcome) -> None:
    all_joined = group.waiting_joins == len(group.members) and not group.pending
    if group.state is ClassicState.PREPARING and group.opening is None and all_joined:
        _complete(group, now, out)


def join_time_is_up(group: ClassicGroup, now: Now, out: Outcome) -> None:
    """Go on with those who have joined. Static members may come later: their session decides, not the
    rebalance."""
    group.opening = None
    absent = {
        member_id
        for member_id, member in group.members.items()
        if member.join_token is None and member.value.instance_id is None
    }
    if len(absent) == len(group.members):
        remove(group, absent, now, out)
        return
    for member_id in absent:
        group.remove_member(member_id)
    if group.waiting_joins:
        _complete(group, now, out)
    else:
        group.timers.set(JOIN, now.ms + group.rebalance_timeout_ms)


def remove(group: ClassicGroup, member_ids: Collection[str], now: Now, out: Outcome) -> None:
    """Take members out. If nobody remains of a stored group, that is a record, and they stay until it is
    applied."""
    for member_id in member_ids:
        answer_waiting(group, group.members[member_id], UnknownMemberId(), out)
    if len(member_ids) == len(group.members):
        _empty(group, member_ids, now, out)
        return
    for member_id in member_ids:
        group.remove_member(member_id)
    prepare(group, now, out)
    complete_if_all_joined(group, now, out)


def _empty(group: ClassicGroup, member_ids: Iterable[str], now: Now, out: Outcome) -> None:
    if group.stored is None:
        group.clear()
        return
    for member_id in member_ids:
        group.timers.set(SESSION, now.ms + group.settings.expiry_retry_ms, member_id)
    if group.state is ClassicState.PREPARING:
        group.timers.set(JOIN, now.ms + group.settings.expiry_retry_ms)
    value = ClassicValue(group.generation + 1, now.wall_ms, protocol_type=group.protocol_type)
    out.records.append(records.encode(records.CLASSIC, group.group_id, value=value))


def _complete(group: ClassicGroup, now: Now, out: Outcome) -> None:
    """The next generation: everyone who waits learns of it, and the leader gets the list to assign from."""
    group.generation += 1
    group.protocol = group.choose_protocol()
    if group.leader not in group.members or group.members[group.leader].join_token is None:
        group.leader = next(i for i, member in group.members.items() if member.join_token is not None)
    group.state = ClassicState.COMPLETING
    group.timers.cancel(JOIN)
    group.unsynced = set(group.members)
    for member in group.members.values():
        member.is_new = False
        answer_waiting(group, member, None, out)
        group.keep_alive(member, now.ms)
    group.timers.set(SYNC, now.ms + group.rebalance_timeout_ms)


def answer_waiting(group: ClassicGroup, member: ClassicMember, error: ApiError | None, out: Outcome) -> None:
    """Answer what a member has waiting: with the error, or its join with the generation that has begun."""
    if member.join_token is not None:
        out.reply(member.join_token, joined(group, member) if error is None else error)
        member.join_token = None
        group.waiting_joins -= 1
    if member.sync_token is not None:
        assert error is not None, "C2: a sync does not wait while members join"
        out.reply(member.sync_token, error)
        member.sync_token = None


def joined(group: ClassicGroup, member: ClassicMember) -> Joined:
    member_id = member.value.member_id
    listed = joined_members(group) if member_id == group.leader else ()
    return Joined(
        member_id, group.generation, group.protocol_type, group.protocol, group.leader, members=listed
    )


def joined_members(group: ClassicGroup) -> tuple[JoinedMember, ...]:
    return tuple(
        JoinedMember(member_id, member.value.instance_id, member.metadata(group.protocol))
        for member_id, member in group.members.items()
    )


def stored_generation(
    group: ClassicGroup, members: Iterable[ClassicMemberValue], leader: str, now: Now
) -> records.Record:
    value = ClassicValue(
        group.generation, now.wall_ms, group.protocol_type, group.protocol, leader, tuple(members)
    )
    return records.encode(records.CLASSIC, group.group_id, value=value)
