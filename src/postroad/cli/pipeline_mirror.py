"""`postroad pipeline mirror`"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from postroad.cli.command import Command
from postroad.cli.duration import DurationType
from postroad.cli.mirror import carried_text
from postroad.cli.pipeline import Told, spark_options, spark_session, stopping
from postroad.cli.session import Failed, address_to_hand_on, bootstrap_option, json_option

if TYPE_CHECKING:
    from postroad.pipelines.mirror import Mirrored


@click.command(cls=Command)
@bootstrap_option
@click.option("--to", "target", required=True, metavar="HOST:PORT[,…]", help="The cluster that gets a copy.")
@click.option("-t", "--topic", "topics", multiple=True, help="What to mirror; may be repeated.")
@click.option("--pattern", metavar="REGEX", help="Mirror all topics whose whole name matches.")
@click.option("--prefix", default="", metavar="TEXT", help="Put this before topics' names at the target.")
@click.option(
    "-g", "--group", "groups", multiple=True, help="A consumer group to carry over; may be repeated."
)
@click.option("--group-pattern", metavar="REGEX", help="Carry over all groups whose whole name matches.")
@click.option(
    "-s",
    "--subscription",
    "subscriptions",
    multiple=True,
    help="A subscription to carry over; may be repeated.",
)
@click.option(
    "--subscription-pattern", metavar="REGEX", help="Carry over all subscriptions whose whole name matches."
)
@click.option("--once", is_flag=True, help="Mirror what is there now, then end.")
@click.option(
    "--every",
    "every_ms",
    type=DurationType(),
    default="5s",
    show_default=True,
    metavar="DURATION",
    help="Without --once: how often to look for new messages and positions.",
)
@click.option(
    "--name", help="Name of this mirror, by default the source cluster's id. Each mirror needs its own."
)
@click.option("--accept-loss", is_flag=True, help="Go on where the source deleted what was not mirrored yet.")
@click.option(
    "--commit-group", metavar="GROUP", help="Commit progress to this group of the source, to see the lag."
)
@spark_options
@json_option
def mirror(
    bootstrap: str,
    target: str,
    topics: Sequence[str],
    pattern: str | None,
    prefix: str,
    groups: Sequence[str],
    group_pattern: str | None,
    subscriptions: Sequence[str],
    subscription_pattern: str | None,
    once: bool,
    every_ms: int,
    name: str | None,
    accept_loss: bool,
    commit_group: str | None,
    master: str | None,
    confs: Sequence[str],
    as_json: bool,
) -> None:
    """Copy topics of the cluster at --bootstrap to the one at --to, each message once.

    Postroad or Apache Kafka, on either side. Partition numbers, keys, headers and times stay; headers
    postroad-origin-… tell where a message comes from. Missing topics are created like their originals. A
    message never comes back to a cluster where it has been: two clusters may mirror each other.

    Consumer groups and subscriptions are carried over: their positions at the source, translated to offsets
    of the target, never ahead of what is mirrored. Stop it as you like and start it again, anywhere: it goes
    on where it was.

    \b
    postroad pipeline mirror --to dc2:9092 --topic orders --once
    postroad pipeline mirror -b kafka:9092 --to road:9092 --pattern 'orders|paid-.*' --group-pattern '.*'
    postroad pipeline mirror --to dc2:9092 --pattern '.*' --prefix dc1. --commit-group mirror-dc2
    """
    address = address_to_hand_on(bootstrap)
    with (
        spark_session("mirror", master, confs, address, target) as spark,
        stopping() as stop,
        Told("mirroring", as_json) as told,
    ):
        from postroad.mirrors.positions import Wanted
        from postroad.pipelines.mirror import MirrorSettings
        from postroad.pipelines.mirror import mirror as run

        settings = MirrorSettings(
            address,
            target,
            topics,
            pattern=pattern,
            prefix=prefix,
            groups=groups,
            group_pattern=group_pattern,
            subscriptions=Wanted(subscriptions, subscription_pattern),
            name=name,
            once=once,
            every_s=every_ms / 1000,
            accepts_loss=accept_loss,
            commit_group=commit_group,
        )
        done = run(spark, settings, report=told.report, stop=stop)
    _say(done, target, as_json)
    if once and not done.is_complete:
        raise Failed("it was stopped: run it again, and it goes on where it was")
    if once and (refused := [name for name, each in done.subscriptions.items() if each.refused]):
        raise Failed(f"positions were not carried over: {', '.join(refused)}")


def _say(done: Mirrored, target: str, as_json: bool) -> None:
    if as_json:
        subscriptions = {name: carried._asdict() for name, carried in done.subscriptions.items()}
        click.echo(json.dumps({**asdict(done), "subscriptions": subscriptions}))
        return
    click.echo(f"mirrored {done.rows} messages to {target}")
    for group, count in sorted(done.groups.items()):
        click.echo(f"group {group}: {count} positions were moved")
    for name, carried in sorted(done.subscriptions.items()):
        click.echo(f"subscription {name}: {carried_text(carried._asdict())}")
