"""JoinGroup (11), versions 0–9: a member enters a classic group; answered when the generation is complete."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.groups.calls import client_of, new_member_id, submit
from postroad.broker.parts import HasGroups, HasRuntime, HasSubscriptions
from postroad.errors import ApiError, InconsistentGroupProtocol, MemberIdRequired
from postroad.groups.answers import Answer, Joined, MemberIdGiven
from postroad.groups.requests import JoinRequest
from postroad.security.resources import Operation
from postroad.wire.messages import join_group as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.READ)

_MEMBER_ID_REQUIRED_FROM: Final = 4
_SKIP_ASSIGNMENT_FROM: Final = 9


class Uses(HasGroups, HasRuntime, HasSubscriptions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    wanted = JoinRequest(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        client_of(call),
        request.session_timeout_ms,
        # Version 0 has no rebalance timeout, and some clients leave it out of later ones. Kafka takes 0 or -1
        # as it is then and drops the member before it can sync.
        max(request.rebalance_timeout_ms, 0) or request.session_timeout_ms,
        request.protocol_type,
        tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols),
        member_id_required=call.version >= _MEMBER_ID_REQUIRED_FROM,
        may_skip_assignment=call.version >= _SKIP_ASSIGNMENT_FROM,
    )
    fresh_id = new_member_id(call, node.runtime.random)
    version = call.version
    return submit(
        node,
        call,
        request.group_id,
        lambda groups, token, now: groups.join(wanted, fresh_id, token, now),
        lambda answer: codec.encode_response(_response(answer, request.member_id, version), version),
        if_subscription=InconsistentGroupProtocol,
    )


def _response(answer: Answer, member_id: str, version: int) -> codec.JoinGroupResponse:
    no_protocol = None if version >= 7 else ""
    if isinstance(answer, ApiError):
        return codec.JoinGroupResponse(
            error_code=answer.code, generation_id=-1, protocol_name=no_protocol, member_id=member_id
        )
    if isinstance(answer, MemberIdGiven):
        return codec.JoinGroupResponse(
            error_code=MemberIdRequired.code,
            generation_id=-1,
            protocol_name=no_protocol,
            member_id=answer.member_id,
        )
    assert isinstance(answer, Joined)
    return codec.JoinGroupResponse(
        generation_id=answer.generation,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol,
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[codec.JoinGroupResponseMember(*member) for member in answer.members],
    )
