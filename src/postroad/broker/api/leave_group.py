"""LeaveGroup (13), versions 0–5: members leave a classic group, several at once from version 3 on."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.groups.calls import submit
from postroad.broker.parts import HasGroups, HasSubscriptions
from postroad.errors import ApiError
from postroad.groups.answers import Answer, Left
from postroad.groups.requests import MemberIdentity
from postroad.security.resources import Operation
from postroad.wire.messages import leave_group as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.READ)

_MANY_FROM: Final = 3


class Uses(HasGroups, HasSubscriptions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    version = call.version
    if version >= _MANY_FROM:
        who = [MemberIdentity(m.member_id, m.group_instance_id, m.reason) for m in request.members]
    else:
        who = [MemberIdentity(request.member_id)]
    return submit(
        node,
        call,
        request.group_id,
        lambda groups, token, now: groups.leave(request.group_id, who, token, now),
        lambda answer: codec.encode_response(_response(answer, who, version), version),
    )


def _response(answer: Answer, who: list[MemberIdentity], version: int) -> codec.LeaveGroupResponse:
    if isinstance(answer, ApiError):
        return codec.LeaveGroupResponse(error_code=answer.code)
    assert isinstance(answer, Left)
    codes = [0 if error is None else error.code for error in answer.errors]
    if version < _MANY_FROM:
        return codec.LeaveGroupResponse(error_code=codes[0])
    members = [
        codec.MemberResponse(one.member_id, one.instance_id, code)
        for one, code in zip(who, codes, strict=True)
    ]
    return codec.LeaveGroupResponse(members=members)
