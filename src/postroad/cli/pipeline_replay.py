"""`postroad pipeline replay`"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from postroad.cli.command import Command
from postroad.cli.pipeline import Told, iceberg_options, spark_options, spark_session, stopping
from postroad.cli.redrive import RateType
from postroad.cli.session import Failed, address_to_hand_on, bootstrap_option, json_option

if TYPE_CHECKING:
    from postroad.pipelines.replay import Replayed

EDGE = "beginning, end, an offset, a time (2026-03-01T08:00), so long ago (2h), or offsets as JSON"


@click.command(cls=Command)
@bootstrap_option
@click.option(
    "-t", "--topic", "topics", multiple=True, required=True, help="What to replay; may be repeated."
)
@click.option("--to", metavar="TOPIC", help="Where the messages go.")
@click.option("--to-origin", is_flag=True, help="Each message goes to the topic that it came from.")
@click.option("--archive", metavar="DIR|URL", help="Read this archive instead of the topics.")
@iceberg_options
@click.option("--source", metavar="HOST:PORT[,…]", help="Read the topics of this cluster.")
@click.option("--from", "since", default="beginning", show_default=True, metavar="EDGE", help=f"{EDGE}.")
@click.option(
    "--until",
    default="end",
    show_default=True,
    metavar="EDGE",
    help="As --from; that message is not replayed.",
)
@click.option("--where", metavar="SQL", help="Only messages for which this holds.")
@click.option("--keep-timestamps", is_flag=True, help="Messages keep their time; otherwise it is now.")
@click.option("--keep-partitions", is_flag=True, help="Messages keep the number of their partition.")
@click.option("--rate", type=RateType(), metavar="N/s", help="At most this many messages a second.")
@click.option(
    "--name",
    help="Name of this replay, to continue it when it is run again; made from its options by default.",
)
@spark_options
@json_option
def replay(
    bootstrap: str,
    topics: Sequence[str],
    to: str | None,
    to_origin: bool,
    archive: str | None,
    catalog: str,
    table: str,
    source: str | None,
    since: str,
    until: str,
    where: str | None,
    keep_timestamps: bool,
    keep_partitions: bool,
    rate: float | None,
    name: str | None,
    master: str | None,
    confs: Sequence[str],
    as_json: bool,
) -> None:
    """Put messages of a topic or an archive into a topic again, each once.

    Run it as often as you like: what was put is not put twice. One that was interrupted goes on where it was,
    one that was complete says so. Where it ends is decided when it first runs; to replay what came since,
    or the same once more, give it another --name.

    SQL sees key and value (bytes: cast(value as string)), headers, topic, partition, offset and timestamp,
    and the JSON columns of an archive.

    \b
    postroad pipeline replay -t orders --to orders-test --from 2026-03-01T08:00 --until 2026-03-01T09:00
    postroad pipeline replay -t orders --to-origin --archive lake/orders --where "customer = 'acme'"
    postroad pipeline replay -t orders --to orders --from 2h --name again-1 --rate 500/s
    """
    if to_origin == (to is not None):
        raise click.UsageError("say where the messages go: --to TOPIC or --to-origin")
    if source is not None and archive is not None:
        raise click.UsageError("messages come from --source or from --archive, not from both")
    address = address_to_hand_on(bootstrap)
    with (
        spark_session("replay", master, confs, address, source) as spark,
        stopping() as stop,
        Told("replaying", as_json) as told,
    ):
        from postroad.pipelines import edges
        from postroad.pipelines.replay import replay as run
        from postroad.pipelines.replay_source import ReplaySettings

        settings = ReplaySettings(
            address,
            topics,
            to,
            source_bootstrap=source,
            archive=archive,
            catalog=catalog,
            table=table,
            since=edges.parse(since, "--from", edges.BEGINNING_WORDS),
            until=edges.parse(until, "--until", edges.END_WORDS),
            where=where,
            keeps_timestamps=keep_timestamps,
            keeps_partitions=keep_partitions,
            rate=rate,
            name=name,
        )
        done = run(spark, settings, report=told.report, stop=stop)
    _say(done, as_json)
    if not done.is_complete:
        raise Failed("it was stopped: run it again, and it goes on where it was")


def _say(done: Replayed, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(done._asdict()))
    elif done.was_complete:
        click.echo(f"replay {done.name} was complete already: {done.rows} messages; nothing was written")
    else:
        click.echo(f"replay {done.name}: {done.rows} messages")
