"""The table as Spark's sink: tasks write files, the driver's commit puts them into the table.

Spark makes the writer anew wherever it needs it (on the driver, in tasks, for each commit), out of the
data source's options; so it holds nothing but them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from postroad.pipelines.tables import TableAddress, open_table
from postroad.pipelines.tables.files import Files, rewritten
from postroad.pipelines.tables.json_columns import JsonColumns, is_settled, merged
from postroad.pipelines.tables.schema import Kind, json_kinds
from postroad.pipelines.tables.table import Batch, DataFile, Table

NAME: Final = "postroad-archive"
QUERY_ID: Final = "sql.streaming.queryId"

JSON: Final = "json"
JSON_KINDS: Final = "jsonKinds"
BAD_ROWS: Final = "badRows"


@dataclass
class Written(WriterCommitMessage):
    """What one task wrote, and for which query."""

    query: str
    files: list[DataFile]


class ArchiveSink(DataSource):
    """`writeStream.format("postroad-archive")`, once `spark.dataSource.register(ArchiveSink)` was called.

    Options: those of a TableAddress; `json` = true for JSON columns, `jsonKinds` for types that they are
    to have (`amount=double,id=string`), `badRows` = keep or fail.
    """

    @classmethod
    def name(cls) -> str:
        return NAME

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 (Spark's)
        return ArchiveWriter(dict(self.options))


class ArchiveWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._address = TableAddress.of(options)
        self._has_json = options.get(JSON.lower()) == "true"
        self._given = kinds_of(options.get(JSON_KINDS.lower(), ""))
        self._fails = options.get(BAD_ROWS.lower()) == "fail"

    def write(self, iterator: Iterator[Any]) -> Written:
        """In a task: files that no reader sees yet."""
        context = TaskContext.get()
        assert context is not None, "a task runs in Spark"
        table = open_table(self._address)
        files = Files(table, self._json(json_kinds(table.schema())) if self._has_json else None)
        try:
            for batch in iterator:
                files.write(batch)
            return Written(str(context.getLocalProperty(QUERY_ID)), files.finish())
        except BaseException:
            files.abandon()
            raise

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's)
        """On the driver, when all tasks are done: the batch is in the table, once."""
        written = [message for message in messages if isinstance(message, Written)]
        files = [file for message in written for file in message.files]
        if not files:
            return
        table = open_table(self._address)
        known = json_kinds(table.schema())
        wanted = merged(known, [self._given, *(file.kinds for file in files)]) if self._has_json else known
        settled = tuple(again for file in files for again in self._settled(table, file, wanted))
        new = {name: kind for name, kind in wanted.items() if name not in known}
        table.append(Batch(written[0].query, batchId, settled), new)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's)
        table = open_table(self._address)
        for message in messages:
            if isinstance(message, Written):
                table.discard(message.files)

    def _settled(self, table: Table, file: DataFile, kinds: Mapping[str, Kind]) -> list[DataFile]:
        """The file as the table's columns want it: tasks that met a new column at once may differ."""
        if is_settled(file.kinds, kinds):
            return [file]
        return rewritten(table, file, JsonColumns(kinds, fails=self._fails))

    def _json(self, known: Mapping[str, Kind]) -> JsonColumns:
        return JsonColumns(
            {**known, **{n: k for n, k in self._given.items() if n not in known}}, fails=self._fails
        )


def kinds_of(text: str) -> dict[str, Kind]:
    """`amount=double,id=string`, as `text_of` wrote it."""
    pairs: list[Any] = [part.split("=") for part in text.split(",") if part]
    return dict(pairs)


def text_of(kinds: Mapping[str, Kind]) -> str:
    return ",".join(f"{name}={kind}" for name, kind in kinds.items())
