"""`postroad acl …`"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from postroad.cli import output
from postroad.cli.command import Group
from postroad.cli.session import Failed, cluster_options, json_option, talk
from postroad.security.principals import EVERYBODY
from postroad.security.resources import (
    CLUSTER_NAME,
    OPERATIONS,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from postroad.security.rules import ANY_HOST, Acl, AclRule, Rules

if TYPE_CHECKING:
    from postroad.client import Client

TYPES: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.CLUSTER,
}
WORDS: Final = {each.name.lower().replace("_", "-"): each for each in Operation if each > Operation.ANY}
# What a client of a queue does over SQS, but for what loses messages: DeleteQueue and PurgeQueue take Delete.
QUEUE_RIGHTS: Final = {
    ResourceType.TOPIC: (Operation.CREATE, Operation.WRITE, Operation.READ),
    ResourceType.GROUP: (Operation.READ, Operation.ALTER_CONFIGS),
}
COLUMNS: Final = ("rule", "user", "operation", "resource", "from")


def _read_name(type_: ResourceType, name: str) -> ResourcePattern:
    """`orders` means itself, `orders*` all names that begin so, `*` all."""
    if name != "*" and name.endswith("*"):
        return ResourcePattern(type_, PatternType.PREFIXED, name[:-1])
    return ResourcePattern(type_, PatternType.LITERAL, name)


def rights_options(command: Any) -> Any:
    """What `allow`, `deny` and `remove` take."""
    for option in (
        click.option("--from", "host", default=ANY_HOST, metavar="ADDRESS", help="Only from this address."),
        click.option(
            "--cluster", multiple=True, metavar="OPERATION", help="Such as describe, alter, create."
        ),
        click.option("--operation", multiple=True, metavar="OPERATION", help="For --topic and --group."),
        click.option("--group", multiple=True, metavar="NAME", help="A group, with --operation."),
        click.option("--topic", multiple=True, metavar="NAME", help="A topic, with --operation."),
        click.option("--transactional-id", multiple=True, metavar="NAME", help="Produce in its name."),
        click.option(
            "--queue", multiple=True, metavar="NAME", help="Make the SQS queue, send to it, receive from it."
        ),
        click.option("--consume", multiple=True, metavar="TOPIC", help="Read, with groups as --group says."),
        click.option("--produce", multiple=True, metavar="TOPIC", help="Write messages to the topic."),
    ):
        command = option(command)
    return click.argument("name", metavar="USER")(command)


@click.group(cls=Group)
def acl() -> None:
    """Say what users may do. A name that ends with * means all that begin so."""


def _acls(name: str, permission: Permission, given: dict[str, Any]) -> list[Acl]:
    found = [
        Acl(resource, AclRule(_principal(name), given["host"], operation, permission))
        for resource, operation in _rights(given)
    ]
    if not found:
        raise click.UsageError("say what: --produce, --consume, --queue, --topic, --group or --cluster")
    return list(dict.fromkeys(found))


def first_rights(name: str, produce: tuple[str, ...], consume: tuple[str, ...]) -> list[Acl]:
    """What a user is allowed who is created with them, as `acl allow` would."""
    nothing = dict.fromkeys(("queue", "operation", "group", "topic", "transactional_id", "cluster"), ())
    given = {**nothing, "host": ANY_HOST, "produce": produce, "consume": consume}
    return _acls(name, Permission.ALLOW, given) if produce or consume else []


def _principal(name: str) -> str:
    return EVERYBODY if name == "*" else f"User:{name}"


def _rights(given: dict[str, Any]) -> Iterator[tuple[ResourcePattern, Operation]]:
    operations = [_operation(word) for word in given["operation"]]
    yield from _shorthands(given)
    for group in given["group"] or (["*"] if given["consume"] and not operations else []):
        for operation in operations or [Operation.READ]:
            yield _read_name(ResourceType.GROUP, group), _fitting(ResourceType.GROUP, operation)
    if given["topic"] and not operations:
        raise click.UsageError("--topic needs --operation: read, write, describe, …")
    for topic in given["topic"]:
        for operation in operations:
            yield _read_name(ResourceType.TOPIC, topic), _fitting(ResourceType.TOPIC, operation)
    for each in given["transactional_id"]:
        yield _read_name(ResourceType.TRANSACTIONAL_ID, each), Operation.WRITE
    for word in given["cluster"]:
        cluster = ResourcePattern(ResourceType.CLUSTER, PatternType.LITERAL, CLUSTER_NAME)
        yield cluster, _fitting(ResourceType.CLUSTER, _operation(word))


def _shorthands(given: dict[str, Any]) -> Iterator[tuple[ResourcePattern, Operation]]:
    for topic in given["produce"]:
        yield _read_name(ResourceType.TOPIC, topic), Operation.WRITE
    for topic in given["consume"]:
        yield _read_name(ResourceType.TOPIC, topic), Operation.READ
    for queue in given["queue"]:
        for type_, operations in QUEUE_RIGHTS.items():
            for operation in operations:
                yield _read_name(type_, queue), operation


def _operation(word: str) -> Operation:
    if word not in WORDS:
        raise click.UsageError(f"there is no operation {word!r}: {', '.join(WORDS)}")
    return WORDS[word]


def _fitting(type_: ResourceType, operation: Operation) -> Operation:
    if operation != Operation.ALL and operation not in OPERATIONS[type_]:
        kind = type_.name.lower()
        raise click.UsageError(f"{operation.name.lower()} is nothing that is done with a {kind}")
    return operation


@acl.command()
@rights_options
@cluster_options
def allow(name: str, bootstrap: str, timeout_s: float, **given: Any) -> None:
    """Allow a user (* for everybody) something."""
    _add(_acls(name, Permission.ALLOW, given), bootstrap, timeout_s)


@acl.command()
@rights_options
@cluster_options
def deny(name: str, bootstrap: str, timeout_s: float, **given: Any) -> None:
    """Deny a user (* for everybody) something, whatever allows it."""
    _add(_acls(name, Permission.DENY, given), bootstrap, timeout_s)


def _add(acls: list[Acl], bootstrap: str, timeout_s: float) -> None:
    async def work(client: Client) -> None:
        from postroad.client import acls as admin

        await admin.add_acls(client, acls)

    talk(bootstrap, timeout_s, work)
    for each in acls:
        click.echo(str(each))


@acl.command()
@rights_options
@cluster_options
def remove(name: str, bootstrap: str, timeout_s: float, **given: Any) -> None:
    """Take back what was allowed or denied by the same options."""
    wanted = _acls(name, Permission.ALLOW, given) + _acls(name, Permission.DENY, given)

    async def work(client: Client) -> int:
        from postroad.client import acls as admin

        return await admin.remove_acls(client, wanted)

    removed = talk(bootstrap, timeout_s, work)
    if not removed:
        raise Failed("there is no such rule")
    click.echo(f"removed {removed} rule{'s' if removed > 1 else ''}")


@acl.command(name="list")
@click.argument("name", metavar="[USER]", required=False)
@json_option
@cluster_options
def list_acls(name: str | None, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List rules, of one user or of all."""
    found = [each for each in _all(bootstrap, timeout_s) if name in (None, each.rule.principal[5:])]
    rows = [
        (
            Permission(rule.permission).name.lower(),
            rule.principal.removeprefix("User:"),
            Operation(rule.operation).name.lower().replace("_", "-"),
            str(resource),
            "" if rule.host == ANY_HOST else rule.host,
        )
        for resource, rule in sorted(found)
    ]
    output.listing(COLUMNS, rows, as_json, "no rules yet: `postroad acl allow` makes some")


