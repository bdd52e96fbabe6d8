"""CreateAcls (30), versions 1–3: rules about resources; each is answered when it holds on this node.

Rules about the same resource are one commit. One that is there already is no error.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasSecurity, HasTopics
from postroad.cluster.acls import add_acls
from postroad.cluster.keys import AclKey, AclValue
from postroad.errors import ApiError, ClusterAuthorizationFailed, InvalidRequest, SecurityDisabled
from postroad.security.principals import EVERYBODY, read_principal
from postroad.security.resources import (
    OPERATIONS,
    Operation,
    Permission,
    ResourcePattern,
    ResourceType,
    check_pattern,
)
from postroad.wire.messages import create_acls as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.ALTER)


class Uses(HasSecurity, HasTopics, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    return _create(node, call, codec.decode_request(call.body, call.version), call.version)


async def _create(node: Uses, call: Call, request: codec.CreateAclsRequest, version: int) -> bytes:
    results = [codec.AclCreationResult() for _ in request.creations]
    by_resource: dict[AclKey, list[int]] = {}
    for number, creation in enumerate(request.creations):
        try:
            _check(node, creation)
        except ApiError as error:
            _refuse(results[number], error)
            continue
        about = AclKey(creation.resource_type, creation.resource_pattern_type, creation.resource_name)
        by_resource.setdefault(about, []).append(number)
    for about, numbers in by_resource.items():
        acls = [_value(request.creations[number]) for number in numbers]
        try:
            await node.topics.decide(partial(add_acls, about=about, acls=acls))
        except ApiError as error:
            for number in numbers:
                _refuse(results[number], error)
        else:
            node.security.note("acls created", call.connection, about=about, rules=[str(acl) for acl in acls])
    return codec.encode_response(codec.CreateAclsResponse(results=results), version)


def _check(node: Uses, creation: codec.AclCreation) -> None:
    if not node.security.enabled:
        raise SecurityDisabled()
    type_, operation = creation.resource_type, creation.operation
    check_pattern(ResourcePattern(type_, creation.resource_pattern_type, creation.resource_name))
    if operation != Operation.ALL and operation not in OPERATIONS[ResourceType(type_)]:
        raise InvalidRequest(f"Operation {operation} can't be done with resources of type {type_}.")
    if creation.permission_type not in (Permission.ALLOW, Permission.DENY):
        raise InvalidRequest("An ACL allows (3) or denies (2).")
    if creation.principal != EVERYBODY:
        read_principal(creation.principal)
    if not creation.host:
        raise InvalidRequest("An ACL names a host by its address, or * for all.")


def _value(creation: codec.AclCreation) -> AclValue:
    return AclValue(creation.principal, creation.host, creation.operation, creation.permission_type)


def _refuse(result: codec.AclCreationResult, error: ApiError) -> None:
    result.error_code, result.error_message = error.code, str(error)


def refuse(_: object, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    error = ClusterAuthorizationFailed()
    results = [codec.AclCreationResult(error.code, str(error)) for _ in request.creations]
    return codec.encode_response(codec.CreateAclsResponse(results=results), call.version)
