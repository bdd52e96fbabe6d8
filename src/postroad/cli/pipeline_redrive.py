"""`postroad pipeline redrive`"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from postroad.cli.command import Command
from postroad.cli.pipeline import Told, spark_options, spark_session, stopping
from postroad.cli.redrive import RateType
from postroad.cli.session import Failed, address_to_hand_on, bootstrap_option, json_option

if TYPE_CHECKING:
    from postroad.pipelines.redrive import Redriven


@click.command(cls=Command)
@click.argument("name", metavar="SUBSCRIPTION|TOPIC")
@bootstrap_option
@click.option("--where", metavar="SQL", help="Only letters for which this holds.")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="COLUMN=SQL",
    help="Change key, value, headers or topic of what is sent; may be repeated.",
)
@click.option(
    "--function",
    metavar="MODULE:NAME",
    help="A Python function: a dict in, a dict out, or None for a letter that stays.",
)
@click.option("--to", metavar="TOPIC", help="Send all to this topic; by default each goes to its own.")
@click.option(
    "--to-all",
    is_flag=True,
    help="For all subscriptions of the topic; otherwise only for the one in which the letter died.",
)
@click.option("--rate", type=RateType(), metavar="N/s", help="At most this many a second.")
@click.option("--dry-run", is_flag=True, help="Only count them.")
@click.option(
    "--abandon",
    is_flag=True,
    help="Give up an earlier redrive that was interrupted and can't be finished: what it has sent already "
    "may be sent again.",
)
@spark_options
@json_option
def redrive(
    name: str,
    bootstrap: str,
    where: str | None,
    sets: Sequence[str],
    function: str | None,
    to: str | None,
    to_all: bool,
    rate: float | None,
    dry_run: bool,
    abandon: bool,
    master: str | None,
    confs: Sequence[str],
    as_json: bool,
) -> None:
    """Repair dead letters and send them back, each once: those of a subscription, or of a dead-letter topic.

    SQL sees key, value, headers, topic, partition, offset and timestamp of the letter, and of what it tells:
    origin_topic, origin_partition, origin_offset, origin_timestamp, subscription, reason, deliveries and
    died_at. A function gets the same as a dict, and gives back key, value, headers and topic.

    Letters that don't match stay. What was sent is struck off the dead letters, as `postroad redrive` does.
    Run it as often as you like, and stop it at any time: no letter is sent twice. What was interrupted is
    finished first, as it was begun; where that can't be it says so, and what to do.

    \b
    postroad pipeline redrive workers --dry-run --where "reason = 'attempts'"
    postroad pipeline redrive workers --where "deliveries < 9 and died_at > '2026-03-01'" --rate 500/s
    postroad pipeline redrive workers --set "value = replace(cast(value as string), 'EURO', 'EUR')"
    postroad pipeline redrive workers.dead --function repairs:with_currency --to orders-by-hand
    """
    address = address_to_hand_on(bootstrap)
    with (
        spark_session("redrive", master, confs, address) as spark,
        stopping() as stop,
        Told("redriving", as_json) as told,
    ):
        from postroad.pipelines.letters import parse_set
        from postroad.pipelines.redrive import RedriveSettings
        from postroad.pipelines.redrive import redrive as run

        settings = RedriveSettings(
            address,
            name,
            where=where,
            sets=dict(map(parse_set, sets)),
            function=function,
            to=to,
            to_all=to_all,
            rate=rate,
            is_dry=dry_run,
            abandons=abandon,
        )
        done = run(spark, settings, report=told.report, stop=stop)
    _say(done, dry_run, as_json)


def _say(done: Redriven, dry_run: bool, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({**asdict(done), "dry_run": dry_run}))
    else:
        verb = "would send" if dry_run else "sent"
        click.echo(f"{verb} {done.sent} of {done.seen} dead letters back; {done.kept} don't match")
        if done.finished:
            click.echo(f"before that a step of {done.finished} letters was finished, which was interrupted")
        if done.abandoned:
            click.echo(
                f"a step of at most {done.abandoned} letters was given up: some of them may be sent twice"
            )
    if done.failed:
        reasons = "; ".join(f"{count} × {reason}" for reason, count in sorted(done.failed.items()))
        raise Failed(f"some could not be sent back and stay: {reasons}")
    if not done.is_complete:
        raise Failed("it was stopped: run it again for the rest")
