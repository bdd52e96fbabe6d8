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
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from postroad.cli import output
from postroad.cli.command import Command
from postroad.cli.pipeline import (
    errors_told,
    iceberg_options,
    of_values,
    spark_options,
    spark_session,
    values_options,
)
from postroad.cli.session import address_to_hand_on, bootstrap_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHORT_OFFSETS_MAX: Final = 1_000_000  # a query over more may take so long that compiled code pays
TABLE_ROWS: Final = 1000  # more than that nobody reads as a table


@click.command(cls=Command)
@click.argument("query")
@bootstrap_option
@click.option("--archive", metavar="DIR|URL", help="Also query what was archived there.")
@click.option("--archive-only", is_flag=True, help="Query the archive only.")
@iceberg_options
@values_options
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
    values: str | None,
    schema_registry: str | None,
    form: str | None,
    master: str | None,
    confs: Sequence[str],
) -> None:
    """Query topics in SQL. Each topic is a table; put a name with dots or dashes in backquotes.

    Columns: topic, partition, offset, timestamp, timestampType, key, value, headers, date, and the columns
    of values of an archive that has them; where these have a schema, say --values and --schema-registry
    again. Keys and values are bytes: cast(value as string) makes text.

    \b
    postroad sql "select date, count(*) from orders group by date order by date" --archive lake/orders
    postroad sql 'select cast(value as string) from `orders.dead` limit 10' --json

    How many messages a topic has, its offsets, and a few of its messages are told without Spark.
    """
    if archive_only and archive is None:
        raise click.UsageError("--archive-only needs --archive")
    options = of_values(values, schema_registry)
    address = None if archive_only else address_to_hand_on(bootstrap)
    is_short = False
    if archive is None and address is not None:
        answer, size = _direct(query, address, may_answer=not (master or confs))
        if answer is not None:
            _WRITERS[form](answer)
            return
        is_short = size <= SHORT_OFFSETS_MAX
    with (
        spark_session("sql", master, confs, address, is_short=is_short) as spark,
        TemporaryDirectory(prefix="postroad-sql-") as directory,
    ):
        from postroad.pipelines.history import Sources
        from postroad.pipelines.queries import query as ask
        from postroad.pipelines.session import is_local

        spool = Path(directory) if is_local(master) else None
        sources = Sources(address, archive, catalog, table, options, spool)
        _WRITERS[form](_OfSpark(ask(spark, query, sources)))


def _direct(query: str, address: str, *, may_answer: bool) -> tuple[_Answered | None, int]:
    """The answer to what needs no Spark; and how many offsets the query is about."""
    with errors_told():
        from postroad.pipelines.session import check_packages

        check_packages()
        from postroad.pipelines import direct

        question = direct.understood(query) if may_answer else None
        answer = None if question is None else direct.answer(question, address)
        if answer is not None:
            return _Answered(*answer), 0
        return None, direct.size_of(query, address)


class Found(Protocol):
    """The answer to a question."""

    @property
    def columns(self) -> list[str]: ...

    def first(self, count: int) -> Sequence[Sequence[Any]]: ...

    def rows(self) -> Iterator[Sequence[Any]]: ...


class _OfSpark:
    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    @property
    def columns(self) -> list[str]:
        return self._frame.columns

    def first(self, count: int) -> Sequence[Sequence[Any]]:
        return self._frame.limit(count).collect()

    def rows(self) -> Iterator[Sequence[Any]]:
        return self._frame.toLocalIterator()


class _Answered:
    def __init__(self, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
        self.columns = columns
        self._rows = rows

    def first(self, count: int) -> Sequence[Sequence[Any]]:
        return self._rows[:count]

    def rows(self) -> Iterator[Sequence[Any]]:
        return iter(self._rows)


def _write_table(found: Found) -> None:
    rows = found.first(TABLE_ROWS + 1)
    shown = [tuple(_cell(cell) for cell in row) for row in rows[:TABLE_ROWS]]
    if shown:
        output.table(found.columns, shown)
    else:
        click.echo("no rows", err=True)
    if len(rows) > TABLE_ROWS:
        click.echo(f"the first {TABLE_ROWS} rows; all of them with --json or --csv", err=True)


def _write_json(found: Found) -> None:
    for row in found.rows():
        click.echo(json.dumps({name: _plain(cell) for name, cell in zip(found.columns, row, strict=True)}))


def _write_csv(found: Found) -> None:
    writer = csv.writer(sys.stdout)
    writer.writerow(found.columns)
    rows = found.rows()
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
