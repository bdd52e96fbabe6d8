"""FindCoordinator (10), versions 0–6: which node coordinates a group or a transactional id.

Key types: 0 group, 1 transaction, 2 share group.
"""

from __future__ import annotations

import contextlib
from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasGroups, HasImage, HasSettings, HasTransactions
from postroad.cluster.image import NodeEntry as NodeEntry
from postroad.errors import (
    ApiError,
    CoordinatorNotAvailable,
    InvalidGroupId,
    InvalidRequest,
    NotCoordinator,
)
from postroad.security.resources import Operation
from postroad.wire.messages import find_coordinator as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.DESCRIBE, transactional_id=Operation.DESCRIBE)

GROUP, TRANSACTION = 0, 1
_MANY_FROM: Final = 4


class Uses(HasGroups, HasImage, HasSettings, HasTransactions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    if request.key_type == TRANSACTION and not node.transactions.started:
        return _respond_when_ready(node, call, call.access, request)
    return _respond(node, call, call.access, request)


async def _respond_when_ready(
    node: Uses, call: Call, access: Access, request: codec.FindCoordinatorRequest
) -> bytes:
    """The topic of transactions is made for the first one who asks; a failure is found again by `_find`."""
    with contextlib.suppress(ApiError):
        for name in _keys(request, call.version):
            access.check_transactional_id(name)
        await node.transactions.ensure()
    return _respond(node, call, access, request)


def _keys(request: codec.FindCoordinatorRequest, version: int) -> list[str]:
    return request.coordinator_keys if version >= _MANY_FROM else [request.key]


def _respond(node: Uses, call: Call, access: Access, request: codec.FindCoordinatorRequest) -> bytes:
    version, listener = call.version, call.connection.listener
    found = [_find(node, access, key, request.key_type, listener) for key in _keys(request, version)]
    response = codec.FindCoordinatorResponse(coordinators=found)
    if version < _MANY_FROM:
        one = found[0]
        response.error_code, response.error_message = one.error_code, one.error_message
        response.node_id, response.host, response.port = one.node_id, one.host, one.port
    return codec.encode_response(response, version)


def _find(node: Uses, access: Access, key: str, key_type: int, listener: str) -> codec.Coordinator:
    try:
        if key_type == GROUP:
            access.check_group(key)
            owner = _coordinator_of(node, key)
        elif key_type == TRANSACTION:
            access.check_transactional_id(key)
            owner = _transaction_coordinator_of(node, key)
        else:
            raise InvalidRequest(f"There is no coordinator of type {key_type} on this node.")
    except ApiError as error:
        return codec.Coordinator(key, -1, "", -1, error.code, str(error))
    return codec.Coordinator(key, owner.id, *owner.address(listener))


def _coordinator_of(node: Uses, group_id: str) -> NodeEntry:
    """The node that leads the group's partition of `__consumer_offsets`."""
    if not group_id:
        raise InvalidGroupId()
    leader = node.groups.leader_of(group_id)
    if leader == node.settings.node.id:
        try:
            node.groups.find(group_id)  # raises while its partition is offline
        except NotCoordinator as error:
            raise CoordinatorNotAvailable(str(error)) from error
    found = node.image.nodes.get(leader)
    if found is None:  # nobody leads, or its lease was lost a moment ago
        raise CoordinatorNotAvailable()
    return found


def _transaction_coordinator_of(node: Uses, transactional_id: str) -> NodeEntry:
    """The node that leads the id's partition of `__transaction_state`."""
    node.transactions.check(transactional_id)
    found = node.image.nodes.get(node.transactions.leader_of(transactional_id))
    if found is None:
        raise CoordinatorNotAvailable()
    return found
