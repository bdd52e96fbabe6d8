"""Decisions: the table of rules against a naive model, and each promise by name."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.security.acl_filters import AclFilter
from postroad.security.principals import GATEWAY, NODE, Principal, user
from postroad.security.resources import Operation, PatternType, Permission, ResourcePattern, ResourceType
from postroad.security.rules import Acl, AclRule, Rules
from tests.security import model

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
SHOP, BANK = user("shop"), user("bank")
HOST = "10.0.0.1"

# Few of each, so that rules and questions meet.
OPERATIONS = [
    Operation.READ,
    Operation.WRITE,
    Operation.DESCRIBE,
    Operation.ALTER_CONFIGS,
    Operation.DESCRIBE_CONFIGS,
]
names = st.sampled_from(["a", "ab", "b", "*"])
resources = st.builds(
    ResourcePattern,
    st.sampled_from([TOPIC, TOPIC, GROUP]),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    names,
)
rules = st.builds(
    AclRule,
    st.sampled_from(["User:shop", "User:bank", "User:*", "User:sho"]),
    st.sampled_from(["*", "*", HOST, "10.0.0.2"]),
    st.sampled_from([Operation.ALL, *OPERATIONS]),
    st.sampled_from([Permission.DENY, Permission.ALLOW]),
)
acls = st.builds(Acl, resources, rules)
asked = st.tuples(
    st.sampled_from([SHOP, BANK]),
    st.sampled_from([HOST, "10.0.0.2"]),
    st.sampled_from(OPERATIONS),
    st.sampled_from([TOPIC, TOPIC, GROUP]),
    st.sampled_from(["a", "ab", "abc", "b", "cab", "c"]),
)


def table(found: list[Acl], supers: set[str] | None = None, is_open: bool = False) -> Rules:
    by_resource: dict[ResourcePattern, list[AclRule]] = defaultdict(list)
    for acl in found:
        by_resource[acl.resource].append(acl.rule)
    made = Rules(supers or set(), open_without_rules=is_open)
    for resource, given_rules in by_resource.items():
        made.put(resource, given_rules)
    return made


def allow(
    name: str, operation: int = Operation.READ, pattern: int = PatternType.LITERAL, who: str = "User:shop"
) -> Acl:
    return Acl(ResourcePattern(TOPIC, pattern, name), AclRule(who, "*", operation, Permission.ALLOW))


def deny(
    name: str, operation: int = Operation.READ, pattern: int = PatternType.LITERAL, who: str = "User:shop"
) -> Acl:
    return Acl(ResourcePattern(TOPIC, pattern, name), AclRule(who, "*", operation, Permission.DENY))


def may(made: Rules, operation: int, name: str, who: Principal = SHOP) -> bool:
    return made.allows(who, HOST, operation, TOPIC, name)


@settings(max_examples=1000)
@given(st.lists(acls, max_size=6), asked, st.booleans(), st.booleans())
def test_the_table_decides_as_the_naive_model_does(
    found: list[Acl], question: tuple[Principal, str, int, int, str], is_open: bool, is_super: bool
) -> None:
    supers = {"User:shop"} if is_super else set()
    assert table(found, supers, is_open).allows(*question) == model.allows(found, supers, is_open, *question)


@given(st.lists(acls, max_size=6), st.lists(resources, max_size=4), asked)
def test_rules_that_are_taken_back_leave_no_trace(
    found: list[Acl], dropped: list[ResourcePattern], question: tuple[Principal, str, int, int, str]
) -> None:
    made = table(found)
    for resource in dropped:
        made.put(resource, ())
    left = [acl for acl in found if acl.resource not in dropped]
    assert made.allows(*question) == model.allows(left, set(), False, *question)
    assert sorted(made.all()) == sorted(left)


@given(st.lists(acls, max_size=6), asked)
def test_whoever_may_do_it_with_a_topic_may_do_it_with_any(
    found: list[Acl], question: tuple[Principal, str, int, int, str]
) -> None:
    principal, host, operation, type_, _ = question
    if table(found).allows(*question):
        assert table(found).allows_any(principal, host, operation, type_)


@given(st.lists(acls, max_size=5), asked)
def test_the_rule_that_is_named_decides_alone(
    found: list[Acl], question: tuple[Principal, str, int, int, str]
) -> None:
    verdict = table(found).decide(*question)
    if verdict.acl is not None:
        assert verdict.acl in found
        assert table([verdict.acl]).allows(*question) == verdict.allowed


def test_a_denial_comes_before_whatever_allows() -> None:
    made = table([allow("orders", Operation.ALL), deny("ord", pattern=PatternType.PREFIXED)])
    assert not may(made, Operation.READ, "orders")
    assert may(made, Operation.WRITE, "orders")


def test_a_prefix_is_where_a_name_begins_and_nowhere_else() -> None:
    made = table([allow("ord", pattern=PatternType.PREFIXED)])
    assert may(made, Operation.READ, "orders")
    assert may(made, Operation.READ, "ord")
    assert not may(made, Operation.READ, "my-orders")
    assert not may(made, Operation.READ, "or")


def test_a_star_means_all_names_literally_and_is_no_prefix() -> None:
    assert may(table([allow("*")]), Operation.READ, "orders")
    assert not may(table([allow("*", pattern=PatternType.PREFIXED)]), Operation.READ, "orders")


def test_a_denial_implies_nothing() -> None:
    made = table([allow("orders", Operation.DESCRIBE), deny("orders", Operation.READ)])
    assert may(made, Operation.DESCRIBE, "orders")


def test_reading_implies_seeing_but_not_the_reverse() -> None:
    assert may(table([allow("orders", Operation.READ)]), Operation.DESCRIBE, "orders")
    assert not may(table([allow("orders", Operation.DESCRIBE)]), Operation.READ, "orders")


def test_what_has_no_rules_is_open_only_where_the_node_says_so_and_no_rule_is_about_it() -> None:
    others = [allow("orders", who="User:bank")]
    assert may(table(others, is_open=True), Operation.READ, "other")
    assert not may(table(others, is_open=True), Operation.READ, "orders")
    assert not may(table(others), Operation.READ, "other")


def test_super_users_and_machines_need_no_rules_and_no_denial_stops_them() -> None:
    made = table([deny("orders", Operation.ALL, who="User:*")], {"User:shop"})
    assert may(made, Operation.READ, "orders")
    assert may(made, Operation.CLUSTER_ACTION, "orders", Principal("Node", "1"))
    assert not may(made, Operation.READ, "orders", BANK)


def test_a_gateway_may_do_all_but_alter_the_cluster() -> None:
    """Users and ACLs are among that."""
    made, gateway = table([]), Principal(GATEWAY, "postroad.gateway")
    cluster = ResourceType.CLUSTER, "kafka-cluster"
    assert made.allows(gateway, HOST, Operation.CLUSTER_ACTION, *cluster)
    assert made.allows(gateway, HOST, Operation.DESCRIBE, *cluster)
    assert made.allows(gateway, HOST, Operation.ALTER, TOPIC, "orders")
    assert not made.allows(gateway, HOST, Operation.ALTER, *cluster)
    assert made.allows(Principal(NODE, "postroad.node"), HOST, Operation.ALTER, *cluster)


def test_a_user_called_like_a_node_is_no_node() -> None:
    assert not may(table([]), Operation.READ, "orders", user("Node:1"))


def test_a_denial_of_everything_leaves_nothing_to_write() -> None:
    found = [allow("ord", Operation.WRITE, PatternType.PREFIXED), deny("*", Operation.WRITE)]
    assert not table(found).allows_any(SHOP, HOST, Operation.WRITE, TOPIC)
    assert table(found[:1]).allows_any(SHOP, HOST, Operation.WRITE, TOPIC)


def test_a_verdict_names_the_rule() -> None:
    made = table([allow("orders"), deny("ord", pattern=PatternType.PREFIXED)])
    assert (
        made.decide(SHOP, HOST, Operation.READ, TOPIC, "orders").reason == "DENY User:shop Read on topic ord*"
    )
    assert made.decide(BANK, HOST, Operation.READ, TOPIC, "orders").reason == "no rule allows it"


@given(st.lists(acls, max_size=6), names)
def test_a_filter_by_match_finds_what_covers_the_name(found: list[Acl], name: str) -> None:
    matching = AclFilter(TOPIC, name, PatternType.MATCH, None, None, Operation.ANY, Permission.ANY)
    assert [acl for acl in found if matching.matches(acl)] == [
        acl for acl in found if model.covers(acl, TOPIC, name)
    ]
