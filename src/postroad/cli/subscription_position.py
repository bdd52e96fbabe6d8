"""`postroad subscription purge` and `seek`: where a subscription goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from postroad.cli import output
from postroad.cli.command import Command
from postroad.cli.confirmation import confirm, yes_option
from postroad.cli.session import cluster_options, json_option
from postroad.cli.start import END, Start, StartType, resolve
from postroad.cli.subscription_talk import chosen, places_option, talk_about

if TYPE_CHECKING:
    from postroad.client import Client

Row = tuple[output.Cell, ...]


@click.command(cls=Command)
@click.argument("name")
@places_option
@yes_option
@cluster_options
def purge(name: str, wanted: Sequence[str], yes: bool, bootstrap: str, timeout_s: float) -> None:
    """Drop all messages that the subscription has now, also those that are delayed or in flight.

    They don't become dead letters, and the topics keep them.
    """
    confirm(f"Purge {', '.join(wanted) or 'all messages'} of {name}?", yes)

    async def work(client: Client) -> int:
        from postroad.client import subscriptions

        topic_partitions = await chosen(client, name, wanted)
        before = await subscriptions.positions(client, name)
        await subscriptions.move(client, name, await resolve(client, topic_partitions, END))
        return sum(max(0, before[topic_partition].lag) for topic_partition in topic_partitions)

    count = talk_about(name, bootstrap, timeout_s, work)
    click.echo(f"purged {name}: {count} {'message' if count == 1 else 'messages'}")


@click.command(cls=Command)
@click.argument("name")
@click.option(
    "--to",
    "start",
    required=True,
    type=StartType(),
    metavar="START",
    help="As `consume --from`: earliest, latest, 1200, -10, 15m, 2026-03-01T08:00.",
)
@places_option
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@json_option
@cluster_options
def seek(
    name: str,
    start: Start,
    wanted: Sequence[str],
    dry_run: bool,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Continue from another offset or time. Messages from there on are delivered again, acknowledged ones
    too; earlier ones count as done. Consumers lose what they hold."""

    async def work(client: Client) -> list[Row]:
        from postroad.client import subscriptions

        topic_partitions = await chosen(client, name, wanted)
        before = await subscriptions.positions(client, name)
        after = await resolve(client, topic_partitions, start)
        if not dry_run:
            await subscriptions.move(client, name, after)
        return [
            (*topic_partition, before[topic_partition].start, after[topic_partition])
            for topic_partition in topic_partitions
        ]

    output.moves(talk_about(name, bootstrap, timeout_s, work), as_json, dry_run)
