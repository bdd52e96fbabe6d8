"""LeaveGroup, and what silence amounts to: members that are no longer there."""

from __future__ import annotations

from collections.abc import Sequence

from postroad.errors import ApiError, FencedInstanceId, UnknownMemberId
from postroad.groups import rebalance
from postroad.groups.answers import Left, Outcome
from postroad.groups.classic import JOIN, PENDING, SESSION, SYNC, ClassicGroup, ClassicState
from postroad.groups.deadlines import Key
from postroad.groups.requests import MemberIdentity
from postroad.now import Now


def leave(group: ClassicGroup, who: Sequence[MemberIdentity], token: object, now: Now, out: Outcome) -> None:
    leaving: dict[str, None] = {}
    errors: list[ApiError | None] = []
    for identity in who:
        try:
            leaving[_find(group, identity)] = None
            errors.append(None)
        except ApiError as error:
            errors.append(error)
    group.forget_pending(leaving)
    members = [member_id for member_id in leaving if member_id in group.members]
    if members:
        rebalance.remove(group, members, now, out)
    else:
        rebalance.complete_if_all_joined(group, now, out)
    out.reply(token, Left(tuple(errors)))


def expire(group: ClassicGroup, keys: Sequence[Key], now: Now, out: Outcome) -> None:
    """Act on deadlines that have passed."""
    group.forget_pending([key.member_id for key in keys if key.what == PENDING])
    gone = {
        key.member_id: None for key in keys if key.what == SESSION and _is_silent(group, key.member_id, now)
    }
    if any(key.what == SYNC for key in keys) and group.state in (
        ClassicState.COMPLETING,
        ClassicState.STABLE,
    ):
        gone |= dict.fromkeys(sorted(group.unsynced))
    if gone:
        rebalance.remove(group, [*gone], now, out)
    if any(key.what == JOIN for key in keys) and group.state is ClassicState.PREPARING and not out.records:
        rebalance.join_time_is_up(group, now, out)
    else:
        rebalance.complete_if_all_joined(group, now, out)


def _find(group: ClassicGroup, identity: MemberIdentity) -> str:
    """The member id that is meant; it may be one that has not joined yet."""
    if identity.instance_id is None:
        if identity.member_id not in group.members and identity.member_id not in group.pending:
            raise UnknownMemberId
        return identity.member_id
    member_id = group.by_instance.get(identity.instance_id)
    if member_id is None:
        raise UnknownMemberId
    if identity.member_id and identity.member_id != member_id:
        raise FencedInstanceId
    return member_id


def _is_silent(group: ClassicGroup, member_id: str, now: Now) -> bool:
    """A member whose request waits here can't heartbeat: it is alive, unless its very first join waits too
    long."""
    member = group.members.get(member_id)
    if member is None:
        return False
    if member.is_waiting and not member.is_new:
        group.keep_alive(member, now.ms)
        return False
    return True
