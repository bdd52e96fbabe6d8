"""`postroad subscription …`: made, listed, described, altered, deleted. Messages: see the files beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from postroad.cli import output
from postroad.cli.command import Group
from postroad.cli.confirmation import confirm, yes_option
from postroad.cli.session import Failed, cluster_options, json_option
from postroad.cli.subscription_messages import consume, peek
from postroad.cli.subscription_options import changes, promise_options
from postroad.cli.subscription_position import purge, seek
from postroad.cli.subscription_talk import exists, held_topics, talk_about
from postroad.errors import GroupIdNotFound, UnknownTopicOrPartition, UnsupportedVersion
from postroad.wire.subscription_names import TOPICS_CONFIG

if TYPE_CHECKING:
    from postroad.client import Client

MEMBER_COLUMNS: Final = ("member", "client", "host", "partitions")
PARTITION_COLUMNS: Final = (
    "topic", "partition", "start", "end", "lag", "ready", "in flight", "waiting", "delayed", "dying",
)  # fmt: skip

topics_option = click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    required=True,
    metavar="TOPIC",
    help="Topic to subscribe to. May be repeated.",
)


@click.group(cls=Group)
def subscription() -> None:
    """Create, list, alter and delete subscriptions (queues), and look at their messages."""


@subscription.command()
@click.argument("name")
@topics_option
@promise_options
@cluster_options
def create(name: str, topics: Sequence[str], bootstrap: str, timeout_s: float, **given: Any) -> None:
    """Create a subscription. It holds all messages of its topics from now on, or from --start on, also before
    any consumer connects.

    \b
    postroad subscription create workers --topic jobs --topic rushes --start earliest
    postroad subscription create mails --topic orders --lock 2m --attempts 10 --backoff 5s
    postroad subscription create ledger --topic bookings --order key --dead-letters none
    """
    wanted = {TOPICS_CONFIG: ",".join(dict.fromkeys(topics)), **changes(given)}

    async def work(client: Client) -> None:
        from postroad.client import groups, subscriptions

        kinds = {found.group: found.type for found in await groups.list_all(client)}
        if kinds.get(name) == "share":
            raise Failed(
                f"subscription {name} exists already: change it with `postroad subscription alter {name}`"
            )
        if name in kinds:
            raise Failed(f"{name} is a consumer group: choose another name")
        await _note_missing(client, topics)
        await subscriptions.alter_config(client, name, wanted)

    talk_about(name, bootstrap, timeout_s, work)
    click.echo(f"created {name}")


@subscription.command()
@click.argument("name")
@click.option("-t", "--topic", "topics", multiple=True, metavar="TOPIC", help="Replace the topics by these.")
@click.option("--add-topic", "added", multiple=True, metavar="TOPIC", help="Add this topic.")
@click.option("--remove-topic", "removed", multiple=True, metavar="TOPIC", help="Remove this topic.")
@promise_options
@click.option(
    "--reset", "resets", multiple=True, metavar="NAME", help="Reset a config to its default. May be repeated."
)
@cluster_options
def alter(
    name: str,
    topics: Sequence[str],
    added: Sequence[str],
    removed: Sequence[str],
    resets: Sequence[str],
    bootstrap: str,
    timeout_s: float,
    **given: Any,
) -> None:
    """Change the options or the topics of a subscription.

    What it knows of a topic that is removed is forgotten. --start is for partitions that are new to it; use
    `postroad subscription seek` to move it on the others.
    """
    wanted = changes(given)
    if not (topics or added or removed or wanted or resets):
        raise click.UsageError("nothing to change: give --topic, --lock, --config, --reset …")
    if topics and (added or removed):
        raise click.UsageError("--topic names all topics: leave out --add-topic and --remove-topic")

    async def work(client: Client) -> None:
        from postroad.client import subscriptions

        before = await held_topics(client, name)
        if strange := [topic for topic in removed if topic not in before]:
            raise Failed(f"subscription {name} does not have {strange[0]}; it has: {', '.join(before)}")
        after = list(topics or dict.fromkeys([*before, *added]))
        after = [topic for topic in after if topic not in removed]
        gone = [topic for topic in before if topic not in after]
        if not after:
            raise Failed(f"that leaves no topic: delete it with `postroad subscription delete {name}`")
        await _check_unread(client, name, gone)
        await _note_missing(client, [topic for topic in after if topic not in before])
        if after != before:
            wanted[TOPICS_CONFIG] = ",".join(after)
        await subscriptions.alter_config(client, name, wanted, resets)
        if gone:
            await _forget(client, name, gone)

    talk_about(name, bootstrap, timeout_s, work)
    click.echo(f"altered {name}")


@subscription.command(name="list")
@json_option
@cluster_options
def list_subscriptions(as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List subscriptions with their members, topics and lag."""

    async def work(client: Client) -> list[tuple[output.Cell, ...]]:
        from postroad.client import subscriptions

        rows: list[tuple[output.Cell, ...]] = []
        for found in await subscriptions.list_all(client):
            try:
                state = await subscriptions.describe(client, found.group)
                positions = await subscriptions.positions(client, found.group)
                topics = await held_topics(client, found.group)
            except (GroupIdNotFound, Failed):
                continue  # deleted meanwhile
            lag = sum(max(0, position.lag) for position in positions.values())
            rows.append((found.group, state.state, len(state.members), tuple(topics), lag))
        return rows

    columns = ("subscription", "state", "members", "topics", "lag")
    nothing = "no subscriptions yet: create one with `postroad subscription create NAME --topic TOPIC`"
    output.listing(columns, talk_about("", bootstrap, timeout_s, work), as_json, nothing)


