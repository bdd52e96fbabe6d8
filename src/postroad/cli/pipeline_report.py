"""`postroad pipeline report`"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from postroad.cli.command import Command
from postroad.cli.pipeline import spark_options, spark_session
from postroad.cli.session import address_to_hand_on, bootstrap_option, json_option
from postroad.cli.start import Start, StartType


@click.command(cls=Command)
@bootstrap_option
@click.option(
    "-t", "--topic", "topics", multiple=True, required=True, help="What to report on; may be repeated."
)
@click.option("--to", required=True, metavar="DIR|URL", help="Directory for the page and the tables.")
@click.option(
    "--from",
    "since",
    type=StartType(),
    metavar="TIME",
    help="Messages from this time on: 2h (ago), 2026-03-01T08:00.",
)
@click.option("--until", type=StartType(), metavar="TIME", help="Messages before this time.")
@click.option("--archive", metavar="DIR|URL", help="Read this archive, not the topics.")
@click.option(
    "--time-header",
    metavar="NAME",
    help="A header that says when a message was created: ISO 8601, or milliseconds since 1970. "
    "CloudEvents' ce_time is known.",
)
@click.option(
    "--dead-letters",
    multiple=True,
    metavar="TOPIC",
    help="A topic with dead letters of these topics, besides those that are found; may be repeated.",
)
@spark_options
@json_option
def report(
    bootstrap: str,
    topics: Sequence[str],
    to: str,
    since: Start | None,
    until: Start | None,
    archive: str | None,
    time_header: str | None,
    dead_letters: Sequence[str],
    master: str | None,
    confs: Sequence[str],
    as_json: bool,
) -> None:
    """Report what happened in topics: a page with charts, and its tables as Parquet.

    Traffic by the minute, sizes, latency as far as it is known, lag of consumers, dead letters, hot keys and
    the balance of partitions. The page needs no server and no network.

    \b
    postroad pipeline report --topic orders --to reports/today --from 24h
    postroad pipeline report -t orders -t payments --to reports/march --archive lake
    """
    first, end = _moment(since, "--from"), _moment(until, "--until")
    address = address_to_hand_on(bootstrap)
    # With an archive the cluster is asked for lag alone, and the page says if it doesn't answer.
    with spark_session("report", master, confs, None if archive else address) as spark:
        from postroad.pipelines.report import ReportSettings
        from postroad.pipelines.report import report as run

        settings = ReportSettings(address, topics, to, first, end, archive, time_header, dead_letters)
        done = run(spark, settings)
    if as_json:
        click.echo(json.dumps(done._asdict()))
        return
    for line in (done.headline, *done.findings, done.page):
        click.echo(line)


def _moment(given: Start | None, option: str) -> datetime | None:
    if given is None:
        return None
    if given.kind != "time":
        raise click.BadParameter(
            "say a time ago (2h) or a date and time (2026-03-01T08:00)", param_hint=option
        )
    return datetime.fromtimestamp(given.value / 1000, UTC)
