"""ACLs of a cluster, as an administrator sees them."""

from __future__ import annotations

from collections.abc import Sequence

from postroad.client.client import Client
from postroad.errors import by_code
from postroad.security.acl_filters import AclFilter
from postroad.security.resources import Operation, PatternType, Permission, ResourcePattern, ResourceType
from postroad.security.rules import Acl, AclRule
from postroad.wire.messages import create_acls, delete_acls, describe_acls

EVERY = AclFilter(ResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY)


async def list_acls(client: Client, wanted: AclFilter = EVERY) -> list[Acl]:
    answer = await client.ask(describe_acls, describe_acls.DescribeAclsRequest(*wanted))
    if answer.error_code:
        raise by_code(answer.error_code, answer.error_message)
    return [
        Acl(
            ResourcePattern(found.resource_type, found.pattern_type, found.resource_name),
            AclRule(acl.principal, acl.host, acl.operation, acl.permission_type),
        )
        for found in answer.resources
        for acl in found.acls
    ]


async def add_acls(client: Client, acls: Sequence[Acl]) -> None:
    creations = [
        create_acls.AclCreation(resource.type, resource.name, resource.pattern, *rule)
        for resource, rule in acls
    ]
    answer = await client.ask(create_acls, create_acls.CreateAclsRequest(creations))
    for result in answer.results:
        if result.error_code:
            raise by_code(result.error_code, result.error_message)


async def remove_acls(client: Client, acls: Sequence[Acl]) -> int:
    """How many of them there were."""
    filters = [
        delete_acls.DeleteAclsFilter(resource.type, resource.name, resource.pattern, *rule)
        for resource, rule in acls
    ]
    answer = await client.ask(delete_acls, delete_acls.DeleteAclsRequest(filters))
    removed = 0
    for result in answer.filter_results:
        for acl in (result, *result.matching_acls):
            if acl.error_code:
                raise by_code(acl.error_code, acl.error_message)
        removed += len(result.matching_acls)
    return removed
