"""JoinGroup: a member wants to be in the next generation.

A newcomer is first given an id (KIP-394). A static member that comes back (KIP-345) takes over its former
self, and if the group is stable and its subscription is the same there is no rebalance. All others wait
until the join phase ends.
"""

from __future__ import annotations

import msgspec

from postroad.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    InvalidSessionTimeout,
    RebalanceInProgress,
)
from postroad.groups import rebalance
from postroad.groups.answers import Joined, JoinedMember, MemberIdGiven, Outcome
from postroad.groups.classic import PENDING, ClassicGroup, ClassicMember, ClassicState
from postroad.groups.records import ClassicMemberValue
from postroad.groups.requests import JoinRequest
from postroad.groups.settings import GroupSettings
from postroad.groups.subscription import subscribed_topics
from postroad.now import Now


def check_request(request: JoinRequest, settings: GroupSettings) -> None:
    """Refuse what is wrong whatever the group is like. Raises an ApiError."""
    if not settings.session_timeout_min_ms <= request.session_timeout_ms <= settings.session_timeout_max_ms:
        raise InvalidSessionTimeout
    if not request.protocol_type or not request.protocols:
        raise InconsistentGroupProtocol("A member must name a protocol type and at least one protocol.")


def join(
    group: ClassicGroup, request: JoinRequest, new_id: str, token: object, now: Now, out: Outcome
) -> None:
    """Raises an ApiError, with nothing changed, if the request is refused."""
    if request.member_id:
        _join_as_known(group, request, token, now, out)
    elif request.instance_id is not None and request.instance_id in group.by_instance:
        _join_as_returning(group, request, new_id, token, now, out)
    else:
        _join_as_newcomer(group, request, new_id, token, now, out)


def _join_as_newcomer(
    group: ClassicGroup, request: JoinRequest, new_id: str, token: object, now: Now, out: Outcome
) -> None:
    _check_fits(group, request)
    if request.member_id_required and request.instance_id is None:
        group.pending.add(new_id)
        group.timers.set(PENDING, now.ms + request.session_timeout_ms, new_id)
        rebalance.prolong_opening(group, now)
        out.reply(token, MemberIdGiven(new_id))
    else:
        _add(group, request, new_id, token, now, out)


def _join_as_known(group: ClassicGroup, request: JoinRequest, token: object, now: Now, out: Outcome) -> None:
    if request.member_id in group.pending:
        _check_fits(group, request)
        group.pending.remove(request.member_id)
        group.timers.cancel(PENDING, request.member_id)
        _add(group, request, request.member_id, token, now, out)
        return
    member = group.find_member(request.member_id, request.instance_id)
    if not group.supports(request, instead_of=member):
        raise InconsistentGroupProtocol
    if _knows_its_generation(group, member, request):
        group.keep_alive(member, now.ms)
        out.reply(token, rebalance.joined(group, member))
        return
    _update(group, member, request)
    rebalance.prepare(group, now, out)
    _wait(group, member, token, now, out)


def _knows_its_generation(group: ClassicGroup, member: ClassicMember, request: JoinRequest) -> bool:
    """A repeated join, whose answer was lost perhaps: the generation stands. A stable leader asks for a new
    one."""
    if member.value.protocols != request.protocols:
        return False
    if group.state is ClassicState.COMPLETING:
        return True
    return group.state is ClassicState.STABLE and group.leader != request.member_id


def _join_as_returning(
    group: ClassicGroup, request: JoinRequest, new_id: str, token: object, now: Now, out: Outcome
) -> None:
    """A static member is back under a new member id; whoever still uses the old id is fenced."""
    assert request.instance_id is not None
    former = group.members[group.by_instance[request.instance_id]]
    if not group.supports(request, instead_of=former):
        raise InconsistentGroupProtocol
    if group.state is ClassicState.STABLE and _needs_no_rebalance(group, former, request):
        _take_over(group, former, request, new_id, token, now, out)
        return
    rebalance.answer_waiting(group, former, FencedInstanceId(), out)
    was_leader = group.leader == former.value.member_id
    group.remove_member(former.value.member_id)
    member = ClassicMember(_value(request, new_id, former.value.assignment))
    group.add_member(member)
    group.leader = new_id if was_leader else group.leader
    rebalance.prepare(group, now, out)
    _wait(group, member, token, now, out)


def _needs_no_rebalance(group: ClassicGroup, former: ClassicMember, request: JoinRequest) -> bool:
    """The same protocol would be chosen, and the topics are the same (user data may differ: owned
    partitions do)."""
    instead = (former.value.member_id, request.protocols)
    if group.choose_protocol(instead) != group.protocol:
        return False
    before = subscribed_topics(former.metadata(group.protocol))
    return before == subscribed_topics(dict(request.protocols).get(group.protocol, b""))


def _take_over(
    group: ClassicGroup,
    former: ClassicMember,
    request: JoinRequest,
    new_id: str,
    token: object,
    now: Now,
    out: Outcome,
) -> None:
    """The stored generation with one id changed. The member then syncs, and gets the assignment that it
    had."""
    old_id = former.value.member_id
    new = _value(request, new_id, former.value.assignment)
    members = [new if m is former else m.value for m in group.members.values()]
    was_leader = group.leader == old_id
    leader = new_id if was_leader else group.leader
    out.records.append(rebalance.stored_generation(group, members, leader, now))
    group.keep_alive(ClassicMember(new), now.ms)
    listed: tuple[JoinedMember, ...] = ()
    if was_leader and request.may_skip_assignment:
        listed = tuple(
            member._replace(member_id=new_id) if member.member_id == old_id else member
            for member in rebalance.joined_members(group)
        )
    # A client that can't skip the assignment is told of a leader that isn't itself, so that it does not
    # assign.
    named = leader if request.may_skip_assignment else group.leader
    out.reply(
        token,
        Joined(
            new_id,
            group.generation,
            group.protocol_type,
            group.protocol,
            named,
            listed,
            skip_assignment=bool(listed),
        ),
    )


def _add(
    group: ClassicGroup, request: JoinRequest, member_id: str, token: object, now: Now, out: Outcome
) -> None:
    if not group.members:
        group.protocol_type = request.protocol_type
    member = ClassicMember(_value(request, member_id), is_new=True)
    group.add_member(member)
    rebalance.prepare(group, now, out)
    rebalance.prolong_opening(group, now)
    _wait(group, member, token, now, out)


def _wait(group: ClassicGroup, member: ClassicMember, token: object, now: Now, out: Outcome) -> None:
    rebalance.answer_waiting(group, member, RebalanceInProgress(), out)
    member.join_token = token
    group.waiting_joins += 1
    group.keep_alive(member, now.ms)
    rebalance.complete_if_all_joined(group, now, out)


def _update(group: ClassicGroup, member: ClassicMember, request: JoinRequest) -> None:
    value = _value(request, member.value.member_id, member.value.assignment)
    value = msgspec.structs.replace(value, instance_id=member.value.instance_id)
    group.change_member(member, value)


def _check_fits(group: ClassicGroup, request: JoinRequest) -> None:
    if not group.supports(request):
        raise InconsistentGroupProtocol
    if len(group.members) >= group.settings.group_size_max:
        raise GroupMaxSizeReached


def _value(request: JoinRequest, member_id: str, assignment: bytes = b"") -> ClassicMemberValue:
    return ClassicMemberValue(
        member_id,
        request.session_timeout_ms,
        request.rebalance_timeout_ms,
        request.protocols,
        assignment,
        request.instance_id,
        request.client.client_id,
        request.client.host,
    )
