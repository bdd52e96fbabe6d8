"""`Rules`: the ACLs of a cluster, and what they decide.

In this order, the first that applies decides:

1. Machines of the cluster and super users may do everything; but a gateway may not alter the cluster, users
   and ACLs among it: whoever breaks into one makes no users.
2. A DENY that matches: no.
3. An ALLOW that matches: yes. Read, Write, Delete and Alter allow Describe, too; AlterConfigs allows
   DescribeConfigs. A DENY says what it says and no more.
4. No rule at all covers the resource: what the node says for that case (`open_without_rules`).
5. No.

A rule matches if its pattern covers the resource, and principal, host and operation are its own or any.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from postroad.security.principals import EVERYBODY, GATEWAY, Principal
from postroad.security.resources import (
    IMPLIED_BY,
    WILDCARD,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)

ANY_HOST: Final = "*"

_ALTER_CLUSTER: Final = (Operation.ALTER, ResourceType.CLUSTER)


class AclRule(NamedTuple):
    """What one ACL says about the resources of its pattern."""

    principal: str
    host: str
    operation: int
    permission: int

    def concerns(self, principal: Principal, host: str) -> bool:
        return self.principal in (EVERYBODY, str(principal)) and self.host in (ANY_HOST, host)

    def denies(self, operation: int) -> bool:
        return self.permission == Permission.DENY and self.operation in (Operation.ALL, operation)

    def allows(self, operation: int) -> bool:
        if self.permission != Permission.ALLOW:
            return False
        return self.operation in (Operation.ALL, operation, *IMPLIED_BY.get(operation, ()))


class Acl(NamedTuple):
    """A rule with what it is about."""

    resource: ResourcePattern
    rule: AclRule

    def __str__(self) -> str:
        verb = Permission(self.rule.permission).name
        operation = Operation(self.rule.operation).name.title().replace("_", "")
        host = "" if self.rule.host == ANY_HOST else f" from {self.rule.host}"
        return f"{verb} {self.rule.principal} {operation} on {self.resource}{host}"


class Verdict(NamedTuple):
    """A decision with its reason. `acl` is the rule that decided; None where none did."""

    allowed: bool
    reason: str
    acl: Acl | None = None


class Rules:
    """Changed only by `put` and `replace`; `revision` says which state of the store this is."""

    def __init__(self, super_users: Collection[str] = (), *, open_without_rules: bool = False) -> None:
        self.revision = 0
        self.super_users = frozenset(super_users)
        self.open_without_rules = open_without_rules
        self._rules: dict[ResourcePattern, tuple[AclRule, ...]] = {}
        self._prefix_lengths: dict[int, dict[int, int]] = {}  # by type: how many prefixes have which length

    def put(self, resource: ResourcePattern, rules: Collection[AclRule]) -> None:
        """These are all rules of the pattern from now on; none: it has no rules any more."""
        before = self._rules.pop(resource, None)
        if rules:
            self._rules[resource] = tuple(rules)
        if resource.pattern == PatternType.PREFIXED and (before is None) == bool(rules):
            lengths = self._prefix_lengths.setdefault(resource.type, {})
            length = len(resource.name)
            lengths[length] = lengths.get(length, 0) + (1 if rules else -1)
            if not lengths[length]:
                del lengths[length]

    def replace(self, acls: dict[ResourcePattern, tuple[AclRule, ...]]) -> None:
        """These are all patterns with all their rules from now on."""
        for resource in [*self._rules]:
            if resource not in acls:
                self.put(resource, ())
        for resource, rules in acls.items():
            self.put(resource, rules)

    def all(self) -> Iterator[Acl]:
        for resource, rules in self._rules.items():
            for rule in rules:
                yield Acl(resource, rule)

    # --- deciding

    def allows(self, principal: Principal, host: str, operation: int, type_: int, name: str) -> bool:
        return self.decide(principal, host, operation, type_, name).allowed

    def decide(self, principal: Principal, host: str, operation: int, type_: int, name: str) -> Verdict:
        if self.is_super(principal):
            if principal.kind == GATEWAY and (operation, type_) == _ALTER_CLUSTER:
                return Verdict(False, "a gateway may not alter the cluster")
            return Verdict(True, f"{principal} is a super user")
        covering = list(self.covering(type_, name))
        matching = [acl for acl in covering if acl.rule.concerns(principal, host)]
        for acl in matching:
            if acl.rule.denies(operation):
                return Verdict(False, str(acl), acl)
        for acl in matching:
            if acl.rule.allows(operation):
                return Verdict(True, str(acl), acl)
        if not covering and self.open_without_rules:
            return Verdict(True, "no rule is about it, and what has no rules is open to everybody")
        return Verdict(False, "no rule allows it")

    def allows_any(self, principal: Principal, host: str, operation: int, type_: int) -> bool:
        """Whether there may be a resource of this type with which the principal may do that.

        A name that is allowed literally is looked at as a whole. A prefix, and the wildcard, count unless
        a DENY covers everything that they cover.
        """
        if self.is_super(principal):
            return True
        rules = [
            acl for acl in self.all() if acl.resource.type == type_ and acl.rule.concerns(principal, host)
        ]
        denied = [acl.resource for acl in rules if acl.rule.denies(operation)]
        for resource, rule in rules:
            if rule.allows(operation) and not any(_covers_all(deny, resource) for deny in denied):
                return True
        wildcard = ResourcePattern(type_, PatternType.LITERAL, WILDCARD)
        return self.open_without_rules and wildcard not in self._rules

    def is_super(self, principal: Principal) -> bool:
        return principal.is_machine or str(principal) in self.super_users

    def covering(self, type_: int, name: str) -> Iterator[Acl]:
        """All rules whose pattern covers the resource: literal, wildcard, then prefixes, short ones first."""
        patterns = [ResourcePattern(type_, PatternType.LITERAL, each) for each in {name: 0, WILDCARD: 0}]
        lengths = (length for length in self._prefix_lengths.get(type_, ()) if length <= len(name))
        patterns += [
            ResourcePattern(type_, PatternType.PREFIXED, name[:length]) for length in sorted(lengths)
        ]
        for pattern in patterns:
            for rule in self._rules.get(pattern, ()):
                yield Acl(pattern, rule)


def _covers_all(deny: ResourcePattern, allow: ResourcePattern) -> bool:
    """Whether whatever the second pattern covers is covered by the first."""
    if deny.pattern == PatternType.PREFIXED:
        return allow.name.startswith(deny.name) and allow[1:] != (PatternType.LITERAL, WILDCARD)
    if deny.name == WILDCARD:
        return True
    return allow == deny
