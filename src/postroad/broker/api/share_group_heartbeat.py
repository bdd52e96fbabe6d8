"""ShareGroupHeartbeat (76), version 1: a member joins a share group, lives in it and leaves it (KIP-932).

The answer waits until the subscription holds the messages of every topic that the member names: what is
published after it will be delivered.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.groups.calls import client_of
from postroad.broker.parts import HasClock, HasGroups, HasSubscriptions
from postroad.errors import (
    ApiError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
)
from postroad.groups.answers import ShareHeartbeatAnswer
from postroad.groups.requests import LEAVE_EPOCH, ShareHeartbeat
from postroad.security.resources import Operation
from postroad.wire.messages import share_group_heartbeat as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.READ, topic=Operation.DESCRIBE)

_OF_COORDINATORS: Final = (CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator)


class Uses(HasClock, HasGroups, HasSubscriptions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    version = call.version
    wanted = ShareHeartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        request.rack_id,
        None if request.subscribed_topic_names is None else tuple(request.subscribed_topic_names),
        client_of(call),
    )
    try:
        call.access.check_group(request.group_id)
        for name in request.subscribed_topic_names or ():
            call.access.check_topic(name)
        answer = _heartbeat(node, wanted)
    except ApiError as error:
        return codec.encode_response(_refusal(error), version)
    parked = call.park()

    def held(error: ApiError | None) -> None:
        """A member that hears an error comes again with the epoch it knows, and is told all of this then."""
        if not parked.abandoned:
            response = _response(answer) if error is None else _refusal(for_members(error))
            parked.complete(codec.encode_response(response, version))

    node.subscriptions.ensure(wanted.group_id, answer.topics, held)
    return parked


def _heartbeat(node: Uses, wanted: ShareHeartbeat) -> ShareHeartbeatAnswer:
    subscriptions = node.subscriptions
    group_id = wanted.group_id
    subscriptions.membership.check_coordinator(group_id)
    if group_id and not subscriptions.members.has_members(group_id):
        subscriptions.membership.check_group_type(group_id)
    if group_id and wanted.subscribed_names:
        subscriptions.letter_routes.check_member(group_id, wanted.subscribed_names)
    answer = subscriptions.members.heartbeat(
        wanted, node.groups.topics, subscriptions.membership.settings(group_id), node.clock.now()
    )
    if wanted.epoch == LEAVE_EPOCH and not subscriptions.sessions.has(group_id, wanted.member_id):
        # Clients say this and their session's last acknowledgements at once, over two connections: while
        # there is a session, what the member holds is released when that ends.
        subscriptions.membership.left(group_id, wanted.member_id)
    subscriptions.membership.arm()
    return answer


def _response(answer: ShareHeartbeatAnswer) -> codec.ShareGroupHeartbeatResponse:
    assignment = answer.assignment
    return codec.ShareGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.heartbeat_ms,
        assignment=None
        if assignment is None
        else codec.Assignment([codec.TopicPartitions(*topic) for topic in assignment.items()]),
    )


def for_members(error: ApiError) -> ApiError:
    """What members hear of a ledger that could not be made: to come again.

    A heartbeat knows the errors of coordinators; any other one ends a member, also where it would pass, such
    as the error of a partition whose leader changes.
    """
    if error.retriable and not isinstance(error, _OF_COORDINATORS):
        return CoordinatorLoadInProgress(str(error))
    return error


def _refusal(error: ApiError) -> codec.ShareGroupHeartbeatResponse:
    return codec.ShareGroupHeartbeatResponse(error_code=error.code, error_message=str(error))
