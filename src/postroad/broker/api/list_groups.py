"""ListGroups (16), versions 0–5: the groups that this node coordinates, by state and type."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasGroups, HasSubscriptions
from postroad.errors import ApiError, CoordinatorLoadInProgress
from postroad.security.resources import Operation
from postroad.wire.messages import list_groups as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.DESCRIBE)


class Uses(HasGroups, HasSubscriptions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    return _list(node, call.access, request, call.version)


async def _list(node: Uses, access: Access, request: codec.ListGroupsRequest, version: int) -> bytes:
    response = codec.ListGroupsResponse()
    for coordinator in node.groups.all():
        if not coordinator.loaded:
            response.error_code = CoordinatorLoadInProgress.code
            continue
        found = coordinator.groups.list(request.states_filter, request.types_filter)
        response.groups += [codec.ListedGroup(*group) for group in found]
    subscriptions = node.subscriptions
    try:
        existing = await subscriptions.ids_anywhere()
    except ApiError as error:
        response.error_code, existing = error.code, subscriptions.ids()
    found = subscriptions.members.list(request.states_filter, request.types_filter, existing=sorted(existing))
    response.groups += [
        codec.ListedGroup(*group) for group in found if not subscriptions.is_bookkeeping(group.group_id)
    ]
    if not access.may_cluster(Operation.DESCRIBE):
        response.groups = [group for group in response.groups if access.may_group(group.group_id)]
    return codec.encode_response(response, version)
