"""Members of a KIP-848 group that still speak the classic protocol, while the group changes from one to the
other.

They join, sync, send heartbeats and leave as ever, but the server assigns: nobody is told to lead. The epoch
of the member is its generation. A join says what the member still owns, and moves it one step towards its
target, as a KIP-848 heartbeat does; a sync fetches what it was given; a heartbeat calls it to join again
when there is a new target, or when partitions that it waits for are free.
"""

from __future__ import annotations

from collections.abc import Sequence

from postroad.errors import (
    ApiError,
    FencedInstanceId,
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from postroad.groups import assignment, heartbeat, migration
from postroad.groups.answers import Joined, Left, MemberIdGiven, Outcome, Synced
from postroad.groups.assignment import Malformed
from postroad.groups.consumer import CLASSIC_STEP, CONSUMER_SESSION, ConsumerGroup, Draft
from postroad.groups.reconcile import Current, MemberState
from postroad.groups.records import ClassicSide, MemberValue
from postroad.groups.requests import JoinRequest, MemberIdentity, SyncRequest, Topics
from postroad.groups.subscription import CONSUMER_PROTOCOL, Subscription, read_subscription
from postroad.now import Now


def join(
    group: ConsumerGroup,
    request: JoinRequest,
    new_id: str,
    topics: Topics,
    token: object,
    now: Now,
    out: Outcome,
) -> None:
    """Move a member one step towards its target, and answer at once. Raises an ApiError, with nothing
    changed, if the request is refused."""
    subscription = _read(request)
    _check_fits(group, request)
    if request.member_id_required and not request.member_id and request.instance_id is None:
        out.reply(token, MemberIdGiven(new_id))
        return
    draft = Draft(group)
    replaced = _replaced(group, request)
    if replaced is not None and migration.may_downgrade(draft, [replaced]):
        out.records += migration.downgrade(draft, [replaced], topics, now)
        out.reply(token, RebalanceInProgress())  # the group is a classic one now: join that
        return
    member_id, before = _find_or_join(draft, request, replaced, new_id)
    changed = _subscribe(draft, member_id, request, subscription)
    owned = assignment.by_id(subscription.owned, topics)
    current = heartbeat.advance(draft, member_id, before, owned, changed, topics, now)
    group.timers.set(CLASSIC_STEP, now.ms + request.rebalance_timeout_ms, member_id)
    out.records += draft.records(now.wall_ms)
    out.reply(token, Joined(member_id, current.epoch, CONSUMER_PROTOCOL, request.protocols[0][0], leader=""))


def sync(
    group: ConsumerGroup, request: SyncRequest, topics: Topics, token: object, now: Now, out: Outcome
) -> None:
    value, classic = _find(group, request.member_id, request.instance_id)
    current = group.current(request.member_id)
    protocol, metadata = classic.protocols[0]
    if request.generation != current.epoch:
        raise IllegalGeneration
    if (request.protocol_type or CONSUMER_PROTOCOL, request.protocol or protocol) != (
        CONSUMER_PROTOCOL,
        protocol,
    ):
        raise InconsistentGroupProtocol
    if group.epoch > current.epoch and current.state is not MemberState.UNREVOKED:
        _await_step(group, request.member_id, value, now)
        raise RebalanceInProgress
    group.timers.cancel(CLASSIC_STEP, request.member_id)
    _keep_alive(group, request.member_id, value, now)
    assigned = assignment.by_name(current.assigned, topics)
    version = read_subscription(metadata).version
    out.reply(token, Synced(CONSUMER_PROTOCOL, protocol, assignment.encode(assigned, version)))


def beat(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int, now: Now) -> None:
    """Raises RebalanceInProgress to call the member to join again; that too is a sign of life."""
    value, _ = _find(group, member_id, instance_id)
    current = group.current(member_id)
    if generation != current.epoch:
        raise IllegalGeneration
    _keep_alive(group, member_id, value, now)
    if _must_join(group, member_id, current):
        _await_step(group, member_id, value, now)
        raise RebalanceInProgress


def leave(
    group: ConsumerGroup,
    who: Sequence[MemberIdentity],
    topics: Topics,
    token: object,
    now: Now,
    out: Outcome,
) -> None:
    leaving: dict[str, None] = {}
    errors: list[ApiError | None] = []
    for identity in who:
        try:
            leaving[_identified(group, identity)] = None
            errors.append(None)
        except ApiError as error:
            errors.append(error)
    if leaving:
        out.records += migration.remove_members(Draft(group), [*leaving], topics, now)
    out.reply(token, Left(tuple(errors)))


# --- joining ---


def _read(request: JoinRequest) -> Subscription:
    """All protocols of a member have the same subscription."""
    if request.protocol_type != CONSUMER_PROTOCOL:
        raise InconsistentGroupProtocol
    try:
        return read_subscription(request.protocols[0][1])
    except Malformed:
        raise InconsistentGroupProtocol("The subscription can't be read.") from None


def _check_fits(group: ConsumerGroup, request: JoinRequest) -> None:
    """The member needs an assignor in common with all others of its protocol: one day they may be alone."""
    common = {name for name, _ in request.protocols}
    for member_id, value in group.members.items():
        if value.classic is not None and member_id != request.member_id:
            common &= dict(value.classic.protocols).keys()
    if not common:
        raise InconsistentGroupProtocol
    is_new = request.member_id not in group.members and request.instance_id not in group.by_instance
    if is_new and len(group.members) >= group.settings.consumer_group_size_max:
        raise GroupMaxSizeReached


def _replaced(group: ConsumerGroup, request: JoinRequest) -> str | None:
    """The member whose instance id a newcomer takes over."""
    holder = group.by_instance.get(request.instance_id or "")
    if holder is not None and request.member_id and holder != request.member_id:
        raise FencedInstanceId
    return None if request.member_id else holder


def _find_or_join(
    draft: Draft, request: JoinRequest, replaced: str | None, new_id: str
) -> tuple[str, Current | None]:
    """The member's id, and what it owned before this join (None: it is new)."""
    if replaced is not None:
        heartbeat.take_over(draft, replaced, new_id)
        return new_id, None
    member_id = request.member_id or new_id
    if draft.member(member_id) is not None:
        return member_id, draft.current(member_id)
    if request.member_id and request.instance_id is not None:
        raise UnknownMemberId
    return member_id, None


def _subscribe(draft: Draft, member_id: str, request: JoinRequest, subscription: Subscription) -> bool:
    """Take up what the member says; True if a new target must be found for it."""
    former = draft.member(member_id)
    value = MemberValue(
        request.rebalance_timeout_ms,
        tuple(sorted(subscription.topics)),
        instance_id=request.instance_id,
        client_id=request.client.client_id,
        client_host=request.client.host,
        classic=ClassicSide(request.session_timeout_ms, request.protocols),
    )
    draft.put_member(member_id, value)
    return former is None or heartbeat.wants(former) != heartbeat.wants(value)


# --- the member and its deadlines ---


def _find(group: ConsumerGroup, member_id: str, instance_id: str | None) -> tuple[MemberValue, ClassicSide]:
    """Raises FencedInstanceId if another member has taken the instance id over, else UnknownMemberId."""
    if instance_id is not None and group.by_instance.get(instance_id, member_id) != member_id:
        raise FencedInstanceId
    value = group.members.get(member_id)
    if value is None or value.classic is None:
        raise UnknownMemberId
    if instance_id is not None and instance_id not in group.by_instance:
        raise UnknownMemberId
    return value, value.classic


def _identified(group: ConsumerGroup, identity: MemberIdentity) -> str:
    member_id = identity.member_id
    if identity.instance_id is not None and not member_id:
        member_id = group.by_instance.get(identity.instance_id, "")
    _find(group, member_id, identity.instance_id)
    return member_id


def _must_join(group: ConsumerGroup, member_id: str, current: Current) -> bool:
    if current.epoch < group.epoch or current.state is MemberState.UNREVOKED:
        return True
    waits_for = group.targets.get(member_id, frozenset()) - current.assigned
    return current.state is MemberState.UNRELEASED and not any(tp in group.holder for tp in waits_for)


def _keep_alive(group: ConsumerGroup, member_id: str, value: MemberValue, now: Now) -> None:
    group.timers.set(CONSUMER_SESSION, now.ms + group.session_timeout_ms(value), member_id)


def _await_step(group: ConsumerGroup, member_id: str, value: MemberValue, now: Now) -> None:
    """The member has its rebalance timeout to join; being told so again does not prolong it."""
    if group.timers.get(CLASSIC_STEP, member_id) is None:
        group.timers.set(CLASSIC_STEP, now.ms + value.rebalance_timeout_ms, member_id)
