"""DeleteAcls (31), versions 1–3: the rules that match filters; the answer names each that was deleted."""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasSecurity, HasTopics
from postroad.cluster.acls import remove_acls
from postroad.cluster.keys import AclKey, AclValue
from postroad.errors import ApiError, ClusterAuthorizationFailed, SecurityDisabled
from postroad.security.acl_filters import AclFilter
from postroad.security.resources import Operation, ResourcePattern
from postroad.security.rules import Acl
from postroad.wire.messages import delete_acls as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.ALTER)


class Uses(HasSecurity, HasTopics, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    return _delete_all(node, call, codec.decode_request(call.body, call.version), call.version)


async def _delete_all(node: Uses, call: Call, request: codec.DeleteAclsRequest, version: int) -> bytes:
    results = [await _delete(node, call, wanted) for wanted in request.filters]
    return codec.encode_response(codec.DeleteAclsResponse(filter_results=results), version)


async def _delete(node: Uses, call: Call, wanted: codec.DeleteAclsFilter) -> codec.DeleteAclsFilterResult:
    matching = AclFilter(
        wanted.resource_type_filter,
        wanted.resource_name_filter,
        wanted.pattern_type_filter,
        wanted.principal_filter,
        wanted.host_filter,
        wanted.operation,
        wanted.permission_type,
    )
    if not node.security.enabled:
        error: ApiError = SecurityDisabled()
        return codec.DeleteAclsFilterResult(error.code, str(error))
    by_resource: dict[ResourcePattern, list[Acl]] = {}
    for acl in node.security.rules.all():
        if matching.matches(acl):
            by_resource.setdefault(acl.resource, []).append(acl)
    result = codec.DeleteAclsFilterResult()
    for resource, acls in by_resource.items():
        code, text = await _remove(node, resource, acls)
        result.matching_acls += [codec.DeleteAclsMatchingAcl(code, text, *_fields(acl)) for acl in acls]
        node.security.note("acls deleted", call.connection, about=resource, acls=[str(acl) for acl in acls])
    return result


async def _remove(node: Uses, resource: ResourcePattern, acls: list[Acl]) -> tuple[int, str | None]:
    values = [AclValue(*acl.rule) for acl in acls]
    try:
        await node.topics.decide(partial(remove_acls, about=AclKey(*resource), acls=values))
    except ApiError as error:
        return error.code, str(error)
    return 0, None


def _fields(acl: Acl) -> tuple[int, str, int, str, str, int, int]:
    resource, rule = acl
    return resource.type, resource.name, resource.pattern, *rule


def refuse(_: object, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    error = ClusterAuthorizationFailed()
    results = [codec.DeleteAclsFilterResult(error.code, str(error)) for _ in request.filters]
    return codec.encode_response(codec.DeleteAclsResponse(filter_results=results), call.version)
