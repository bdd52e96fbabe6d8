"""Filters of ACLs, as DescribeAcls and DeleteAcls have them."""

from __future__ import annotations

from typing import NamedTuple

from postroad.security.resources import Operation, PatternType, Permission, ResourceType
from postroad.security.rules import Acl


class AclFilter(NamedTuple):
    """What is None, or ANY, is not looked at."""

    type: int
    name: str | None
    pattern: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def matches(self, acl: Acl) -> bool:
        rule = acl.rule
        return (
            self._matches_resource(acl)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (Operation.ANY, rule.operation)
            and self.permission in (Permission.ANY, rule.permission)
        )

    def _matches_resource(self, acl: Acl) -> bool:
        resource = acl.resource
        if self.type not in (ResourceType.ANY, resource.type):
            return False
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, resource.pattern):
            return False
        if self.name is None:
            return True
        if self.pattern == PatternType.MATCH:
            return resource.covers(resource.type, self.name)
        return resource.name == self.name
