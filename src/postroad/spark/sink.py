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

With `transactional` the rows of a micro-batch, or of a job, are one transaction: `read_committed` readers
see all of them or none, and nothing of the above is asked for (`shared`). Or those of each task are
(`task_transaction`). Either way the driver commits and no task does, for a task can't tell when its rows are
all: where the function that computes them fails, Spark ends them as if they were.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from postroad.errors import ConfigurationError
from postroad.spark import task_transaction
from postroad.spark.cluster import Cluster
from postroad.spark.columns import DDL, VALUE
from postroad.spark.identity import of_task
from postroad.spark.rows import check_columns
from postroad.spark.shared import PREFIX, Run, check_shared
from postroad.spark.task_writer import write_task
from postroad.spark.value_encoding import ValueEncoder, prepare
from postroad.spark.workers import Dispatched
from postroad.spark.write_options import NOT, TASK, WHOLE, WriteOptions

QUERY: Final = "sql.streaming.queryId"
BATCH: Final = "streaming.sql.batchId"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task wrote: rows, and bytes of their record batches; and in which transaction, as whom."""

    task: int
    rows: int
    bytes: int
    run: Run | None = None
    producer: tuple[int, int] | None = None


class BatchWriter(Dispatched, DataSourceArrowWriter):
    """`df.write.format("postroad")`; made once on the driver, so its random id is that of the job."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise ConfigurationError("A topic can't be overwritten: use mode('append').")
        encoder = _check(schema, options)
        with options.cluster as cluster:
            if options.topic is not None:
                cluster.topics([options.topic])
            _check_transactions(cluster, options)
        self._options = options
        self._writer = f"batch {options.write_id}" if options.write_id else f"job {uuid.uuid4()}"
        self._run = uuid.uuid4().hex
        self._encoder = encoder

    def write(self, iterator: Iterator[Any]) -> Written:
        job = Job(self._options, self._writer, self._run, self._options.write_batch)
        return job.write(_task().partitionId(), _encoded(self._encoder, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _commit(self._options, messages)
        _report("written", messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        job = Job(self._options, self._writer, self._run, self._options.write_batch)
        _abort(self._options, job.run, len(messages))


class StreamWriter(Dispatched, DataSourceStreamArrowWriter):
    """`df.writeStream.format("postroad")`; made anew for each micro-batch and for each commit."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._encoder = _check(schema, options)
        self._options = options
        self._run = uuid.uuid4().hex  # of the tasks that this writer is sent to: one try of a micro-batch

    def write(self, iterator: Iterator[Any]) -> Written:
        context = _task()
        query, batch = context.getLocalProperty(QUERY), context.getLocalProperty(BATCH)
        assert query is not None, "Spark says which query a task is of"
        assert batch is not None, "Spark says which micro-batch a task is of"
        job = Job(self._options, f"query {query} {self._options.write_id}", self._run, int(batch))
        return job.write(context.partitionId(), _encoded(self._encoder, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        _commit(self._options, messages)
        _report(f"micro-batch {batchId} written", messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """If no task has come to its end nobody knows here which transaction it is, and the next run aborts
        it."""
        for run in _runs(messages):
            _abort(self._options, run, len(messages))


class Job(NamedTuple):
    """One try to write a batch of a writer."""

    options: WriteOptions
    writer: str
    name: str  # no other try has it
    batch: int

    @property
    def run(self) -> Run:
        kind, _, rest = self.writer.partition(" ")
        return Run(f"{PREFIX}{kind}-{rest.strip()}", self.name, self.batch)

    def write(self, task: int, batches: Iterator[Any]) -> Written:
        """An attempt at a task: all of its rows are stored when it returns."""
        if self.options.transactional == NOT:
            identity = of_task(self.writer, task, self.batch)
            return Written(task, *write_task(self.options, identity, batches))
        rows = _from_first(batches)
        if self.options.transactional == WHOLE:
            return self._write_shared(task, rows)
        return self._write_own(task, rows)

    def _write_shared(self, task: int, rows: Iterator[Any] | None) -> Written:
        if rows is None:  # it need not enter
            return Written(task, 0, 0, self.run)
        with self.options.cluster as cluster:
            identity = self.run.enter(cluster, self.options.transaction_ms, task + self.batch)
        if identity is None:
            return Written(task, *_pass_over(rows), self.run)
        written = write_task(self.options, identity, rows)
        return Written(task, *written, self.run, (identity.producer_id, identity.epoch))

    def _write_own(self, task: int, rows: Iterator[Any] | None) -> Written:
        if rows is None:
            return Written(task, 0, 0)
        with self.options.cluster as cluster:
            transaction = task_transaction.TaskTransaction(
                cluster, _own_id(self.run, task), self.batch, self.options.transaction_ms
            )
            identity = transaction.begin(task + self.batch)
            if identity is None:
                return Written(task, *_pass_over(rows))
            written = write_task(self.options, identity, rows, reach=transaction.reach)
            transaction.prepare()
            return Written(task, *written, self.run, (identity.producer_id, identity.epoch))


def _own_id(run: Run, task: int) -> str:
    """The transactional id of one task, where each has its own."""
    return f"{run.transactional_id}/{task}"


def _from_first(batches: Iterator[Any]) -> Iterator[Any] | None:
    """All rows again, once the first have come; None if there are none. An open transaction keeps readers
    waiting, so none is begun before there is something to write."""
    for batch in batches:
        if len(batch):
            return chain([batch], batches)
    return None


def _pass_over(batches: Iterator[Any]) -> tuple[int, int]:
    """Rows that are stored already: Spark wants them taken all the same."""
    for _ in batches:
        pass
    return 0, 0


def _commit(options: WriteOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    """The transactions, if there are any, end with what these attempts wrote."""
    with options.cluster as cluster:
        if options.transactional == TASK:
            _commit_own(cluster, messages)
        for run in _runs(messages) if options.transactional == WHOLE else ():
            run.commit(cluster, [each.producer for each in _written(messages) if each.producer])


def _commit_own(cluster: Cluster, messages: Sequence[WriterCommitMessage | None]) -> None:
    for each in _written(messages):
        if each.run and each.producer:
            task_transaction.commit(cluster, _own_id(each.run, each.task), each.producer)


def _abort(options: WriteOptions, run: Run, tasks: int) -> None:
    """Nothing is left of what was not committed, by whichever attempts."""
    with options.cluster as cluster:
        if options.transactional == WHOLE:
            run.abort(cluster)
        for task in range(tasks) if options.transactional == TASK else ():
            task_transaction.abort(cluster, _own_id(run, task), options.transaction_ms)


def _runs(messages: Sequence[WriterCommitMessage | None]) -> set[Run]:
    """The run that the attempts were part of, if they wrote in transactions."""
    runs = {each.run for each in _written(messages) if each.run}
    assert len(runs) <= 1, "all tasks are of one run"
    return runs


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    return [message for message in messages if isinstance(message, Written)]


def _check_transactions(cluster: Cluster, options: WriteOptions) -> None:
    if options.transactional == WHOLE:
        check_shared(cluster)


def _check(schema: StructType, options: WriteOptions) -> ValueEncoder | None:
    """How values are encoded; None: they are bytes or texts already. Raises ConfigurationError."""
    fields = {field.name: field.dataType.simpleString() for field in schema.fields}
    if options.values is None or VALUE not in fields:
        check_columns([*fields.items()], options.topic)
        return None
    check_columns([*(fields | {VALUE: DDL[VALUE]}).items()], options.topic)
    values = options.values
    kind = to_arrow_schema(schema, timezone="UTC").field(VALUE).type
    return prepare(values.registry, values.subject, values.format, values.schema, values.message, kind)


def _encoded(encoder: ValueEncoder | None, batches: Iterator[Any]) -> Iterator[Any]:
    return batches if encoder is None else encoder.encode(batches)


def _task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "rows are written within a task"
    return context


def _report(what: str, messages: Sequence[WriterCommitMessage | None]) -> None:
    written = _written(messages)
    rows, size = sum(each.rows for each in written), sum(each.bytes for each in written)
    log.info("%s: %s rows, %s bytes, by %s tasks", what, rows, size, len(written))
