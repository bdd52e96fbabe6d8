"""Archives in tests: run to the end, and read by Spark and by readers that know nothing of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import duckdb
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from postroad.pipelines.archive import Archived, ArchiveSettings, archive
from postroad.pipelines.tables import Table
from postroad.pipelines.tables.files import Files
from postroad.pipelines.tables.growing_columns import ValueColumns
from postroad.pipelines.tables.table import Batch, DataFile
from tests.pipelines.batches import DAY_MS, NOON_MS, record_batch
from tests.spark.plain import Message, Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS = ("delta", "iceberg", "parquet")


def run(spark: SparkSession, bootstrap: str, topics: str | list[str], to: Path, **settings: Any) -> Archived:
    names = [topics] if isinstance(topics, str) else topics
    return archive(spark, ArchiveSettings(bootstrap, names, str(to), **{"once": True, **settings}))


def varied(count: int, partitions: int, first: int = 0) -> list[Message]:
    """Messages of three days with and without key, value and headers."""
    return [
        Message(
            value=None if number % 11 == 0 else b"value %d" % number,
            key=None if number % 5 == 0 else b"key %d" % number,
            partition=number % partitions,
            headers=[("n", b"%d" % number), ("none", None)] if number % 3 else [],
            time_ms=NOON_MS + number % 3 * DAY_MS,
        )
        for number in range(first, first + count)
    ]


def written(table: Table, *batches: Any, json: ValueColumns | None = None) -> tuple[DataFile, ...]:
    """Files as a task writes them; no commit has them yet."""
    files = Files(table, json)
    for batch in batches:
        files.write(batch)
    return tuple(files.finish())


def append_batches(table: Table, numbers: Iterable[int]) -> None:
    """Micro-batches of ten records each, in a file each."""
    for number in numbers:
        table.append(Batch("q", number, written(table, record_batch(number * 10, 10))), {})


def offsets_in(table: Table) -> list[int]:
    """The offsets of all rows, sorted, with every repetition there is."""
    assert table.location.directory is not None
    return [offset for _, _, offset in offsets_of(read_plainly(table.location.directory, table.format))]


def unused_files(table: Table) -> list[str]:
    """Files of rows that no commit refers to."""
    used = {table.location.relative(path) for path in table.snapshot().files}
    found = (table.location.relative(file.path) for file in table.location.files())
    return [path for path in found if path.endswith((".parquet", ".staged")) and path not in used]


def read_plainly(to: Path, format_: str) -> list[dict[str, Any]]:
    """All rows as dicts, without Spark and without any code of ours."""
    return _READERS[format_](to)


def rows_of(found: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Rows of an archive as a Kafka consumer would show them, by topic, partition and offset."""
    return sorted(
        Row(
            row["topic"],
            row["partition"],
            row["offset"],
            row["key"],
            row["value"],
            round(row["timestamp"].timestamp() * 1000),
            tuple((header["key"], header["value"]) for header in row["headers"] or ()),
        )
        for row in found
    )


def offsets_of(found: Iterable[Mapping[str, Any]]) -> list[tuple[str, int, int]]:
    """Sorted, and with every repetition there is."""
    return sorted((row["topic"], row["partition"], row["offset"]) for row in found)


def _delta(to: Path) -> list[dict[str, Any]]:
    return DeltaTable(to).to_pyarrow_table().to_pylist()


def _iceberg(to: Path) -> list[dict[str, Any]]:
    catalog = load_catalog(
        "postroad", type="sql", uri=f"sqlite:///{quote(str(to))}/catalog.db", warehouse=f"file://{to}"
    )
    return catalog.load_table("postroad.archive").scan().to_arrow().to_pylist()


def _parquet(to: Path) -> list[dict[str, Any]]:
    """Whatever a glob of *.parquet finds, as people do it."""
    files = f"read_parquet('{to}/**/*.parquet', hive_partitioning=true, union_by_name=true)"
    found = duckdb.sql(f"select * from {files}")
    assert found is not None
    return found.to_arrow_table().to_pylist()


_READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "delta": _delta,
    "iceberg": _iceberg,
    "parquet": _parquet,
}
