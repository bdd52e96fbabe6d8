"""Users and ACLs over REST, for reading: who there is, which rules hold, who may do something and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from postroad.client import access_keys, users
from postroad.errors import PostroadError
from postroad.gateway.rest.endpoint import Call, Nothing, endpoint
from postroad.gateway.rest.problems import REFUSED, Refused
from postroad.gateway.security.rights import DESCRIBE, Rights
from postroad.security.principals import EVERYBODY, USER, Principal, user
from postroad.security.resources import Operation, PatternType, Permission, ResourceType
from postroad.security.rules import Rules

SEEN: Final = Rights(cluster=DESCRIBE)
OPERATIONS: Final = {
    operation.name.lower().replace("_", "-"): operation
    for operation in Operation
    if operation not in (Operation.ANY, Operation.ALL)
}
TYPES: Final = {
    type_.name.lower().replace("_", "-"): type_ for type_ in ResourceType if type_ != ResourceType.ANY
}

OperationWord = Literal[
    "read", "write", "create", "delete", "alter", "describe", "cluster-action", "describe-configs",
    "alter-configs", "idempotent-write",
]  # fmt: skip
TypeWord = Literal["topic", "group", "cluster", "transactional-id"]


class UserKey(Struct):
    id: str
    enabled: bool


class UserDetails(Struct):
    """`keys` is null where the nodes don't tell a gateway of them."""

    name: str
    mechanisms: list[str]
    super: bool
    rules: Annotated[int, Meta(description="How many ACLs name the user.")]
    keys: list[UserKey] | None


class UserList(Struct):
    """`secured`: callers are users, and rules say what they may do. Else nobody is asked."""

    secured: bool
    users: list[UserDetails]


class AclDetails(Struct):
    permission: str
    principal: str
    operation: str
    type: str
    pattern: str
    name: str
    host: Annotated[str, Meta(description="The address that it holds for; `*`: any.")]


class AclList(Struct):
    secured: bool
    acls: list[AclDetails]


class AccessQuery(Struct, forbid_unknown_fields=True):
    operation: OperationWord
    name: Annotated[str, Meta(min_length=1, max_length=249, description="The resource's name.")]
    type: TypeWord = "topic"
    host: Annotated[str, Meta(max_length=100, description="As if from this address.")] = ""


class Decision(Struct):
    """`reason`: the rule that decides, or why none does."""

    principal: str
    allowed: bool
    reason: str


class AccessAnswer(Struct):
    decisions: list[Decision]


@endpoint("GET", "/v1/users", "List users, without anything secret.", SEEN)
async def list_users(call: Call[Nothing, Nothing]) -> UserList:
    rules = rules_of(call)
    if rules is None:
        return UserList(False, [])
    client = call.gateway.client
    keys: dict[str, list[UserKey]] | None = {}
    try:
        for key in await access_keys.list_keys(client):
            keys.setdefault(key.user, []).append(UserKey(key.id, key.enabled))  # type: ignore[union-attr]
    except PostroadError:
        keys = None
    counts: dict[str, int] = {}
    for acl in rules.all():
        counts[acl.rule.principal] = counts.get(acl.rule.principal, 0) + 1
    found = [
        UserDetails(
            each.name,
            each.mechanisms,
            rules.is_super(user(each.name)),
            counts.get(str(user(each.name)), 0),
            None if keys is None else keys.get(each.name, []),
        )
        for each in sorted(await users.list_users(client))
    ]
    return UserList(True, found)


@endpoint("GET", "/v1/acls", "List the rules of who may do what.", SEEN)
async def list_acls(call: Call[Nothing, Nothing]) -> AclList:
    """As this gateway has heard of them from the nodes."""
    rules = rules_of(call)
    if rules is None:
        return AclList(False, [])
    return AclList(
        True,
        [
            AclDetails(
                _word(Permission(rule.permission)), rule.principal, _word(Operation(rule.operation)),
                _word(ResourceType(resource.type)), _word(PatternType(resource.pattern)), resource.name,
                rule.host,
            )
            for resource, rule in sorted(rules.all())
        ],
    )  # fmt: skip


@endpoint("GET", "/v1/access", "Tell who may do something, and by which rule.", SEEN, problems=(REFUSED,))
async def who_may(call: Call[Nothing, AccessQuery]) -> AccessAnswer:
    """Every user is decided upon, and whoever else is named in a rule."""
    rules, asked = rules_of(call), call.query
    if rules is None:
        raise Refused(REFUSED, "Security is off: everybody may do everything.")
    known = {each.name for each in await users.list_users(call.gateway.client)}
    decisions = []
    for principal in _principals(known, rules):
        verdict = rules.decide(
            principal, asked.host, OPERATIONS[asked.operation], TYPES[asked.type], asked.name
        )
        decisions.append(Decision(str(principal), verdict.allowed, verdict.reason))
    return AccessAnswer(decisions)


def _principals(known: set[str], rules: Rules) -> Iterator[Principal]:
    named = {acl.rule.principal.removeprefix(f"{USER}:") for acl in rules.all()}
    super_users = {each.removeprefix(f"{USER}:") for each in rules.super_users}
    for name in sorted(known | (named - {EVERYBODY, "*"}) | super_users):
        yield user(name)


def rules_of(call: Call[Any, Any]) -> Rules | None:
    """As this gateway has heard of them; None: security is off."""
    following = call.gateway.identities.following
    return None if following is None else following.rules


def _word(member: Operation | Permission | PatternType | ResourceType) -> str:
    return member.name.lower().replace("_", "-")
