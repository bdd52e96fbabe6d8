"""`postroad pipeline archive`"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from postroad.cli.command import Command
from postroad.cli.duration import DurationType
from postroad.cli.pipeline import (
    Told,
    iceberg_options,
    of_values,
    spark_options,
    spark_session,
    stopping,
    values_options,
)
from postroad.cli.session import address_to_hand_on, bootstrap_option, json_option
from postroad.cli.topic import pairs

if TYPE_CHECKING:
    from postroad.pipelines.archive import Archived

HOUR_MS = 3_600_000


@click.command(cls=Command)
@bootstrap_option
@click.option(
    "-t", "--topic", "topics", multiple=True, required=True, help="What to archive; may be repeated."
)
@click.option("--to", required=True, metavar="DIR|URL", help="Where the table is, or is to be.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["delta", "iceberg", "parquet"]),
    default="delta",
    show_default=True,
    help="The table's format.",
)
@click.option("--once", is_flag=True, help="Archive what is there now, then end.")
@click.option(
    "--every",
    "every_ms",
    type=DurationType(),
    default="1m",
    show_default=True,
    metavar="DURATION",
    help="Without --once: how often new messages are committed.",
)
@click.option("--json-columns", is_flag=True, help="The fields of JSON values become columns, too.")
@click.option(
    "--json-schema", metavar="DDL", help="Types that JSON columns have: 'amount double, id string'."
)
@values_options
@click.option(
    "--bad-rows",
    type=click.Choice(["keep", "fail", "drop", "deadletter"]),
    default="keep",
    show_default=True,
    help="Values that don't fit their columns: keep them with the reason in column `bad`, fail, leave them "
    "out, or send them to --dead-letter-topic.",
)
@click.option("--dead-letter-topic", default="", metavar="TOPIC", help="Where bad rows go.")
@click.option(
    "--optimize", is_flag=True, help="Merge small files into large ones: at the end, or every hour."
)
@click.option(
    "--retention",
    "retention_ms",
    type=DurationType(),
    metavar="DURATION",
    help="Delete messages from the archive that are older than this: 90d; at least 1h.",
)
@click.option(
    "--checkpoint", metavar="DIR|URL", help="Where Spark keeps its checkpoint; below --to by default."
)
@iceberg_options
@click.option(
    "-o",
    "--option",
    "source",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the source, such as maxOffsetsPerTrigger=1000000.",
)
@spark_options
@json_option
def archive(
    bootstrap: str,
    topics: Sequence[str],
    to: str,
    format_: Any,
    once: bool,
    every_ms: int,
    json_columns: bool,
    json_schema: str | None,
    values: str | None,
    schema_registry: str | None,
    bad_rows: Any,
    dead_letter_topic: str,
    optimize: bool,
    retention_ms: int | None,
    checkpoint: str | None,
    catalog: str,
    table: str,
    source: Sequence[str],
    master: str | None,
    confs: Sequence[str],
    as_json: bool,
) -> None:
    """Keep topics in a table of Delta, Iceberg or Parquet, each message once.

    The table has a row for each message, with key, value, headers, offset and timestamp, and is partitioned
    by topic and date. Stop it as you like and start it again: it goes on where the table ends.

    \b
    postroad pipeline archive --topic orders --to lake/orders --once
    postroad pipeline archive -t orders -t payments --to lake --format iceberg --every 5m
    postroad pipeline archive -t orders --to lake --once --json-columns --optimize --retention 365d
    postroad pipeline archive -t orders --to lake --values avro --schema-registry http://127.0.0.1:8080
    """
    if retention_ms is not None and retention_ms < HOUR_MS:
        raise click.BadParameter(
            "at least 1h: that is how often it is looked after", param_hint="--retention"
        )
    options = {**pairs(source), **of_values(values, schema_registry)}
    address = address_to_hand_on(bootstrap)
    with (
        spark_session("archive", master, confs, address) as spark,
        stopping() as stop,
        Told("archiving", as_json) as told,
    ):
        from postroad.pipelines.archive import ArchiveSettings, kinds_of_ddl
        from postroad.pipelines.archive import archive as run

        settings = ArchiveSettings(
            address,
            topics,
            to,
            format=format_,
            once=once,
            every_s=every_ms / 1000,
            checkpoint=checkpoint,
            catalog=catalog,
            table=table,
            json_columns=json_columns or json_schema is not None,
            json_kinds=kinds_of_ddl(json_schema) if json_schema else {},
            bad_rows=bad_rows,
            dead_letter_topic=dead_letter_topic,
            optimize=optimize,
            retention_ms=retention_ms,
            source=options,
        )
        done = run(spark, settings, report=told.report, stop=stop)
    _say(done, to, as_json)


def _say(done: Archived, to: str, as_json: bool) -> None:
    if as_json:
        optimized = done.optimized._asdict() if done.optimized else None
        click.echo(json.dumps({**done._asdict(), "optimized": optimized}))
        return
    click.echo(f"archived {done.rows} messages to {to}")
    if done.optimized:
        click.echo(f"{done.optimized.files_before} files are {done.optimized.files_after} now")
    if done.files_deleted:
        click.echo(f"{done.files_deleted} files with older messages were deleted or replaced")
