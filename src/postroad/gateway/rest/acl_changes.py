"""ACLs over REST, changed: rules are added and taken back. Nodes are asked as the caller (`in_person.py`)."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from postroad.client import acls as admin
from postroad.gateway.rest.access_rules import (
    OPERATIONS,
    TYPES,
    AclDetails,
    OperationWord,
    TypeWord,
    rules_of,
)
from postroad.gateway.rest.endpoint import Call, Nothing, endpoint
from postroad.gateway.rest.in_person import in_person, note
from postroad.gateway.rest.problems import NOT_FOUND, REFUSED, Refused
from postroad.gateway.rest.user_changes import CHANGES
from postroad.security.principals import NAME_CHARACTERS_MAX
from postroad.security.resources import Operation, PatternType, Permission, ResourcePattern
from postroad.security.rules import ANY_HOST, Acl, AclRule

ACLS_MAX: Final = 100  # in one request
HEARD_S: Final = 2.0  # that long a change is waited for, so that who asks next sees it
HEARD_PAUSE_S: Final = 0.02

ALL_WORD: Final = "all"
AnyOperation = OperationWord | Literal["all"]
PrincipalText = Annotated[
    str,
    Meta(
        pattern="^User:", max_length=NAME_CHARACTERS_MAX + 5, description="`User:name`; `User:*`: everybody."
    ),
]
ResourceName = Annotated[
    str, Meta(min_length=1, max_length=249, description="`*`: every one; of the cluster kafka-cluster.")
]
Host = Annotated[
    str, Meta(min_length=1, max_length=100, description="The address that it holds for; `*`: any.")
]


class AclRequest(Struct, forbid_unknown_fields=True):
    """A rule, in the words in which rules are listed."""

    permission: Literal["allow", "deny"]
    principal: PrincipalText
    operation: AnyOperation
    type: TypeWord
    name: ResourceName
    pattern: Literal["literal", "prefixed"] = "literal"
    host: Host = ANY_HOST

    def read(self) -> Acl:
        operation = Operation.ALL if self.operation == ALL_WORD else OPERATIONS[self.operation]
        resource = ResourcePattern(TYPES[self.type], PatternType[self.pattern.upper()], self.name)
        return Acl(
            resource, AclRule(self.principal, self.host, operation, Permission[self.permission.upper()])
        )

    @property
    def details(self) -> AclDetails:
        return AclDetails(
            self.permission, self.principal, self.operation, self.type, self.pattern, self.name, self.host
        )


class NewAcls(Struct, forbid_unknown_fields=True):
    acls: Annotated[list[AclRequest], Meta(min_length=1, max_length=ACLS_MAX)]


class AddedAcls(Struct):
    acls: list[AclDetails]


@endpoint("POST", "/v1/acls", "Add rules.", CHANGES, status=201, problems=(REFUSED,))
async def create_acls(call: Call[NewAcls, Nothing]) -> AddedAcls:
    """One that is there already is no error. Where one of several is refused, others may have been added. As
    to the caller's password, see creating users."""
    wanted = [each.read() for each in call.body.acls]
    async with in_person(call) as client:
        await admin.add_acls(client, wanted)
        note(call, "acls created", rules=[str(each) for each in wanted])
    await _heard(call, wanted, are_there=True)
    return AddedAcls([each.details for each in call.body.acls])


@endpoint("DELETE", "/v1/acls", "Take a rule back.", CHANGES, status=204, problems=(NOT_FOUND, REFUSED))
async def delete_acl(call: Call[Nothing, AclRequest]) -> None:
    """The one that is exactly so. As to the caller's password, see creating users."""
    wanted = [call.query.read()]
    async with in_person(call) as client:
        if not await admin.remove_acls(client, wanted):
            raise Refused(NOT_FOUND, "There is no such rule.")
        note(call, "acls deleted", rules=[str(each) for each in wanted])
    await _heard(call, wanted, are_there=False)


async def _heard(call: Call[Any, Any], wanted: list[Acl], *, are_there: bool) -> None:
    """Until this gateway has heard of the change, or for a while: it follows nodes' rules by itself."""
    rules = rules_of(call)
    deadline = asyncio.get_running_loop().time() + HEARD_S
    while rules is not None and asyncio.get_running_loop().time() < deadline:
        known = set(rules.all())
        if all((each in known) == are_there for each in wanted):
            return
        await asyncio.sleep(HEARD_PAUSE_S)
