"""Where a replay's messages come from: topics, or an archive of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from postroad.pipelines import edges
from postroad.pipelines.edges import NATURAL, Bounds, Edge
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.failures import spark_failures
from postroad.pipelines.steps import StepState, read_step
from postroad.pipelines.tables.location import Location
from postroad.spark import ranges
from postroad.spark.cluster import Cluster
from postroad.spark.columns import ALL_WITH_HEADERS
from postroad.spark.router import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ARCHIVE_TASKS: Final = 16  # that sort an archive's rows, where there are as many partitions


@dataclass(frozen=True)
class ReplaySettings:
    """What to replay, and how. `to` None: each message into the topic that it came from."""

    bootstrap: str  # where it is written; and read, unless an archive or another cluster is named
    topics: Sequence[str]
    to: str | None
    source_bootstrap: str | None = None
    archive: str | None = None
    catalog: str = ""  # Iceberg's: its URL, and the table's name in it
    table: str = "postroad.archive"
    since: Edge = NATURAL
    until: Edge = NATURAL
    where: str | None = None
    keeps_timestamps: bool = False
    keeps_partitions: bool = False
    rate: float | None = None  # messages a second
    name: str | None = None


class Source(NamedTuple):
    """Where messages come from. `rows` of a step: each partition's together, in order, in so many tasks."""

    identity: Mapping[str, Any]
    bounds: Callable[[], dict[TopicPartition, Bounds]]
    rows: Callable[[StepState, int | None], DataFrame]
    sample: Callable[[], DataFrame]  # with its columns; its rows don't matter


def source_of(spark: SparkSession, settings: ReplaySettings) -> Source:
    """An error if the cluster, a topic or the archive is not there."""
    return _topic_source(spark, settings) if settings.archive is None else _archive_source(spark, settings)


def _topic_source(spark: SparkSession, settings: ReplaySettings) -> Source:
    bootstrap = settings.source_bootstrap or settings.bootstrap
    with Cluster(bootstrap, isolation="read_committed") as cluster:
        infos = cluster.topics(list(settings.topics))
        cluster_id = cluster.id()
    topic_partitions = sorted(
        topic_partition for info in infos.values() for topic_partition in info.topic_partitions
    )

    def bounds() -> dict[TopicPartition, Bounds]:
        with Cluster(bootstrap, isolation="read_committed") as cluster:
            return edges.topic_bounds(cluster, topic_partitions, settings.since, settings.until)

    def rows(state: StepState, tasks: int | None) -> DataFrame:
        found = read_step(spark, bootstrap, state)
        return found if tasks is None else found.coalesce(tasks)

    def sample() -> DataFrame:
        return spark.createDataFrame([], ALL_WITH_HEADERS.ddl)

    ids = {name: info.id.hex() for name, info in infos.items()}
    return Source({"cluster": cluster_id, "topics": ids}, bounds, rows, sample)


def _archive_source(spark: SparkSession, settings: ReplaySettings) -> Source:
    from pyspark.sql import functions as f

    from postroad.pipelines.history import read_archive

    assert settings.archive is not None
    with spark_failures():
        everything = read_archive(spark, settings.archive, settings.catalog, settings.table)
        archived = everything.where(f.col("topic").isin(list(settings.topics)))

    def bounds() -> dict[TopicPartition, Bounds]:
        found = {
            (row.topic, row.partition): Bounds(row.first, row.end, row.since, row.until)
            for row in archived.groupBy("topic", "partition").agg(*_edge_columns(settings)).collect()
        }
        for topic in sorted(set(settings.topics) - {topic for topic, _ in found}):
            raise PipelineError(f"the archive {settings.archive} has no messages of topic {topic}")
        return found

    def rows(state: StepState, tasks: int | None) -> DataFrame:
        parts = ranges.between(state.at, state.until)
        wanted = reduce(lambda one, other: one | other, (_within(part) for part in parts))
        count = tasks or min(ARCHIVE_TASKS, len(parts))
        together = archived.where(wanted).repartition(count, "topic", "partition")
        return together.sortWithinPartitions("topic", "partition", "offset")

    identity = {
        "archive": str(Location(settings.archive)),
        "catalog": settings.catalog,
        "table": settings.table,
    }
    return Source({**identity, "topics": sorted(settings.topics)}, bounds, rows, lambda: archived)


def _edge_columns(settings: ReplaySettings) -> list[Column]:
    from pyspark.sql import functions as f

    def at_time(edge: Edge) -> Column:
        """The first offset that is at least as late."""
        if edge.time_ms is None:
            return f.lit(None).cast("bigint")
        return f.min(f.when(f.col("timestamp") >= f.timestamp_millis(f.lit(edge.time_ms)), f.col("offset")))

    return [
        f.min("offset").alias("first"),
        (f.max("offset") + 1).alias("end"),
        at_time(settings.since).alias("since"),
        at_time(settings.until).alias("until"),
    ]


def _within(part: ranges.OffsetRange) -> Column:
    from pyspark.sql import functions as f

    at = f.col("offset")
    return (
        (f.col("topic") == part.topic)
        & (f.col("partition") == part.partition)
        & (at >= part.start)
        & (at < part.until)
    )
