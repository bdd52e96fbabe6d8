"""FindCoordinator (10), versions 0–6: which node coordinates a group or a transactional id.

Key types: 0 group, 1 transaction, 2 share group.
"""

from __future__ import annotations

import contextlib
from typing import Final, Protocol

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
from postroad.wire.messages import find_coordinator as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM

GROUP, TRANSACTION = 0, 1
_MANY_FROM: Final = 4


class Uses(HasGroups, HasImage, HasSettings, HasTransactions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    if request.key_type == TRANSACTION and not node.transactions.started:
        return _respond_when_ready(node, request, call.version)
    return _respond(node, request, call.version)


async def _respond_when_ready(node: Uses, request: codec.FindCoordinatorRequest, version: int) -> bytes:
    """The topic of transactions is made for the first one who asks; a failure is found again by `_find`."""
    with contextlib.suppress(ApiError):
        await node.transactions.ensure()
    return _respond(node, request, version)


def _respond(node: Uses, request: codec.FindCoordinatorRequest, version: int) -> bytes:
    keys = request.coordinator_keys if version >= _MANY_FROM else [request.key]
    found = [_find(node, key, request.key_type) for key in keys]
    response = codec.FindCoordinatorResponse(coordinators=found)
    if version < _MANY_FROM:
        one = found[0]
        response.error_code, response.error_message = one.error_code, one.error_message
        response.node_id, response.host, response.port = one.node_id, one.host, one.port
    return codec.encode_response(response, version)


def _find(node: Uses, key: str, key_type: int) -> codec.Coordinator:
    try:
        if key_type == GROUP:
            owner = _coordinator_of(node, key)
        elif key_type == TRANSACTION:
            owner = _transaction_coordinator_of(node, key)
        else:
            raise InvalidRequest(f"There is no coordinator of type {key_type} on this node.")
    except ApiError as error:
        return codec.Coordinator(key, -1, "", -1, error.code, str(error))
    return codec.Coordinator(key, owner.id, owner.host, owner.port)


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
