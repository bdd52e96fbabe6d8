"""SyncGroup (14), versions 0–5: the leader brings the assignment, everybody gets its part."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.groups.calls import submit
from postroad.broker.parts import HasGroups, HasSubscriptions
from postroad.errors import ApiError
from postroad.groups.answers import Answer, Synced
from postroad.groups.requests import SyncRequest
from postroad.security.resources import Operation
from postroad.wire.messages import sync_group as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.READ)


class Uses(HasGroups, HasSubscriptions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    wanted = SyncRequest(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
        {given.member_id: bytes(given.assignment) for given in request.assignments},
    )
    version = call.version
    return submit(
        node,
        call,
        request.group_id,
        lambda groups, token, now: groups.sync(wanted, token, now),
        lambda answer: codec.encode_response(_response(answer), version),
    )


def _response(answer: Answer) -> codec.SyncGroupResponse:
    if isinstance(answer, ApiError):
        return codec.SyncGroupResponse(error_code=answer.code)
    assert isinstance(answer, Synced)
    return codec.SyncGroupResponse(
        protocol_type=answer.protocol_type, protocol_name=answer.protocol, assignment=answer.assignment
    )
