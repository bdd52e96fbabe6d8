"""Streaming queries in tests: started, run to the end of what there is, and asked what they did."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.spark.plain import Row, of_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PATIENCE_S = 240  # a query takes seconds


class Stream:
    """A query from topics into Parquet files, which is exactly once as long as Spark reads them."""

    def __init__(self, spark: SparkSession, home: Path, bootstrap: str, **options: Any) -> None:
        self.spark = spark
        self.home = home
        self.bootstrap = bootstrap
        self.options = {"startingOffsets": "earliest", **options}

    def frame(self, **options: Any) -> DataFrame:
        reader = self.spark.readStream.format("postroad")
        reader = reader.option("kafka.bootstrap.servers", self.bootstrap)
        return reader.options(**{**self.options, **options}).load()

    def start(self, *, once: bool = True, **options: Any) -> StreamingQuery:
        writer = self.frame(**options).writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(self.home / "checkpoint"))
        writer = (
            writer.trigger(availableNow=True) if once else writer.trigger(processingTime="100 milliseconds")
        )
        return writer.start(str(self.home / "rows"))

    def run(self, **options: Any) -> StreamingQuery:
        """To the end of what there is now. Raises what the query ended with."""
        query = self.start(**options)
        try:
            assert query.awaitTermination(PATIENCE_S), "the query did not come to the end"
        finally:
            query.stop()
        return query

    def rows(self) -> list[Row]:
        return of_spark(self.spark.read.parquet(str(self.home / "rows")).collect())

    def offsets(self) -> list[str]:
        """The checkpoint's end offsets, as written, of each micro-batch."""
        logs = sorted(
            (path for path in (self.home / "checkpoint" / "offsets").iterdir() if path.name.isdigit()),
            key=lambda path: int(path.name),
        )
        return [path.read_text().splitlines()[-1] for path in logs]


def batch_sizes(query: StreamingQuery) -> list[int]:
    """Rows of each micro-batch that had some, in order."""
    return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]
