"""`postroad sql`: questions to topics."""

from __future__ import annotations

import csv
import json
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from postroad.cli import output
from postroad.cli.command import Command
from postroad.cli.pipeline import iceberg_options, spark_options, spark_session
from postroad.cli.session import address_to_hand_on, bootstrap_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE_ROWS: Final = 1000  # more than that nobody reads as a table


@click.command(cls=Command)
@click.argument("query")
@bootstrap_option
@click.option("--archive", metavar="DIR|URL", help="Also query what was archived there.")
@click.option("--archive-only", is_flag=True, help="Query the archive only.")
@iceberg_options
@click.option("--json", "form", flag_value="json", help="Print a line of JSON for each row.")
@click.option("--csv", "form", flag_value="csv", help="Print CSV with a header.")
@spark_options
def sql(
    query: str,
    bootstrap: str,
    archive: str | None,
    archive_only: bool,
    catalog: str,
    table: str,
    form: str | None,
    master: str | None,
    confs: Sequence[str],
) -> None:
    """Query topics in SQL. Each topic is a table; put a name with dots or dashes in backquotes.

    Columns: topic, partition, offset, timestamp, timestampType, key, value, headers, date, and the JSON
    columns of an archive that has them. Keys and values are bytes: cast(value as string) makes text.

    \b
    postroad sql "select date, count(*) from orders group by date order by date" --archive lake/orders
    postroad sql 'select cast(value as string) from `orders.dead` limit 10' --json
    """
    if archive_only and archive is None:
        raise click.UsageError("--archive-only needs --archive")
    address = None if archive_only else address_to_hand_on(bootstrap)
    with spark_session("sql", master, confs) as spark:
        from postroad.pipelines.history import Sources
        from postroad.pipelines.queries import query as ask

        sources = Sources(address, archive, catalog, table)
        _WRITERS[form](ask(spark, query, sources))


def _write_table(found: DataFrame) -> None:
    rows = found.limit(TABLE_ROWS + 1).collect()
    shown = [tuple(_cell(cell) for cell in row) for row in rows[:TABLE_ROWS]]
    if shown:
        output.table(found.columns, shown)
    else:
        click.echo("no rows", err=True)
    if len(rows) > TABLE_ROWS:
        click.echo(f"the first {TABLE_ROWS} rows; all of them with --json or --csv", err=True)


def _write_json(found: DataFrame) -> None:
    for row in found.toLocalIterator():
        click.echo(json.dumps({name: _plain(cell) for name, cell in zip(found.columns, row, strict=True)}))


def _write_csv(found: DataFrame) -> None:
    writer = csv.writer(sys.stdout)
    writer.writerow(found.columns)
    rows: Iterator[Any] = found.toLocalIterator()
    while some := list(islice(rows, TABLE_ROWS)):
        writer.writerows([_cell(cell) for cell in row] for row in some)


_WRITERS: Final = {None: _write_table, "json": _write_json, "csv": _write_csv}


def _cell(value: Any) -> output.Cell:
    plain = _plain(value)
    return json.dumps(plain) if isinstance(plain, list | dict) else plain


def _plain(value: Any) -> Any:
    """The value as JSON has it; bytes that are not text become base64."""
    if isinstance(value, bytes | bytearray):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return b64encode(value).decode()
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if hasattr(value, "asDict"):
        return {name: _plain(cell) for name, cell in value.asDict().items()}
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(cell) for key, cell in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(cell) for cell in value]
    return value
