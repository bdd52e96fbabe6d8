"""SyncGroup and Heartbeat: the assignment, and signs of life, of the current generation."""

from __future__ import annotations

import msgspec

from postroad.errors import IllegalGeneration, InconsistentGroupProtocol, RebalanceInProgress
from postroad.groups import rebalance
from postroad.groups.answers import Outcome, Synced
from postroad.groups.classic import SYNC, ClassicGroup, ClassicState
from postroad.groups.requests import SyncRequest
from postroad.now import Now


def sync(group: ClassicGroup, request: SyncRequest, token: object, now: Now, out: Outcome) -> None:
    """Members wait for the leader; its assignment is stored before anyone hears of it."""
    member = group.find_member(request.member_id, request.instance_id)
    if request.generation != group.generation:
        raise IllegalGeneration
    _check_protocol(group, request)
    if group.state is ClassicState.PREPARING:
        raise RebalanceInProgress
    group.keep_alive(member, now.ms)
    group.unsynced.discard(request.member_id)
    if group.state is ClassicState.STABLE:
        if not group.unsynced:
            group.timers.cancel(SYNC)
        out.reply(token, Synced(group.protocol_type, group.protocol, member.value.assignment))
        return
    rebalance.answer_waiting(group, member, RebalanceInProgress(), out)
    member.sync_token = token
    if request.member_id == group.leader:
        _store(group, request, now, out)


def heartbeat(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation: int, now: Now
) -> None:
    """Raises RebalanceInProgress to call the member to join again; that too is a sign of life."""
    member = group.find_member(member_id, instance_id)
    if generation != group.generation:
        raise IllegalGeneration
    group.keep_alive(member, now.ms)
    if group.state is ClassicState.PREPARING:
        raise RebalanceInProgress


def _check_protocol(group: ClassicGroup, request: SyncRequest) -> None:
    for said, true in ((request.protocol_type, group.protocol_type), (request.protocol, group.protocol)):
        if said is not None and said != true:
            raise InconsistentGroupProtocol


def _store(group: ClassicGroup, request: SyncRequest, now: Now, out: Outcome) -> None:
    """All that wait are answered with this outcome; if it can't be stored they hear so, and sync again."""
    members = [
        msgspec.structs.replace(m.value, assignment=request.assignments.get(member_id, b""))
        for member_id, m in group.members.items()
    ]
    out.records.append(rebalance.stored_generation(group, members, group.leader, now))
    for value in members:
        member = group.members[value.member_id]
        if member.sync_token is not None:
            out.reply(member.sync_token, Synced(group.protocol_type, group.protocol, value.assignment))
            member.sync_token = None
