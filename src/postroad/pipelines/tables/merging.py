"""Compaction as a job of Spark: executors make the large files, and the driver commits each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from postroad.pipelines.tables import TableAddress, open_table
from postroad.pipelines.tables.compaction import Merging, merged_here, merged_or_none
from postroad.pipelines.tables.table import DataFile, TableFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE_BYTES: Final = 64 * 1024 * 1024  # less than that is done before a job has begun

_GIVEN: Final = "number int, files string"
_MADE: Final = "number int, file string"
_MADE_SCHEMA: Final = pa.schema([("number", pa.int32()), ("file", pa.string())])


def merging(spark: SparkSession, address: TableAddress) -> Merging:
    """For `Table.optimize` of the table there."""
    return partial(_merged, spark, address)


def _merged(
    spark: SparkSession, address: TableAddress, groups: Sequence[Sequence[TableFile]], schema: Any
) -> Iterator[tuple[int, DataFile | None]]:
    if sum(file.bytes for group in groups for file in group) < HERE_BYTES:
        yield from merged_here(open_table(address), groups, schema)
        return
    given = [(number, json.dumps(group)) for number, group in enumerate(groups)]

    def made(batches: Iterator[Any]) -> Iterator[Any]:
        table = open_table(address)
        for batch in batches:
            for row in batch.to_pylist():
                files = [TableFile(*file) for file in json.loads(row["files"])]
                merged = merged_or_none(table, files, schema)
                done = {"number": row["number"], "file": None if merged is None else merged.to_json()}
                yield pa.RecordBatch.from_pylist([done], _MADE_SCHEMA)

    # A task for each group; the driver commits what is there while others still work.
    rows = spark.createDataFrame(given, _GIVEN).repartitionById(len(given), "number")
    for row in rows.mapInArrow(made, _MADE).toLocalIterator(prefetchPartitions=True):
        yield row.number, None if row.file is None else DataFile.of_json(row.file)
