"""Clusters that ask who comes, as mirrors and their tests see them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from postroad.client import Client, acls, topics
from postroad.client.login import Credentials
from postroad.mirrors.mirror import Mirror, MirrorSettings
from postroad.security.resources import Operation, PatternType, Permission, ResourcePattern, ResourceType
from postroad.security.rules import ANY_HOST, Acl, AclRule
from tests.broker.secured import PASSWORD, Secured

READ, WRITE = Operation.READ, Operation.WRITE


@asynccontextmanager
async def connected(node: Secured, user: str = "admin") -> AsyncIterator[Client]:
    async with Client(node.bootstrap, timeout_s=20, credentials=Credentials(user, PASSWORD)) as client:
        yield client


async def mirror_once(
    source: Secured, target: Secured, *names: str, user: str = "admin", **more: Any
) -> Mirror:
    """All that is there is mirrored afterwards, with access rules unless told otherwise."""
    given = {"rules": True, "once": True, **more}
    settings = MirrorSettings(source.bootstrap, target.bootstrap, names, **given)
    async with connected(source, user) as here, connected(target, user) as there:
        mirror = Mirror(settings, here, there)
        await mirror.run(asyncio.Event())
        return mirror


def rule(
    text: str,
    operation: Operation,
    user: str = "User:shop",
    permission: Permission = Permission.ALLOW,
    host: str = ANY_HOST,
) -> Acl:
    """A rule about `topic orders`, or about `group g*`: all that begin so."""
    kind, _, name = text.partition(" ")
    pattern = PatternType.LITERAL
    if name.endswith("*") and name != "*":
        name, pattern = name[:-1], PatternType.PREFIXED
    resource = ResourcePattern(ResourceType[kind.upper()], pattern, name)
    return Acl(resource, AclRule(user, host, operation, permission))


def denial(text: str, operation: Operation, user: str = "User:shop") -> Acl:
    return rule(text, operation, user, Permission.DENY)


async def give(node: Secured, *wanted: Acl) -> None:
    async with connected(node) as client:
        await acls.add_acls(client, wanted)


async def take(node: Secured, *unwanted: Acl) -> None:
    async with connected(node) as client:
        assert await acls.remove_acls(client, unwanted) == len(unwanted)


async def rules_about(node: Secured, part: str) -> list[str]:
    """All whose resource has this in its name, as texts."""
    async with connected(node) as client:
        return sorted(str(each) for each in await acls.list_acls(client) if part in each.resource.name)


async def create(node: Secured, names: Iterable[str]) -> None:
    async with connected(node) as client:
        for name in names:
            await topics.create(client, name, partitions=1)
