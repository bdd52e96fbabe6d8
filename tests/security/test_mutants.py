"""Faults in the rules that the comparison with the naive model must see."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from postroad.security.resources import Operation, PatternType, Permission, ResourcePattern
from postroad.security.rules import Acl, AclRule, Rules
from tests.security import model
from tests.security.test_rules import BANK, HOST, OPERATIONS, SHOP, TOPIC, table


def differs_from_model() -> bool:
    """Whether some of many drawn tables decides otherwise than the model."""
    random = Random(1)
    who, hosts, names = (SHOP, SHOP, BANK), ("*", "*", HOST), ("a", "ab", "b", "*")
    for _ in range(10_000):
        acls = [
            Acl(
                ResourcePattern(TOPIC, random.choice((3, 4)), random.choice(names)),
                AclRule(
                    str(random.choice(who)),
                    random.choice(hosts),
                    random.choice((Operation.ALL, *OPERATIONS)),
                    random.choice((Permission.DENY, Permission.ALLOW)),
                ),
            )
            for _ in range(random.randrange(5))
        ]
        name = random.choice(("a", "ab", "cab", "b", "c"))
        question = random.choice(who), HOST, random.choice(OPERATIONS), TOPIC, name
        if table(acls).allows(*question) != model.allows(acls, set(), False, *question):
            return True
    return False


def _never_denies(rule: AclRule, operation: int) -> bool:
    return False


def _implies_nothing(rule: AclRule, operation: int) -> bool:
    return rule.permission == 3 and rule.operation in (2, operation)


def _denies_what_is_implied(rule: AclRule, operation: int) -> bool:
    return rule.permission == 2 and (
        rule.operation in (2, operation) or (operation, rule.operation) == (8, 3)
    )


def _covers_substrings(rules: Rules, type_: int, name: str) -> Iterator[Acl]:
    for acl in rules.all():
        is_prefix = acl.resource.pattern == PatternType.PREFIXED
        if acl.resource.covers(type_, name) or (
            is_prefix and acl.resource.type == type_ and acl.resource.name in name
        ):
            yield acl


def _covers_prefixes_literally(rules: Rules, type_: int, name: str) -> Iterator[Acl]:
    for acl in rules.all():
        if acl.resource.type == type_ and acl.resource.name in (name, "*"):
            yield acl


@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [
        (AclRule, "denies", _never_denies),
        (AclRule, "denies", _denies_what_is_implied),
        (AclRule, "allows", _implies_nothing),
        (Rules, "covering", _covers_substrings),
        (Rules, "covering", _covers_prefixes_literally),
    ],
)
def test_a_fault_in_the_rules_is_seen(
    where: type, name: str, mutant: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not differs_from_model()
    monkeypatch.setattr(where, name, mutant)
    assert differs_from_model()
