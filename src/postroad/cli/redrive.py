"""`postroad redrive`: dead letters back to their topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from postroad.cli import output
from postroad.cli.command import RAW, Command, as_bytes
from postroad.cli.numbers import COUNT
from postroad.cli.param_type import ParamType
from postroad.cli.session import Failed, cluster_options, json_option, talk
from postroad.cli.start import Start, StartType
from postroad.errors import UnknownTopicOrPartition

if TYPE_CHECKING:
    from postroad.client import Client
    from postroad.client.redrive import Filter, Report


class RateType(ParamType[float]):
    name = "rate"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            rate = float(str(value).removesuffix("/s"))
        except ValueError:
            rate = 0
        if not 0 < rate < float("inf"):
            self.fail(f"{value!r} is not a rate such as 100/s", param, ctx)
        return rate


@click.command(cls=Command)
@click.argument("name", metavar="SUBSCRIPTION|TOPIC")
@click.option("--to", metavar="TOPIC", help="Send all to this topic; by default each goes to its own.")
@click.option(
    "--to-all",
    is_flag=True,
    help="For all subscriptions of the topic; otherwise only for the one in which the letter died.",
)
@click.option(
    "--reason",
    "reasons",
    multiple=True,
    type=click.Choice(["attempts", "rejected", "expired", "invalid"]),
    help="Only letters with this reason.",
)
@click.option(
    "--filter",
    "filters",
    multiple=True,
    type=RAW,
    metavar="HEADER=VALUE",
    help="Only letters with this header.",
)
@click.option(
    "--key-matches", metavar="PATTERN", help="Only letters whose key matches; * and ? are wildcards."
)
@click.option(
    "--since",
    type=StartType(),
    metavar="TIME",
    help="Only letters that died since this time: 2h (ago), 2026-03-01T08:00.",
)
@click.option("--rate", type=RateType(), metavar="N/s", help="At most this many a second.")
@click.option("-n", "--limit", type=COUNT, help="At most this many.")
@click.option("--dry-run", is_flag=True, help="Only count them.")
@json_option
@cluster_options
def redrive(
    name: str,
    to: str | None,
    to_all: bool,
    reasons: Sequence[str],
    filters: Sequence[str],
    key_matches: str | None,
    since: Start | None,
    rate: float | None,
    limit: int | None,
    dry_run: bool,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Send dead letters back: those of a subscription, or those in a dead-letter topic.

    Each goes to the topic it came from, as a new message without the marks of its death, and is struck off
    the dead letters once it is stored there. There it is for the subscription in which it died; others pass
    it over, unless --to-all is given or --to names another topic. Letters that don't match stay. Run it as
    often as you like; one that is interrupted loses nothing, and may send a few letters twice.

    \b
    postroad redrive workers --dry-run
    postroad redrive workers --reason attempts --since 2h --rate 100/s
    postroad redrive workers.dead --to jobs-by-hand --filter tenant=acme
    """
    from postroad.client.redrive import Redrive, Report, dead_topic_of

    filter_ = _filter(reasons, filters, key_matches, since)

    async def work(client: Client) -> Report:
        dead_topic = await dead_topic_of(client, name)
        if dead_topic != name and await client.topic_now(dead_topic) is None:
            return Report()  # none of its messages has died yet
        run = Redrive(
            client, dead_topic, filter_=filter_, to=to, to_all=to_all, rate=rate, limit=limit, dry=dry_run
        )
        try:
            with output.growing_progress("redriving") as progress:
                return await run.run(progress)
        except UnknownTopicOrPartition:
            raise Failed(f"there is no subscription and no topic {name}") from None

    report = talk(bootstrap, timeout_s, work)
    if as_json:
        output.write_json(_as_object(report, dry_run))
    else:
        verb = "would send" if dry_run else "sent"
        click.echo(f"{verb} {report.sent} of {report.seen} dead letters back; {report.kept} don't match")
    if report.failed:
        reasons_of = "; ".join(f"{count} × {reason}" for reason, count in sorted(report.failed.items()))
        raise Failed(f"some could not be sent back and stay: {reasons_of}")


def _filter(
    reasons: Sequence[str], filters: Sequence[str], key_matches: str | None, since: Start | None
) -> Filter:
    from postroad.client.redrive import Filter

    if since is not None and since.kind != "time":
        raise click.BadParameter("a time: 2h (ago), 2026-03-01T08:00", param_hint="--since")
    headers: list[tuple[str, bytes]] = []
    for given in filters:
        header, equals, value = given.partition("=")
        if not equals or not header:
            raise click.BadParameter(f"{given!r} is not HEADER=VALUE", param_hint="--filter")
        headers.append((header, as_bytes(value)))
    return Filter(reasons, headers, key_matches, since.value if since else 0)


def _as_object(report: Report, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "seen": report.seen,
        "sent": report.sent,
        "kept": report.kept,
        "failed": report.failed,
    }
