"""`postroad group …`"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from postroad.cli import output
from postroad.cli.command import Group
from postroad.cli.confirmation import confirm, yes_option
from postroad.cli.numbers import PARTITION
from postroad.cli.session import Failed, cluster_options, json_option, talk
from postroad.cli.start import Start, StartType, resolve
from postroad.errors import GroupIdNotFound, NonEmptyGroup, UnknownMemberId

if TYPE_CHECKING:
    from postroad.client import Client, TopicPartition
    from postroad.client.groups import GroupDescription

IN_DOUBT: Final = (
    "in doubt: {}. Records of groups were damaged on the node's disk, and these offsets may be older than "
    "those last committed. The group's next commit ends the doubt; `postroad group reset` sets another one."
)
LAG_COLUMNS: Final = ("topic", "partition", "committed", "end", "lag", "lag seconds", "member", "host")


@click.group(cls=Group)
def group() -> None:
    """List, describe, reset and delete consumer groups."""


@group.command(name="list")
@json_option
@cluster_options
def list_groups(as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List groups with their states."""

    async def work(client: Client) -> list[tuple[str, str, str]]:
        from postroad.client import groups

        return [(found.group, found.state, found.type) for found in await groups.list_all(client)]

    columns = ("group", "state", "type")
    nothing = "no groups yet: a consumer with a group.id makes one"
    output.listing(columns, talk(bootstrap, timeout_s, work), as_json, nothing)


@group.command()
@click.argument("name")
@json_option
@cluster_options
def describe(name: str, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Show a group's members, and its lag in messages and in seconds."""

    async def work(client: Client) -> tuple[GroupDescription, list[Any], list[str]]:
        from postroad.client import doubts, groups, lag

        found = await groups.describe(client, name)
        in_doubt = await doubts.in_doubt(client, doubts.GROUP, name, found.coordinator)
        return found, await lag.measure(client, name), in_doubt

    found, lags, in_doubt = _talk(name, bootstrap, timeout_s, work)
    rows = _rows(found, lags)
    if as_json:
        output.write_json({**_as_object(found, rows), "in_doubt": in_doubt})
        return
    click.echo(
        f"{name}  {found.state}, {found.type}{found.assignor and f' ({found.assignor})'}, "
        f"{len(found.members)} members, coordinated by node {found.coordinator}"
    )
    if rows:
        output.table(LAG_COLUMNS, rows)
    if in_doubt:
        click.echo(IN_DOUBT.format(", ".join(in_doubt)))


@group.command()
@click.argument("name")
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC",
    help="Only this topic; by default all topics with committed offsets.",
)
@click.option(
    "-p",
    "--partition",
    "partitions",
    multiple=True,
    type=PARTITION,
    help="Only this partition. May be repeated.",
)
@click.option(
    "--to",
    "start",
    required=True,
    type=StartType(),
    metavar="START",
    help="As `consume --from`: beginning, end, 1200, -10, 15m, 2026-03-01T08:00.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@json_option
@cluster_options
def reset(
    name: str,
    topics: Sequence[str],
    partitions: Sequence[int],
    start: Start,
    dry_run: bool,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Move a group's committed offsets. The group must have no members."""

    async def work(client: Client) -> list[tuple[output.Cell, ...]]:
        from postroad.client import groups

        before = await groups.committed(client, name)
        topic_partitions = await _topic_partitions(client, topics, partitions, list(before))
        if not topic_partitions:
            raise Failed(f"group {name} has committed nothing: name the topics with --topic")
        after = await resolve(client, topic_partitions, start)
        if not dry_run:
            await groups.commit(client, name, after)
        return [
            (*topic_partition, before.get(topic_partition), after[topic_partition])
            for topic_partition in topic_partitions
        ]

    output.moves(_talk(name, bootstrap, timeout_s, work), as_json, dry_run)


@group.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@yes_option
@cluster_options
def delete(names: Sequence[str], yes: bool, bootstrap: str, timeout_s: float) -> None:
    """Delete groups with their committed offsets. They must have no members."""
    confirm(f"Delete {', '.join(names)} with the committed offsets?", yes)
    for name in names:

        async def work(client: Client, name: str = name) -> None:
            from postroad.client import groups

            await groups.delete(client, name)

        _talk(name, bootstrap, timeout_s, work)
        click.echo(f"deleted {name}")


def _talk(name: str, bootstrap: str, timeout_s: float, work: Any) -> Any:
    """As `talk`, with the errors of groups in words that name the group."""

    async def named(client: Client) -> Any:
        try:
            return await work(client)
        except GroupIdNotFound:
            raise Failed(f"there is no group {name}") from None
        except (NonEmptyGroup, UnknownMemberId):
            raise Failed(f"group {name} has members: stop them first") from None

    return talk(bootstrap, timeout_s, named)


async def _topic_partitions(
    client: Client, topics: Sequence[str], partitions: Sequence[int], committed: Sequence[TopicPartition]
) -> list[TopicPartition]:
    from postroad.cli.topic import known
    from postroad.client import TopicPartition

    topic_partitions = list(committed)
    if topics:
        sizes = {name: len((await known(client, name)).partitions) for name in topics}
        topic_partitions = [
            TopicPartition(name, number) for name, size in sizes.items() for number in range(size)
        ]
    return sorted(
        topic_partition
        for topic_partition in topic_partitions
        if not partitions or topic_partition.partition in partitions
    )


def _rows(found: GroupDescription, lags: Sequence[Any]) -> list[tuple[output.Cell, ...]]:
    """A line for each partition with a commit, then those that are owned and have none."""
    owners = {topic_partition: member for member in found.members for topic_partition in member.partitions}
    rows: list[tuple[output.Cell, ...]] = []
    for topic_partition, committed, end, messages, seconds in lags:
        owner = owners.pop(topic_partition, None)
        member = (owner.id, owner.host) if owner else (None, None)
        rows.append((*topic_partition, committed, end, messages, seconds, *member))
    for topic_partition, owner in sorted(owners.items()):
        rows.append((*topic_partition, None, None, None, None, owner.id, owner.host))
    return rows


def _as_object(found: GroupDescription, rows: Sequence[Sequence[output.Cell]]) -> dict[str, Any]:
    return {
        "group": found.group,
        "type": found.type,
        "state": found.state,
        "assignor": found.assignor,
        "coordinator": found.coordinator,
        "members": [
            {
                "id": member.id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "partitions": [list(topic_partition) for topic_partition in member.partitions],
            }
            for member in found.members
        ],
        "partitions": output.objects(LAG_COLUMNS, rows),
    }
