"""ConsumerGroupHeartbeat (KIP-848): joining, living in and leaving a group, all in one request.

A heartbeat is worked out on a draft in five steps: find the member, take up its subscription, raise the
group's epoch if anything changed, compute a new target if the epoch is ahead of it, and move the member one
step towards its target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupMaxSizeReached,
    InvalidRequest,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)
from postroad.groups.answers import HeartbeatAnswer, Outcome
from postroad.groups.assignors import ASSIGNORS
from postroad.groups.consumer import CONSUMER_SESSION, REVOCATION, ConsumerGroup, Draft
from postroad.groups.deadlines import Key
from postroad.groups.migration import remove_members
from postroad.groups.reconcile import NEWCOMER, NOTHING, Current, MemberState, reconcile
from postroad.groups.records import MemberValue, Record
from postroad.groups.regex import matcher
from postroad.groups.requests import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    HeartbeatRequest,
    Partitions,
    Topics,
)
from postroad.groups.target import retarget, subscribed_digest
from postroad.now import Now

NOT_SAID: Final = -1  # the rebalance timeout is as in the last heartbeat
NO_HEARTBEAT_MS: Final = 0  # a member that leaves is not asked for another heartbeat


def check_request(request: HeartbeatRequest) -> None:
    """Refuse what is wrong whatever the group is like. Raises an ApiError."""
    if not request.group_id:
        raise InvalidRequest("The group id is empty.")
    if request.instance_id == "" or request.rack_id == "":
        raise InvalidRequest("The instance id and the rack id are null or not empty.")
    if request.epoch < STATIC_LEAVE_EPOCH:
        raise InvalidRequest("The member epoch is less than -2.")
    if request.epoch != JOIN_EPOCH and not request.member_id:
        raise InvalidRequest("The member id is empty.")
    if request.epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise InvalidRequest("Only a member with an instance id can leave with epoch -2.")
    if request.assignor is not None and request.assignor not in ASSIGNORS:
        raise UnsupportedAssignor
    if request.subscribed_regex:
        matcher(request.subscribed_regex)
    if request.epoch == JOIN_EPOCH:
        _check_join(request)


def _check_join(request: HeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == NOT_SAID:
        raise InvalidRequest("A member that joins must give its rebalance timeout.")
    if request.owned is None or request.owned:
        raise InvalidRequest("A member that joins must own no partitions, and say so.")
    if request.subscribed_names is None and request.subscribed_regex is None:
        raise InvalidRequest("A member that joins must say what it subscribes to.")


def heartbeat(
    group: ConsumerGroup,
    request: HeartbeatRequest,
    new_id: str,
    topics: Topics,
    token: object,
    now: Now,
    out: Outcome,
) -> None:
    """Raises an ApiError, with nothing changed, if the request is refused."""
    draft = Draft(group)
    if request.epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        out.records += _leave(draft, request, topics, now)
        out.reply(token, HeartbeatAnswer(request.member_id, request.epoch, NO_HEARTBEAT_MS))
        return
    member_id, before = _find_or_join(draft, request, new_id)
    changed = _subscribe(draft, member_id, request)
    current = advance(draft, member_id, before, request.owned, changed, topics, now)
    out.records += draft.records(now.wall_ms)
    out.reply(token, _answer(group, member_id, request, before, current))


def advance(
    draft: Draft,
    member_id: str,
    before: Current | None,
    owned: Partitions | None,
    changed: bool,
    topics: Topics,
    now: Now,
) -> Current:
    """The last three steps, for members of either protocol. `changed`: a new target must be found."""
    _raise_epoch(draft, topics, changed)
    if draft.epoch > draft.target_epoch:
        retarget(draft, topics)
    current = reconcile(
        draft.current(member_id),
        draft.target_epoch,
        draft.target(member_id),
        owned,
        lambda tp: draft.is_free_for(member_id, tp),
    )
    draft.put_current(member_id, current)
    _arm(draft, member_id, before, current, now)
    return current


def expire(group: ConsumerGroup, keys: Sequence[Key], topics: Topics, now: Now, out: Outcome) -> None:
    """Remove members that went silent, or did not give up or join in time. The next heartbeat finds a new
    target."""
    over = [key for key in keys if key.member_id in group.members and _is_over(group, key)]
    if not over:
        return
    for key in over:  # until the removal is applied
        group.timers.set(key.what, now.ms + group.settings.expiry_retry_ms, key.member_id)
    out.records += remove_members(Draft(group), [*dict.fromkeys(key.member_id for key in over)], topics, now)


def resume(group: ConsumerGroup, now: Now) -> None:
    """After the records were read: every member has its full time again."""
    for member_id, member in group.members.items():
        group.timers.set(CONSUMER_SESSION, now.ms + group.session_timeout_ms(member), member_id)
        if group.current(member_id).state is MemberState.UNREVOKED:
            group.timers.set(REVOCATION, now.ms + member.rebalance_timeout_ms, member_id)


# --- finding the member ---


def _find_or_join(draft: Draft, request: HeartbeatRequest, new_id: str) -> tuple[str, Current | None]:
    """The member's id, and what it owned before this heartbeat (None: it has just joined)."""
    joining = request.epoch == JOIN_EPOCH
    if request.instance_id is not None:
        holder = draft.group.by_instance.get(request.instance_id)
        if holder is not None and holder != request.member_id:
            if not joining:
                raise FencedInstanceId
            _check_released(draft, holder)
            member_id = request.member_id or new_id
            take_over(draft, holder, member_id)
            return member_id, None
        if holder is None and not joining:
            raise UnknownMemberId
    member_id = request.member_id or new_id
    if draft.member(member_id) is not None:
        current = draft.current(member_id)
        if not joining:
            _check_epoch(request, current)
        return member_id, current
    if not joining:
        raise UnknownMemberId
    if len(draft.group.members) >= draft.group.settings.consumer_group_size_max:
        raise GroupMaxSizeReached
    return member_id, None


