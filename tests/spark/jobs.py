"""What a `driver` does: a Spark application that is told its jobs over a pipe, one by one.

    python -m tests.spark.jobs FILE_DESCRIPTOR CONFIG_AS_JSON

`stall` names a file. The first task that comes half way writes its process id into it and stays there: its
executor has to be killed, or the job never ends.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_ROWS = 100  # of an Arrow batch
HALF_WAY = 20  # Arrow batches
STALLS_S = 600.0

Options = Mapping[str, str]


def read(spark: SparkSession, format_: str, options: Options, stall: str | None = None) -> list[Any]:
    """All rows, as a plain consumer would show them."""
    from tests.spark.plain import of_spark

    frame = spark.read.format(format_).options(**options).load()
    return of_spark(_stalling(frame, stall).collect())


def write(
    spark: SparkSession,
    from_format: str,
    from_options: Options,
    to_format: str,
    to_options: Options,
    stall: str | None = None,
) -> None:
    """One batch from there to here."""
    frame = spark.read.format(from_format).options(**from_options).load()
    rows = frame.select("key", "value", "headers")
    _stalling(rows, stall).write.format(to_format).options(**to_options).mode("append").save()


def stream(
    spark: SparkSession,
    from_format: str,
    from_options: Options,
    to_format: str,
    to_options: Options,
    stall: str | None = None,
    columns: tuple[str, ...] = ("*",),
) -> int:
    """A query to the end of what there is; how many rows it read."""
    frame = spark.readStream.format(from_format).options(**from_options).load()
    rows = _stalling(frame.select(*columns), stall)
    query = rows.writeStream.format(to_format).options(**to_options).trigger(availableNow=True).start()
    query.awaitTermination()
    return sum(progress.numInputRows for progress in query.recentProgress)


def archive(spark: SparkSession, bootstrap: str, topic: str, to: str, rows_per_trigger: int) -> int:
    """How many rows it archived."""
    from postroad.pipelines.archive import ArchiveSettings
    from postroad.pipelines.archive import archive as run

    source = {"maxOffsetsPerTrigger": str(rows_per_trigger)}
    return run(spark, ArchiveSettings(bootstrap, [topic], to, once=True, source=source)).rows


def merge(spark: SparkSession, bootstrap: str, topic: str, to: str, step_offsets: int) -> tuple[int, int]:
    """How many upserts and deletes it has done."""
    from postroad.pipelines.merge import MergeSettings
    from postroad.pipelines.merge import merge as run

    done = run(spark, MergeSettings(bootstrap, topic, to, once=True, step_offsets=step_offsets))
    return done.upserts, done.deletes


def differences(spark: SparkSession, options: Options) -> tuple[bool, int, int]:
    """Compare the two connectors' frames: is the schema the same, and how many rows has only one of them?"""
    ours, theirs = (spark.read.format(name).options(**options).load() for name in ("postroad", "kafka"))
    same = ours.schema.simpleString() == theirs.schema.simpleString()
    return same, ours.exceptAll(theirs).count(), theirs.exceptAll(ours).count()


def begin_copy(spark: SparkSession, bootstrap: str, topic: str, to: str, home: str) -> None:
    """A query from topic to topic with a trigger every 100 ms, until `end_copy`."""
    source = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    frame = spark.readStream.format("postroad").options(**source, commitGroup=f"{topic}-copied").load()
    sink = {"kafka.bootstrap.servers": bootstrap, "topic": to, "checkpointLocation": f"{home}/checkpoint"}
    writer = frame.select("key", "value").writeStream.format("postroad").options(**sink)
    writer.trigger(processingTime="100 milliseconds").start()


def live_heap(spark: SparkSession) -> int:
    """What the JVM's heap holds that is not garbage."""
    jvm: Any = spark.sparkContext._jvm
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def end_copy(spark: SparkSession) -> int:
    """Everything is copied that was there; how many micro-batches the query ran."""
    (query,) = spark.streams.active
    query.processAllAvailable()
    batches = query.lastProgress.batchId + 1 if query.lastProgress else 0
    query.stop()
    return batches


JOBS: dict[str, Callable[..., Any]] = {
    job.__name__: job
    for job in (read, write, stream, archive, merge, differences, begin_copy, live_heap, end_copy)
}


def _stalling(frame: DataFrame, marker: str | None) -> DataFrame:
    if marker is None:
        return frame
    half_way, seconds = HALF_WAY, STALLS_S

    def stall(batches: Iterator[Any]) -> Iterator[Any]:
        for count, batch in enumerate(batches):
            yield batch
            if count == half_way and _is_first(marker):
                time.sleep(seconds)

    return frame.mapInArrow(stall, frame.schema)


def _is_first(marker: str) -> bool:
    """Whether nobody was before; then the marker is there, and never without what it says."""
    mine = f"{marker}.{os.getpid()}"
    with open(mine, "w") as file:
        file.write(str(os.getpid()))
    with suppress(FileExistsError):
        os.link(mine, marker)
        return True
    return False


def main(descriptor: str, config: str) -> None:
    from pyspark.sql import SparkSession

    pipe: Connection[Any, Any] = Connection(int(descriptor))
    builder = SparkSession.builder.appName("postroad-tests")
    for name, value in {**CONFIG, **json.loads(config)}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    with suppress(EOFError):
        while True:
            job, arguments = pipe.recv()
            try:
                pipe.send((True, JOBS[job](spark, **arguments)))
            except Exception as error:
                pipe.send((False, f"{type(error).__name__}: {error}"))
    spark.stop()


CONFIG = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
}

if __name__ == "__main__":
    main(*sys.argv[1:])