@subscription.command()
@click.argument("name")
@click.option("--all-configs", is_flag=True, help="Include configs that have their default.")
@json_option
@cluster_options
def describe(name: str, all_configs: bool, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Show a subscription's configs, its members, and its position in each partition.

    LAG counts the messages between START and END that are neither acknowledged nor dead. They are READY for
    the next consumer, IN FLIGHT at one, WAITING for others before them (order), DELAYED until a time, or
    DYING, on their way to the dead letters. These five count only messages that the node has read so far: it
    doesn't read far ahead of the consumers.
    """

    async def work(client: Client) -> dict[str, Any]:
        return await _describe(client, name, all_configs)

    found = talk_about(name, bootstrap, timeout_s, work)
    if as_json:
        output.write_json(found)
        return
    click.echo(f"{name}  {found['state']}, {len(found['members'])} members")
    if found["configs"]:
        output.table(("config", "value"), sorted(found["configs"].items()))
    if found["members"]:
        rows = [
            (*list(member.values())[:3], _topic_partitions(member["partitions"]))
            for member in found["members"]
        ]
        output.table(MEMBER_COLUMNS, rows)
    if found["partitions"]:
        output.table(PARTITION_COLUMNS, [tuple(part.values()) for part in found["partitions"]])
    if found["in_doubt"]:
        click.echo(
            "in doubt: state of subscriptions was damaged on the node's disk, and messages that this one has "
            "accepted may be delivered again."
        )


@subscription.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@yes_option
@cluster_options
def delete(names: Sequence[str], yes: bool, bootstrap: str, timeout_s: float) -> None:
    """Delete subscriptions. They must have no members. Topics keep their messages."""
    confirm(f"Delete {', '.join(names)}? Topics keep their messages.", yes)
    for name in names:

        async def work(client: Client, name: str = name) -> None:
            from postroad.client import subscriptions

            await exists(client, name)
            await subscriptions.delete(client, name)
            left = [entry.name for entry in await subscriptions.config(client, name) if entry.is_override]
            if left:  # another broker than ours keeps configs
                await subscriptions.alter_config(client, name, resets=left)

        talk_about(name, bootstrap, timeout_s, work)
        click.echo(f"deleted {name}")


for command in (peek, purge, seek, consume):
    subscription.add_command(command)


async def _note_missing(client: Client, topics: Sequence[str]) -> None:
    """Topics may be made later; more likely it's a typing error."""
    from postroad.cli.topic import known

    for topic in topics:
        try:
            await known(client, topic)
        except Failed as error:
            click.echo(f"{error.message}; it is held once it is there", err=True)


async def _check_unread(client: Client, name: str, topics: Sequence[str]) -> None:
    from postroad.client import subscriptions

    members = (await subscriptions.describe(client, name)).members if topics else ()
    for topic in topics:
        if any(topic in member.topics for member in members):
            raise Failed(f"members of {name} read {topic}: stop them first")


async def _forget(client: Client, name: str, topics: Sequence[str]) -> None:
    from postroad.client import subscriptions

    for topic in topics:
        try:
            await subscriptions.forget(client, name, [topic])
        except (UnknownTopicOrPartition, GroupIdNotFound):
            continue  # the topic was deleted


async def _describe(client: Client, name: str, all_configs: bool) -> dict[str, Any]:
    from postroad.client import doubts, subscriptions

    await exists(client, name)
    found = await subscriptions.describe(client, name)
    entries = await subscriptions.config(client, name)
    return {
        "subscription": name,
        "state": found.state,
        "coordinator": found.coordinator,
        "configs": {entry.name: entry.value for entry in entries if all_configs or entry.is_override},
        "members": [
            {
                "member": member.id,
                "client": member.client_id,
                "host": member.host,
                "topics": list(member.topics),
                "partitions": [list(topic_partition) for topic_partition in member.partitions],
            }
            for member in found.members
        ],
        "partitions": await _partitions(client, name),
        "in_doubt": bool(await doubts.in_doubt(client, doubts.SUBSCRIPTION, name, found.coordinator)),
    }


async def _partitions(client: Client, name: str) -> list[dict[str, Any]]:
    """In each where it is, and what it knows there; a broker that is not ours tells only the first."""
    from postroad.client import offsets, subscriptions

    positions = await subscriptions.positions(client, name)
    ends = await offsets.latest(client, sorted(positions))
    columns = [column.replace(" ", "_") for column in PARTITION_COLUMNS]
    rows: list[dict[str, Any]] = []
    for topic_partition in sorted(positions):
        start, lag = positions[topic_partition]
        counts: tuple[int | None, ...]
        try:
            found = await subscriptions.peek(client, name, topic_partition)
            counts = (found.ready, found.in_flight, found.waiting, found.delayed, found.dying)
        except UnsupportedVersion:
            counts = (None,) * 5
        row = (*topic_partition, start, ends[topic_partition], lag if lag >= 0 else None, *counts)
        rows.append(dict(zip(columns, row, strict=True)))
    return rows


def _topic_partitions(partitions: Sequence[Sequence[Any]]) -> str:
    """`orders/0,1,2 jobs/0`"""
    gathered: dict[str, list[str]] = {}
    for topic, index in partitions:
        gathered.setdefault(topic, []).append(str(index))
    return " ".join(f"{topic}/{','.join(indexes)}" for topic, indexes in gathered.items())
