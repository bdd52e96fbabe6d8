"""What ACLs mean, said as naively as it can be: all rules are looked at, each on its own."""

from __future__ import annotations

from postroad.security.principals import Principal
from postroad.security.resources import Operation, PatternType, Permission
from postroad.security.rules import Acl


def covers(acl: Acl, type_: int, name: str) -> bool:
    resource = acl.resource
    if resource.type != type_:
        return False
    if resource.pattern == PatternType.LITERAL:
        return resource.name == "*" or resource.name == name
    return name[: len(resource.name)] == resource.name


def matches(acl: Acl, principal: Principal, host: str, type_: int, name: str) -> bool:
    of_principal = (
        acl.rule.principal == "User:*" or acl.rule.principal == f"{principal.kind}:{principal.name}"
    )
    of_host = acl.rule.host == "*" or acl.rule.host == host
    return of_principal and of_host and covers(acl, type_, name)


def allows(
    acls: list[Acl],
    supers: set[str],
    is_open: bool,
    principal: Principal,
    host: str,
    operation: int,
    type_: int,
    name: str,
) -> bool:
    if f"{principal.kind}:{principal.name}" in supers:
        return True
    wanted = {Operation.ALL, operation}
    implying = set(wanted)
    if operation == Operation.DESCRIBE:
        implying |= {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    if operation == Operation.DESCRIBE_CONFIGS:
        implying |= {Operation.ALTER_CONFIGS}
    found = [acl for acl in acls if matches(acl, principal, host, type_, name)]
    if any(acl.rule.permission == Permission.DENY and acl.rule.operation in wanted for acl in found):
        return False
    if any(acl.rule.permission == Permission.ALLOW and acl.rule.operation in implying for acl in found):
        return True
    return is_open and not any(covers(acl, type_, name) for acl in acls)