@acl.command()
@click.argument("name", metavar="USER")
@click.argument("operation", type=click.Choice(sorted(WORDS)))
@click.argument("resource", metavar="RESOURCE")
@click.option("--type", "kind", type=click.Choice(list(TYPES)), default="topic", show_default=True)
@click.option("--from", "host", default="", metavar="ADDRESS", help="As if from this address.")
@json_option
@cluster_options
def check(
    name: str,
    operation: str,
    resource: str,
    kind: str,
    host: str,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Say whether a user may do something, and which rule decides. Ends with 1 if not."""
    from postroad.security.principals import user

    rules = talk(bootstrap, timeout_s, _rules)
    verdict = rules.decide(user(name), host, WORDS[operation], TYPES[kind], resource)
    if as_json:
        output.write_json({"allowed": verdict.allowed, "reason": verdict.reason})
    else:
        click.echo(f"{'yes' if verdict.allowed else 'no'}: {verdict.reason}")
    if not verdict.allowed:
        raise click.exceptions.Exit(1)


def _all(bootstrap: str, timeout_s: float) -> list[Acl]:
    async def work(client: Client) -> list[Acl]:
        from postroad.client import acls as admin

        return await admin.list_acls(client)

    return talk(bootstrap, timeout_s, work)


async def _rules(client: Client) -> Rules:
    """The cluster's rules, as a node has them: with what its settings say of super users."""
    from postroad.client import acls as admin
    from postroad.client.topics import NODE, describe_config

    node = (await client.nodes())[0]
    config = {each.name: each.value or "" for each in await describe_config(client, str(node), resource=NODE)}
    supers = [name for name in config["super.users"].split(",") if name]
    is_open = config["allow.everyone.if.no.acl.found"] == "true"
    rules = Rules(supers, open_without_rules=is_open)
    by_resource: dict[ResourcePattern, list[AclRule]] = {}
    for resource, rule in await admin.list_acls(client):
        by_resource.setdefault(resource, []).append(rule)
    for resource, found in by_resource.items():
        rules.put(resource, found)
    return rules
