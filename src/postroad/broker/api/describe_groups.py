"""DescribeGroups (15), versions 0–6: classic groups and their members; one unknown is Dead (v6: an error)."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import GROUP, Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.groups.calls import loaded_groups
from postroad.broker.parts import HasGroups
from postroad.errors import ApiError, GroupIdNotFound
from postroad.security.resources import Operation
from postroad.wire.messages import describe_groups as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.DESCRIBE)

_DEAD_IS_AN_ERROR_FROM: Final = 6


class Uses(HasGroups, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    groups = [_describe(node, call.access, group_id, call.version) for group_id in request.groups]
    for group in groups:
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = call.access.operations(GROUP, group.group_id)
    return codec.encode_response(codec.DescribeGroupsResponse(groups=groups), call.version)


def _describe(node: Uses, access: Access, group_id: str, version: int) -> codec.DescribedGroup:
    try:
        found = loaded_groups(node, access, group_id).describe_classic(group_id)
    except ApiError as error:
        return codec.DescribedGroup(error.code, str(error), group_id)
    group = codec.DescribedGroup(
        group_id=group_id,
        group_state=found.state,
        protocol_type=found.protocol_type,
        protocol_data=found.protocol,
        members=[codec.DescribedGroupMember(*member) for member in found.members],
    )
    if found.state == "Dead" and version >= _DEAD_IS_AN_ERROR_FROM:
        group.error_code = GroupIdNotFound.code
        group.error_message = f"Group {group_id} not found."
    return group
