"""A Spark application that copies a topic in micro-batches, to be killed: `test_sink_exactly_once`.

    python sink_app.py BOOTSTRAP SOURCE TARGET CHECKPOINT ROWS_PER_BATCH TRANSACTIONAL

It takes its time over each row, and the first attempt of every task of each third batch fails half way. In
transactions each attempt has the rows in another order.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

PAUSE_S = 0.1  # for each Arrow batch: a task lasts long enough to be killed in its middle


def slowly(batches: Iterator[Any]) -> Iterator[Any]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    number = int(context.getLocalProperty("streaming.sql.batchId") or 0)
    is_doomed = number % 3 == 1 and context.attemptNumber() == 0
    for count, batch in enumerate(batches):
        time.sleep(PAUSE_S)
        if is_doomed and count == 3:
            raise RuntimeError("the first attempt fails half way")
        yield batch


def in_any_order(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in slowly(batches):
        order = list(range(len(batch)))
        random.SystemRandom().shuffle(order)
        yield batch.take(order)


def main(bootstrap: str, source: str, target: str, checkpoint: str, rows: str, transactional: str) -> None:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "50")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    reading = {"kafka.bootstrap.servers": bootstrap, "subscribe": source, "startingOffsets": "earliest"}
    messages = spark.readStream.format("postroad").options(**reading, maxOffsetsPerTrigger=rows).load()
    passing = slowly if transactional == "false" else in_any_order
    copied = messages.select("key", "value").mapInArrow(passing, "key binary, value binary")
    # Batches of about ten rows: a task's rows are more of them than a broker remembers.
    writing = {"kafka.bootstrap.servers": bootstrap, "topic": target, "kafka.batch.size": "9000"}
    writing["transactional"] = transactional
    query = (
        copied.writeStream.format("postroad")
        .options(**writing, checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    main(*sys.argv[1:])
