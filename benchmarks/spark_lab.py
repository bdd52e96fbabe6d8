"""Where Spark is measured: one session, one broker, and the same rows as topics and as Parquet files.

All sides of a comparison run in this session, one after the other, against this broker.
"""

from __future__ import annotations

import itertools
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.servers import Mode, Postroad
from benchmarks.spark_connector import Connector
from benchmarks.spark_cpu import CpuMeter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 4  # of a topic: twice as many as there are tasks at a time
TRIGGERS = 25  # measured; those before them warm up
WARM_TRIGGERS = 5
ROWS_PER_TRIGGER = 100
TRIGGERS_WITHIN_S = 120.0
ADMIN_WITHIN_S = 30.0

_COLUMNS = "key, value, topic, partition, offset, timestamp, timestampType"
# Values that don't compress, of 100 and 1,024 bytes.
_VALUES = {
    100: "concat(sha2(string(id), 256), md5(string(id)), 'four')",
    1024: "array_join(transform(sequence(1, 32), n -> md5(concat(id, n))), '')",
}


@dataclass(frozen=True)
class Measured:
    """One run: how long it took, what CPU it used, and over how many rows or triggers."""

    seconds: float
    cpu_seconds: float
    count: int


class Lab:
    def __init__(self, spark: SparkSession, cpu: CpuMeter, bootstrap: str, home: Path) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self._filled: set[str] = set()
        self._home = home
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._numbers = itertools.count()
        self._cpu = cpu

    # --- rows that are read ---

    def fill(self, size: int, rows: int) -> None:
        """A topic `rows-SIZE`, and files with the same rows."""
        topic = f"rows-{size}"
        self.create_topic(topic)
        numbers = self.spark.range(0, rows, 1, 2 * PARTITIONS)
        made = numbers.selectExpr("binary(string(id)) as key", f"binary({_VALUES[size]}) as value")
        self._sink(made, "postroad", topic)
        self.topic(size, "postroad").write.parquet(str(self._files(size)))

    def fill_once(self, topic: str, made: Callable[[], DataFrame]) -> None:
        """The topic with these rows, if it isn't there yet."""
        if topic not in self._filled:
            self.create_topic(topic)
            self._sink(made(), "postroad", topic)
            self._filled.add(topic)

    def frame(self, **options: str) -> DataFrame:
        return self.spark.read.format("postroad").options(**self._broker(), **options).load()

    def topic(self, size: int, connector: str) -> DataFrame:
        options = {**self._broker(), "subscribe": f"rows-{size}"}
        return self.spark.read.format(connector).options(**options).load()

    def files(self, size: int) -> DataFrame:
        return self.spark.read.parquet(str(self._files(size)))

    def read(self, frame: DataFrame, rows: int) -> Measured:
        """Every row and column of it, made and thrown away."""
        return self.measure(rows, lambda: frame.write.format("noop").mode("overwrite").save())

    def fingerprint(self, frame: DataFrame) -> tuple[int, ...]:
        """The same for the same rows in any order, and hardly for others."""
        hashed = frame.selectExpr(f"xxhash64({_COLUMNS}) as h")
        row = hashed.selectExpr("count(*)", "bit_xor(h)", "sum(pmod(h, 1000000007))").first()
        assert row is not None, "an aggregate has a row"
        return tuple(map(int, row))

    # --- rows that are written ---

    def write(self, size: int, connector: str, rows: int) -> Measured:
        """Rows of the files into a new topic. The files have more: reading them is a small part of it."""
        some = self.files(size).where(f"offset < {rows // PARTITIONS}").select("key", "value")
        return self.write_frame(some, rows, connector)

    def write_frame(self, frame: DataFrame, rows: int, connector: str = "postroad") -> Measured:
        with self.new_topic() as topic:
            return self.measure(rows, lambda: self._sink(frame, connector, topic))

    @contextmanager
    def new_topic(self) -> Iterator[str]:
        topic = f"copy-{next(self._numbers)}"
        self.create_topic(topic)
        yield topic
        self._admin.delete_topics([topic])[topic].result(ADMIN_WITHIN_S)

    def archive(self, size: int, rows: int) -> Measured:
        return self.archive_topic(f"rows-{size}", rows)

    def archive_topic(self, topic: str, rows: int, *, json_columns: bool = False) -> Measured:
        from postroad.pipelines.archive import ArchiveSettings, archive

        with self._scratch() as scratch:
            settings = ArchiveSettings(
                self.bootstrap, [topic], str(scratch), once=True, json_columns=json_columns
            )
            return self.measure(rows, lambda: archive(self.spark, settings))

    def file_sink(self, size: int, rows: int) -> Measured:
        """Spark's: the same rows and columns as an archive has, and not even divided by date."""
        with self._scratch() as scratch:
            rows_of_topic = self._stream(f"rows-{size}", includeHeaders="true")
            stream = rows_of_topic.writeStream.format("parquet")
            stream = stream.option("checkpointLocation", str(scratch / "checkpoint"))

            def run() -> None:
                stream.trigger(availableNow=True).start(str(scratch / "rows")).awaitTermination()

            return self.measure(rows, run)

    # --- triggers ---

    def triggers(self, connector: str) -> Measured:
        """Small micro-batches, one after the other; the time of one is the median's."""
        frame = self._small(connector)
        with self._scratch() as scratch:
            used = self._cpu.seconds()
            query = (
                frame.writeStream.format("noop")
                .option("checkpointLocation", str(scratch))
                .trigger(processingTime="0 seconds")
                .start()
            )
            try:
                progress = _progress(query, WARM_TRIGGERS + TRIGGERS)
            finally:
                query.stop()
            used = self._cpu.seconds() - used
        took = [each.durationMs["triggerExecution"] / 1000 for each in progress[WARM_TRIGGERS:]]
        per_trigger = statistics.median(took)
        return Measured(per_trigger * TRIGGERS, used / len(progress) * TRIGGERS, TRIGGERS)

    def _small(self, connector: str) -> DataFrame:
        if connector == "rate":
            options = {"rowsPerBatch": str(ROWS_PER_TRIGGER), "numPartitions": str(PARTITIONS)}
            return self.spark.readStream.format("rate-micro-batch").options(**options).load()
        return self._stream("rows-100", maxOffsetsPerTrigger=str(ROWS_PER_TRIGGER))

    # --- parts ---

    def create_topic(self, name: str) -> None:
        self._admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(ADMIN_WITHIN_S)

    def _broker(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.bootstrap, "startingOffsets": "earliest"}

    def _stream(self, topic: str, **options: str) -> DataFrame:
        reader = self.spark.readStream.format("postroad")
        return reader.options(**self._broker(), subscribe=topic, **options).load()

    def _sink(self, frame: DataFrame, connector: str, topic: str) -> None:
        options = {"kafka.bootstrap.servers": self.bootstrap, "topic": topic}
        frame.write.format(connector).options(**options).mode("append").save()

    def measure(self, count: int, work: Callable[[], object]) -> Measured:
        used, begun = self._cpu.seconds(), time.perf_counter()
        work()
        seconds = time.perf_counter() - begun
        return Measured(seconds, self._cpu.seconds() - used, count)

    def _files(self, size: int) -> Path:
        return self._home / f"files-{size}"

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        """An empty directory, on the same disk as everything else."""
        path = self._home / f"scratch-{next(self._numbers)}"
        path.mkdir()
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def lab(home: Path, connector: Connector | None) -> Iterator[Lab]:
    """Broker and session, for as long as the block runs; `home` is deleted afterwards."""
    if connector is not None and connector.home is not None:
        assert "pyspark" not in sys.modules, "another PySpark is to be imported"
        sys.path.insert(0, str(connector.home))
        os.environ.update(connector.environment())
    from postroad.pipelines.session import session

    broker = Postroad(Mode.PAGE_CACHE, home / "broker")
    try:
        broker.start()
        config = {
            "spark.driver.memory": "2g",
            "spark.local.dir": str(home / "spark"),
            "spark.sql.warehouse.dir": str(home / "spark"),
            **(connector.config() if connector else {}),
        }
        with session("benchmark", "local[2]", config) as spark:
            gateway: Any = spark.sparkContext._gateway
            with CpuMeter(int(gateway.proc.pid)) as cpu:
                yield Lab(spark, cpu, f"127.0.0.1:{broker.port}", home)
    finally:
        broker.stop()
        shutil.rmtree(home, ignore_errors=True)


def _progress(query: Any, count: int) -> list[Any]:
    """The progress of the first `count` micro-batches that had rows."""
    deadline = time.monotonic() + TRIGGERS_WITHIN_S
    while time.monotonic() < deadline:
        found = [each for each in query.recentProgress if each.numInputRows]
        if len(found) >= count:
            return found[:count]
        if query.exception() is not None:
            raise query.exception()
        time.sleep(0.05)
    raise TimeoutError(f"a query did not come to {count} micro-batches within {TRIGGERS_WITHIN_S:.0f} s")
