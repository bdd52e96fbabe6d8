"""DescribeAcls (29), versions 1–3: the ACLs that match a filter."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasSecurity
from postroad.errors import ApiError, ClusterAuthorizationFailed, SecurityDisabled
from postroad.security.acl_filters import AclFilter
from postroad.security.resources import Operation, ResourcePattern
from postroad.wire.messages import describe_acls as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.DESCRIBE)


class Uses(HasSecurity, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    if not node.security.enabled:
        return _refusal(SecurityDisabled(), call.version)
    wanted = AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    found: dict[ResourcePattern, list[codec.AclDescription]] = {}
    for acl in node.security.rules.all():
        if wanted.matches(acl):
            found.setdefault(acl.resource, []).append(codec.AclDescription(*acl.rule))
    resources = [
        codec.DescribeAclsResource(resource.type, resource.name, resource.pattern, acls)
        for resource, acls in found.items()
    ]
    return codec.encode_response(codec.DescribeAclsResponse(resources=resources), call.version)


def refuse(_: object, call: Call) -> Result:
    return _refusal(ClusterAuthorizationFailed(), call.version)


def _refusal(error: ApiError, version: int) -> bytes:
    response = codec.DescribeAclsResponse(error_code=error.code, error_message=str(error))
    return codec.encode_response(response, version)
