"""Writes DataFrames and streams into topics, each row once.

A task writes as a producer that is made from what the task is (`identity`), in batches that are always cut
the same way (`loads`, `placing`, `cuts`), and the partition's log finds what it has already. So whatever
Spark repeats (a task, a stage, a micro-batch after a crash, two attempts at once) is stored once, without a
transaction: rows are readable as soon as they are stored, and a job that fails for good leaves what it wrote.

It holds as long as
1. a repeated task has the same rows in the same order, and there are as many tasks. That is so for all that
   comes from a topic or files row by row. What is stored is compared with what is repeated (`stored`);
2. the broker remembers the producer: `producer.id.expiration.ms` after its last batch, a day by default,
   with Postroad and Apache Kafka. A query that comes back later may repeat one micro-batch;
3. the topic keeps its number of partitions meanwhile, and the query its checkpoint: a micro-batch that comes
   after a later one is refused.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from postroad.errors import ConfigurationError
from postroad.spark.identity import Identity, of_task
from postroad.spark.rows import check_columns
from postroad.spark.task_writer import write_task
from postroad.spark.workers import Dispatched
from postroad.spark.write_options import WriteOptions

QUERY: Final = "sql.streaming.queryId"
BATCH: Final = "streaming.sql.batchId"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task wrote: rows, and bytes of their record batches."""

    task: int
    rows: int
    bytes: int


class BatchWriter(Dispatched, DataSourceArrowWriter):
    """`df.write.format("postroad")`; made once on the driver, so its random id is that of the job."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise ConfigurationError("A topic can't be overwritten: use mode('append').")
        _check(schema, options)
        if options.topic is not None:
            with options.cluster as cluster:
                cluster.topics([options.topic])
        self._options = options
        self._writer = f"batch {options.write_id}" if options.write_id else f"job {uuid.uuid4()}"

    def write(self, iterator: Iterator[Any]) -> Written:
        task = _task().partitionId()
        return _write(self._options, of_task(self._writer, task, self._options.write_batch), task, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _report("written", messages)


class StreamWriter(Dispatched, DataSourceStreamArrowWriter):
    """`df.writeStream.format("postroad")`; made anew for each micro-batch and for each commit."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        _check(schema, options)
        self._options = options

    def write(self, iterator: Iterator[Any]) -> Written:
        context = _task()
        query, batch = context.getLocalProperty(QUERY), context.getLocalProperty(BATCH)
        assert query is not None, "Spark says which query a task is of"
        assert batch is not None, "Spark says which micro-batch a task is of"
        writer = f"query {query} {self._options.write_id}"
        task = context.partitionId()
        return _write(self._options, of_task(writer, task, int(batch)), task, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        _report(f"micro-batch {batchId} written", messages)


def _write(options: WriteOptions, identity: Identity, task: int, batches: Iterator[Any]) -> Written:
    return Written(task, *write_task(options, identity, batches))


def _check(schema: StructType, options: WriteOptions) -> None:
    fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    check_columns(fields, options.topic)


def _task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "rows are written within a task"
    return context


def _report(what: str, messages: Sequence[WriterCommitMessage | None]) -> None:
    written = [message for message in messages if isinstance(message, Written)]
    rows, size = sum(each.rows for each in written), sum(each.bytes for each in written)
    log.info("%s: %s rows, %s bytes, by %s tasks", what, rows, size, len(written))
