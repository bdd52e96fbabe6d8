"""The table as Spark's sink: the files that tasks wrote (`source`) are put into it by the driver's commit.

Spark makes the writer anew wherever it needs it (on the driver, in tasks, for each commit), out of the
data source's options; so it holds nothing but them.
"""

from __future__ import annotations

from collections.abc import Iterator
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

from postroad.pipelines.errors import PipelineError
from postroad.pipelines.tables import open_table
from postroad.pipelines.tables.growing_columns import fits_table, merged
from postroad.pipelines.tables.schema import json_kinds
from postroad.pipelines.tables.settings import FileSettings
from postroad.pipelines.tables.source import FILE, REACHED
from postroad.pipelines.tables.table import Batch, DataFile, Reached
from postroad.spark.workers import Dispatched

NAME: Final = "postroad-archive"
AGAIN: Final = "the micro-batch is to be repeated"
QUERY_ID: Final = "sql.streaming.queryId"


@dataclass
class Written(WriterCommitMessage):
    """What one task wrote, and for which query."""

    query: str
    files: list[DataFile]
    reached: list[Reached]


class ArchiveSink(DataSource):
    """`writeStream.format("postroad-archive")`, once `spark.dataSource.register(ArchiveSink)` was called.

    It takes the rows of ArchiveSource, with the same options of FileSettings.
    """

    @classmethod
    def name(cls) -> str:
        return NAME

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 (Spark's)
        return ArchiveWriter(FileSettings.of(self.options))


class ArchiveWriter(Dispatched, DataSourceStreamArrowWriter):
    def __init__(self, settings: FileSettings) -> None:
        self._settings = settings

    def write(self, iterator: Iterator[Any]) -> Written:
        """In a task: says which files are to be committed."""
        context = TaskContext.get()
        assert context is not None, "a task runs in Spark"
        rows = [row for batch in iterator for row in batch.to_pylist()]
        files = [DataFile.of_json(row[FILE]) for row in rows if row[FILE] is not None]
        reached = [Reached.of_json(row[REACHED]) for row in rows if row[REACHED] is not None]
        return Written(str(context.getLocalProperty(QUERY_ID)), files, reached)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's)
        """On the driver, when all tasks are done: the batch is in the table, once.

        Tasks that met a new column at once may have taken it for different ones. Then the table gets the
        column, and the batch fails with `AGAIN`: tasks that repeat it know what the column is.
        """
        written = [message for message in messages if isinstance(message, Written)]
        files = [file for message in written for file in message.files]
        reached = tuple(to for message in written for to in message.reached)
        if not reached:
            return
        table = open_table(self._settings.address)
        known = json_kinds(table.schema())
        wanted = merged(known, [dict(self._settings.kinds), *(file.kinds for file in files)])
        query = written[0].query
        if not all(fits_table(file.kinds, wanted) for file in files):
            table.append(Batch(f"{query}/columns", batchId, ()), wanted)
            table.discard(files)
            raise PipelineError(f"{AGAIN}: its columns are in the table now")
        table.append(Batch(query, batchId, tuple(files), reached), wanted)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's)
        """On the driver, when a task or the commit failed.

        Without a failed task it was the commit, and one that fails may have taken place all the same (its
        answer was lost, or what follows it failed): its files stay, and are deleted by `optimize` if no
        table refers to them.
        """
        if None not in messages:
            return
        table = open_table(self._settings.address)
        for message in messages:
            if isinstance(message, Written):
                table.discard(message.files)
