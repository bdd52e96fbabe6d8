"""`postroad topic …`"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from postroad.cli import output
from postroad.cli.command import Group
from postroad.cli.confirmation import confirm, yes_option
from postroad.cli.numbers import COUNT, REPLICAS
from postroad.cli.session import Failed, cluster_options, json_option, talk
from postroad.errors import TopicAlreadyExists, UnknownTopicOrPartition

if TYPE_CHECKING:
    from postroad.client import Client

config_option = click.option(
    "-c",
    "--config",
    "configs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a config, such as retention.ms=86400000. May be repeated.",
)


@click.group(cls=Group)
def topic() -> None:
    """Create, list, describe, alter and delete topics."""


@topic.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("-p", "--partitions", type=COUNT, help="Number of partitions; the node has a default.")
@click.option("-r", "--replicas", type=REPLICAS, help="Number of replicas; the node has a default.")
@config_option
@click.option("--if-not-exists", is_flag=True, help="Don't fail if a topic exists already.")
@cluster_options
def create(
    names: Sequence[str],
    partitions: int | None,
    replicas: int | None,
    configs: Sequence[str],
    if_not_exists: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Create topics."""
    config = pairs(configs)

    async def work(client: Client) -> None:
        from postroad.client import topics

        for name in names:
            try:
                await topics.create(
                    client, name, partitions=partitions or -1, replicas=replicas or -1, config=config
                )
            except TopicAlreadyExists:
                if not if_not_exists:
                    raise Failed(f"topic {name} exists already") from None
                click.echo(f"{name} exists")
            else:
                click.echo(f"created {name}")

    talk(bootstrap, timeout_s, work)


@topic.command(name="list")
@click.option("--internal", is_flag=True, help="Include internal topics.")
@json_option
@cluster_options
def list_topics(internal: bool, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List topics with their partitions and replicas."""

    async def work(client: Client) -> list[tuple[output.Cell, ...]]:
        from postroad.client import topics

        return [
            (found.name, len(found.partitions), max(len(part.replicas) for part in found.partitions))
            for found in await topics.list_all(client)
            if internal or not found.is_internal
        ]

    columns = ("topic", "partitions", "replicas")
    nothing = "no topics yet: create one with `postroad topic create NAME`"
    output.listing(columns, talk(bootstrap, timeout_s, work), as_json, nothing)


@topic.command()
@click.argument("name")
@click.option("--all-configs", is_flag=True, help="Include configs that have their default.")
@json_option
@cluster_options
def describe(name: str, all_configs: bool, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Show a topic's partitions, their leaders and offsets, and its configs."""

    async def work(client: Client) -> dict[str, Any]:
        return await _describe(client, name, all_configs)

    found = talk(bootstrap, timeout_s, work)
    if as_json:
        output.write_json(found)
        return
    click.echo(f"{found['topic']}  id {found['id']}  {found['messages']} messages")
    rows = [tuple(map(_plain, partition.values())) for partition in found["partitions"]]
    output.table(list(found["partitions"][0]), rows)
    if found["configs"]:
        output.table(("config", "value"), sorted(found["configs"].items()))


@topic.command()
@click.argument("name")
@click.option("-p", "--partitions", type=COUNT, help="New number of partitions; it can only grow.")
@config_option
@click.option(
    "--reset", "resets", multiple=True, metavar="NAME", help="Reset a config to its default. May be repeated."
)
@cluster_options
def alter(
    name: str,
    partitions: int | None,
    configs: Sequence[str],
    resets: Sequence[str],
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Change a topic's configs, or add partitions."""
    changes = pairs(configs)
    if not (partitions or changes or resets):
        raise click.UsageError("nothing to change: give --partitions, --config or --reset")

    async def work(client: Client) -> None:
        from postroad.client import topics

        await known(client, name)
        if changes or resets:
            await topics.alter_config(client, name, changes, resets)
        if partitions:
            await topics.add_partitions(client, name, partitions)

    talk(bootstrap, timeout_s, work)
    click.echo(f"altered {name}")


@topic.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@yes_option
@cluster_options
def delete(names: Sequence[str], yes: bool, bootstrap: str, timeout_s: float) -> None:
    """Delete topics with all their messages."""
    confirm(f"Delete {', '.join(names)} with all messages?", yes)

    async def work(client: Client) -> None:
        from postroad.client import topics

        for name in names:
            await known(client, name)
            await topics.delete(client, [name])
            click.echo(f"deleted {name}")

    talk(bootstrap, timeout_s, work)


def pairs(configs: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE options as a mapping."""
    for given in configs:
        if "=" not in given or given.startswith("="):
            raise click.BadParameter(f"{given!r} is not NAME=VALUE")
    return {name: value for name, _, value in (given.partition("=") for given in configs)}


async def known(client: Client, name: str) -> Any:
    """The topic; if there is none, an error that names one which may have been meant."""
    try:
        return await client.topic(name)
    except UnknownTopicOrPartition:
        near = get_close_matches(name, (await client.cluster()).topics, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise Failed(f"there is no topic {name}{hint}") from None


async def _describe(client: Client, name: str, all_configs: bool) -> dict[str, Any]:
    from postroad.client import TopicPartition, offsets, topics
    from postroad.cluster.ids import id_text

    found = await known(client, name)
    topic_partitions = [TopicPartition(name, partition.number) for partition in found.partitions]
    first = await offsets.earliest(client, topic_partitions)
    last = await offsets.latest(client, topic_partitions)
    partitions = [
        {
            "partition": partition.number,
            "leader": partition.leader,
            "epoch": partition.leader_epoch,
            "replicas": list(partition.replicas),
            "in_sync": list(partition.isr),
            "start": first[topic_partition],
            "end": last[topic_partition],
        }
        for topic_partition, partition in zip(topic_partitions, found.partitions, strict=True)
    ]
    entries = await topics.describe_config(client, name)
    return {
        "topic": name,
        "id": id_text(found.id),  # as it names the topic's directories
        "internal": found.is_internal,
        "messages": sum(
            last[topic_partition] - first[topic_partition] for topic_partition in topic_partitions
        ),
        "partitions": partitions,
        "configs": {entry.name: entry.value for entry in entries if all_configs or entry.is_override},
    }


def _plain(value: Any) -> output.Cell:
    return ", ".join(map(str, value)) if isinstance(value, list) else value
