"""The end of a stream of SQL's: its rows in a table, each micro-batch in one commit.

The commit notes which query's it is, and which number it has; `postroad_batch` is the same number in each of
its rows. A micro-batch that Spark repeats changes nothing. A query that is another one than the table's,
since its checkpoint was deleted, is refused: what it has counted so far is gone, and the table's rows would
come again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from postroad.pipelines.declared.table_source import BATCH, arrow_of
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.tables import TableAddress
from postroad.pipelines.tables.derived import Change, DerivedTable, Loaded, NewFile, open_derived
from postroad.pipelines.tables.rolled import RolledFiles
from postroad.pipelines.tables.sink import QUERY_ID
from postroad.pipelines.tables.table import COMMIT_ATTEMPTS, Conflict
from postroad.spark.workers import Dispatched

NAME: Final = "postroad-table-sink"
BATCH_ID: Final = "streaming.sql.batchId"

_QUERY: Final = "query"
_GROUP: Final = "rows"


@dataclass
class Written(WriterCommitMessage):
    """What one task wrote, and for which query."""

    query: str
    files: list[NewFile]


class TableSink(DataSource):
    """`writeStream.format("postroad-table-sink")`, once it is registered. Options: those of TableAddress."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 (Spark\'s)
        return TableWriter(TableAddress.of(self.options), whole_schema(schema), overwrite)


def whole_schema(schema: StructType) -> Any:
    """What the table's columns are, if these are the query's. PipelineError if one is of no type of a
    table's."""
    found = arrow_of(schema)
    for field in found:
        if (
            pa.types.is_null(field.type)
            or pa.types.is_interval(field.type)
            or pa.types.is_duration(field.type)
        ):
            raise PipelineError(f"column {field.name} is {field.type}, which no table keeps: cast it")
        if field.name.lower() == BATCH:
            raise PipelineError(f"{BATCH} is the table's own column: give yours another name")
    return pa.schema([*found, pa.field(BATCH, pa.int64())])


def grown(table: Any, query: Any) -> Any:
    """The table's schema with what the query has more. PipelineError if a column has another type."""
    for field in query:
        if field.name in table.names and not _same(table.field(field.name).type, field.type):
            raise PipelineError(
                f"column {field.name} of the table is {table.field(field.name).type}, and the SQL gives "
                f"{field.type}: cast it, or write into another directory"
            )
    return pa.schema([*table, *(field for field in query if field.name not in table.names)])


class TableWriter(Dispatched, DataSourceStreamArrowWriter):
    def __init__(self, address: TableAddress, schema: Any, overwrite: bool) -> None:
        self._address = address
        self._schema = schema
        self._overwrite = overwrite

    def write(self, iterator: Iterator[Any]) -> Written:
        """In a task: files that no reader sees yet; none are left after an error."""
        context = TaskContext.get()
        assert context is not None, "a task runs in Spark"
        number = int(str(context.getLocalProperty(BATCH_ID)))
        files = RolledFiles(open_derived(self._address), _GROUP, self._schema)
        try:
            for batch in iterator:
                numbers = pa.repeat(pa.scalar(number, pa.int64()), batch.num_rows)
                files.write(batch.append_column(BATCH, numbers))
            done = files.finish()
        except BaseException:
            files.abandon()
            raise
        return Written(str(context.getLocalProperty(QUERY_ID)), done)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark\'s)
        """On the driver, when all tasks are done: the batch is in the table, once."""
        written = [message for message in messages if isinstance(message, Written)]
        if not written:
            return
        files = [file for message in written for file in message.files]
        table, query = open_derived(self._address), _number(written[0].query)
        for _ in range(COMMIT_ATTEMPTS):
            loaded = table.load([_QUERY, BATCH])
            _check_query(table, loaded.notes, query)
            if loaded.notes.get(BATCH, -1) >= batchId:
                _discard(table, loaded, files)
                return
            removed = list(loaded.files.values()) if self._overwrite else []
            notes = {_QUERY: query, BATCH: batchId}
            try:
                table.commit(loaded, Change(grown(loaded.schema, self._schema), notes, files, removed))
                return
            except Conflict:
                continue
        raise PipelineError(f"{table.location} is written by too many others at once: stop some of them")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's)
        """On the driver, when a task or the commit failed; a commit that failed may have taken place."""
        if None not in messages:
            return
        table = open_derived(self._address)
        for message in messages:
            if isinstance(message, Written):
                _discard(table, table.load(), message.files)


def _check_query(table: DerivedTable, notes: Mapping[str, int], query: int) -> None:
    if notes.get(_QUERY, query) != query:
        raise PipelineError(
            f"{table.location} was written by a query whose checkpoint is gone or elsewhere: its rows would "
            "come again. Put the checkpoint back, or delete the table as well"
        )


def _discard(table: DerivedTable, loaded: Loaded, files: list[NewFile]) -> None:
    for file in files:
        if file.path not in loaded.files:
            table.location.delete(f"{table.data}{file.path}")


def _number(query: str) -> int:
    return int.from_bytes(sha256(query.encode()).digest()[:8]) >> 1


def _same(one: Any, other: Any) -> bool:
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return (one.tz is None) == (other.tz is None)
    return str(one) == str(other)
