"""Heartbeat (12), versions 0–4: a member of a classic group is alive, and hears of a rebalance."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasClock, HasGroups
from postroad.errors import ApiError
from postroad.security.resources import Operation
from postroad.wire.messages import heartbeat as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.READ)


class Uses(HasClock, HasGroups, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    response = codec.HeartbeatResponse()
    try:
        call.access.check_group(request.group_id)
        coordinator = node.groups.find(request.group_id)
        coordinator.check_loaded()
        coordinator.groups.heartbeat(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            node.clock.now(),
        )
    except ApiError as error:
        response.error_code = error.code
    return codec.encode_response(response, call.version)