def _check_released(draft: Draft, former_id: str) -> None:
    """A KIP-848 member has to leave before its instance id is used again. A classic one says no such word."""
    former = draft.member(former_id)
    assert former is not None
    if former.classic is None and draft.current(former_id).epoch != STATIC_LEAVE_EPOCH:
        raise UnreleasedInstanceId


def take_over(draft: Draft, former_id: str, member_id: str) -> None:
    """A static member is back under another id, and has what its former self had."""
    former, current, target = draft.member(former_id), draft.current(former_id), draft.target(former_id)
    assert former is not None
    draft.remove(former_id)
    draft.put_member(member_id, former)
    draft.put_target(member_id, target)
    draft.put_current(member_id, NEWCOMER._replace(assigned=current.assigned))


def _check_epoch(request: HeartbeatRequest, current: Current) -> None:
    """The epoch before the last one is allowed where the last answer may have been lost."""
    if request.epoch == current.epoch:
        return
    lost_answer = request.epoch == current.previous_epoch and request.owned is not None
    if not lost_answer or not (request.owned or NOTHING) <= current.assigned:
        raise FencedMemberEpoch


# --- what changes ---


def _subscribe(draft: Draft, member_id: str, request: HeartbeatRequest) -> bool:
    """Take up what the heartbeat says (all that counts, if it joins); True if a new target must be found
    for it."""
    former = draft.member(member_id)
    value = former
    if value is None or request.epoch == JOIN_EPOCH:
        value = MemberValue(0, instance_id=request.instance_id)
    if request.rebalance_timeout_ms != NOT_SAID:
        timeout_ms = max(request.rebalance_timeout_ms, 0)
        value = msgspec.structs.replace(value, rebalance_timeout_ms=timeout_ms)
    if request.subscribed_names is not None:
        names = tuple(sorted(set(request.subscribed_names)))
        value = msgspec.structs.replace(value, subscribed_names=names)
    if request.subscribed_regex is not None:
        value = msgspec.structs.replace(value, subscribed_regex=request.subscribed_regex or None)
    if request.assignor is not None:
        value = msgspec.structs.replace(value, assignor=request.assignor)
    if request.rack_id is not None:
        value = msgspec.structs.replace(value, rack_id=request.rack_id)
    client_id, host = request.client
    value = msgspec.structs.replace(value, client_id=client_id, client_host=host, classic=None)
    draft.put_member(member_id, value)
    return former is None or wants(former) != wants(value)


def wants(value: MemberValue) -> tuple[tuple[str, ...], str | None, str | None]:
    return value.subscribed_names, value.subscribed_regex, value.assignor


def _raise_epoch(draft: Draft, topics: Topics, changed: bool) -> None:
    group = draft.group
    if changed:
        draft.epoch += 1
    elif topics.version != group.seen_topics_version:
        if subscribed_digest(draft, topics) != group.topics_digest:
            draft.epoch += 1
        else:
            group.seen_topics_version = topics.version


def _leave(draft: Draft, request: HeartbeatRequest, topics: Topics, now: Now) -> list[Record]:
    group, member_id = draft.group, request.member_id
    if request.instance_id is not None:
        holder = group.by_instance.get(request.instance_id)
        if holder is not None and holder != member_id:
            raise FencedInstanceId
    if draft.member(member_id) is None:
        raise UnknownMemberId
    if request.epoch != STATIC_LEAVE_EPOCH:
        return remove_members(draft, [member_id], topics, now)
    current = draft.current(member_id)
    away = current._replace(epoch=STATIC_LEAVE_EPOCH, state=MemberState.STABLE, revoking=NOTHING)
    draft.put_current(member_id, away)
    return draft.records(now.wall_ms)


# --- deadlines and the answer ---


def _arm(draft: Draft, member_id: str, before: Current | None, current: Current, now: Now) -> None:
    group, member = draft.group, draft.member(member_id)
    assert member is not None
    group.timers.set(CONSUMER_SESSION, now.ms + group.session_timeout_ms(member), member_id)
    if current.state is MemberState.UNREVOKED and (before is None or before.revoking != current.revoking):
        group.timers.set(REVOCATION, now.ms + member.rebalance_timeout_ms, member_id)


def _answer(
    group: ConsumerGroup, member_id: str, request: HeartbeatRequest, before: Current | None, current: Current
) -> HeartbeatAnswer:
    """The assignment goes along where it changed, where the last answer was lost, and where the member
    tells all."""
    tells_all = (
        request.rebalance_timeout_ms != NOT_SAID
        and request.owned is not None
        and (request.subscribed_names is not None or request.subscribed_regex is not None)
    )
    unknown_to_it = before is None or before.assigned != current.assigned or request.epoch != before.epoch
    assignment = current.assigned if tells_all or unknown_to_it else None
    return HeartbeatAnswer(member_id, current.epoch, _interval_ms(group), assignment)


def _is_over(group: ConsumerGroup, key: Key) -> bool:
    """A deadline that was not cancelled may still have lost its reason."""
    if key.what == REVOCATION:
        return group.current(key.member_id).state is MemberState.UNREVOKED
    return key.what == CONSUMER_SESSION or group.members[key.member_id].classic is not None


def _interval_ms(group: ConsumerGroup) -> int:
    return group.settings.consumer_heartbeat_interval_ms
