"""`postroad pipeline merge`"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from postroad.cli.command import Command
from postroad.cli.duration import DurationType
from postroad.cli.numbers import INT32_MAX, WholeNumber
from postroad.cli.pipeline import Told, catalog_option, spark_options, spark_session, stopping
from postroad.cli.session import address_to_hand_on, bootstrap_option, json_option

if TYPE_CHECKING:
    from postroad.pipelines.merge import MergeResult

HOUR_MS: Final = 3_600_000


@click.command(cls=Command)
@bootstrap_option
@click.option("-t", "--topic", required=True, help="What to merge.")
@click.option("--to", required=True, metavar="DIR|URL", help="Where the table is, or is to be.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["delta", "iceberg"]),
    default="delta",
    show_default=True,
    help="The table's format.",
)
@click.option(
    "--values",
    type=click.Choice(["json", "debezium", "bytes"]),
    default="json",
    show_default=True,
    help="What values are: rows as JSON objects, Debezium's events, or bytes that are kept as they are.",
)
@click.option(
    "--key",
    metavar="COLUMN[,…]",
    help="The columns that tell rows apart; by default the message's key does.",
)
@click.option("--json-schema", metavar="DDL", help="Types that columns have: 'amount double, id string'.")
@click.option("--once", is_flag=True, help="Merge what is there now, then end.")
@click.option(
    "--every",
    "every_ms",
    type=DurationType(),
    default="10s",
    show_default=True,
    metavar="DURATION",
    help="Without --once: how often new messages are merged.",
)
@click.option(
    "--bad-rows",
    type=click.Choice(["fail", "drop"]),
    default="fail",
    show_default=True,
    help="Messages that are no such values, have no key, or don't fit a column: fail, or leave them out.",
)
@click.option(
    "--accept-loss", is_flag=True, help="Go on where messages were deleted before they were merged."
)
@click.option(
    "--buckets",
    type=WholeNumber(1, 10_000),
    default=8,
    show_default=True,
    help="How many tasks share a step. Fixed when the table is made.",
)
@click.option(
    "--step",
    "step_offsets",
    type=WholeNumber(1, INT32_MAX),
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="How many messages a commit takes in, at most.",
)
@click.option(
    "--keep",
    "keep_ms",
    type=DurationType(shortest_ms=HOUR_MS, why=": somebody may be reading an earlier state"),
    default="1d",
    show_default=True,
    metavar="DURATION",
    help="How long earlier states of the table can be read.",
)
@catalog_option
@click.option(
    "--table",
    default="postroad.merged",
    show_default=True,
    metavar="NAMESPACE.NAME",
    help="Iceberg: the table's name in its catalogue.",
)
@spark_options
@json_option
def merge(
    bootstrap: str,
    topic: str,
    to: str,
    format_: Any,
    values: Any,
    key: str | None,
    json_schema: str | None,
    once: bool,
    every_ms: int,
    bad_rows: Any,
    accept_loss: bool,
    buckets: int,
    step_offsets: int,
    keep_ms: int,
    catalog: str,
    table: str,
    master: str | None,
    confs: Sequence[str],
    as_json: bool,
) -> None:
    """Keep a table with one row for each key of a topic, as it is now.

    The topic is compacted, or has a database's changes, as Debezium writes them. A message makes its key's
    row what it says, a tombstone or a delete takes the row away. Each change counts once, wherever the merge
    is killed and started again: the table itself says up to where it is merged.

    \b
    postroad pipeline merge --topic customers --to lake/customers --once
    postroad pipeline merge -t shop.public.orders --values debezium --to lake/orders --every 1m
    postroad pipeline merge -t prices --key 'id,region' --to lake/prices --format iceberg
    """
    address = address_to_hand_on(bootstrap)
    with (
        spark_session("merge", master, confs, address) as spark,
        stopping() as stop,
        Told("merging", as_json) as told,
    ):
        from postroad.pipelines.archive import kinds_of_ddl
        from postroad.pipelines.merge import MergeSettings
        from postroad.pipelines.merge import merge as run

        settings = MergeSettings(
            address,
            topic,
            to,
            format=format_,
            values=values,
            key=[name.strip() for name in key.split(",")] if key else (),
            json_kinds=kinds_of_ddl(json_schema) if json_schema else {},
            once=once,
            every_s=every_ms / 1000,
            buckets=buckets,
            bad_rows=bad_rows,
            accepts_loss=accept_loss,
            keep_s=keep_ms / 1000,
            step_offsets=step_offsets,
            catalog=catalog,
            table=table,
        )
        done = run(spark, settings, report=told.report, stop=stop)
    _say(done, to, as_json)


def _say(done: MergeResult, to: str, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(asdict(done)))
        return
    click.echo(f"merged {done.upserts} rows into {to}, and took {done.deletes} away")
    if done.bad:
        click.echo(f"{done.bad} messages were left out")
