"""history: a topic from its first archived record to its newest, as one DataFrame.

The archive says up to which offset it holds each partition; the live topic is read from exactly there.
Both the archive's files and its ends are of one snapshot, so there is neither a gap nor an overlap, however
much is archived meanwhile. Where the live topic no longer has what would come next, that is an error:
a history with a hole in it must not look like one without.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from postroad.pipelines.errors import PipelineError
from postroad.pipelines.shapes import with_nulls, without_nulls
from postroad.pipelines.tables import find_table
from postroad.pipelines.tables.schema import (
    DATE,
    DAY_MAX,
    DAY_MIN,
    DAY_US,
    RECORD,
    Kind,
    ddl,
    json_kinds,
    with_json,
)
from postroad.pipelines.tables.table import Snapshot, TopicPartition
from postroad.pipelines.tables.topics import check_is_archived
from postroad.spark import schema_registry
from postroad.spark.cluster import Cluster
from postroad.spark.ranges import OffsetRange, between

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from postroad.pipelines.tables.growing_columns import ValueColumns

_ALONE: Final = "To read the archive alone, name no cluster"


@dataclass(frozen=True)
class Sources:
    """Where records are: a cluster, an archive, or both. One of them may be missing, not both."""

    bootstrap: str | None
    archive: str | None = None
    catalog: str = ""  # Iceberg's: its URL, and the table's name in it
    table: str = "postroad.archive"
    # Further ones of the source. An archive whose values have a schema needs valueFormat and schemaRegistry.
    options: Mapping[str, str] = field(default_factory=dict)
    spool: Path | None = None  # where small topics become files, for a session of this machine alone


def history(spark: SparkSession, topic: str, sources: Sources) -> DataFrame:
    """All records of a topic, with the columns of the archive (or of an archive without JSON columns).

    PipelineError if there is a gap between archive and topic, if they are of two topics of one name, or if
    an archive alone has never had it; UnknownTopicOrPartition if the cluster has no such topic.
    """
    snapshot = _snapshot(topic, sources)
    kinds = {} if snapshot is None else json_kinds(snapshot.schema)
    parts = [] if snapshot is None else [read_snapshot(spark, snapshot).where(f"topic = '{topic}'")]
    if sources.bootstrap is not None:
        parts.append(_live(spark, topic, sources, snapshot, kinds))
    if not parts:
        raise PipelineError("a history needs an archive or a cluster: name one of them")
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def view(spark: SparkSession, topic: str, sources: Sources) -> DataFrame:
    """The same, and a temporary view of the topic's name for SQL."""
    found = history(spark, topic, sources)
    found.createOrReplaceTempView(f"`{topic}`")
    return found


def read_archive(
    spark: SparkSession, location: str, catalog: str = "", table: str = "postroad.archive"
) -> DataFrame:
    """The archive alone, all topics in it."""
    return read_snapshot(spark, find_table(location, catalog, table).snapshot())


def read_snapshot(spark: SparkSession, snapshot: Snapshot) -> DataFrame:
    """An archive's files, read by Spark's own Parquet scan: no format of theirs needs a jar for that."""
    columns = ddl(snapshot.schema)
    if not snapshot.files:
        return spark.createDataFrame([], columns)
    reader = spark.read.schema(columns).option("basePath", snapshot.base)
    return reader.parquet(*snapshot.files).select(*snapshot.schema.names)


def _snapshot(topic: str, sources: Sources) -> Snapshot | None:
    if sources.archive is None:
        return None
    snapshot = find_table(sources.archive, sources.catalog, sources.table).snapshot([topic])
    was_archived = topic in snapshot.topics or any(name == topic for name, _ in snapshot.ends)
    if sources.bootstrap is None and not was_archived:
        raise PipelineError(
            f"{topic} is not in the archive {sources.archive}, "
            f"which has {', '.join(snapshot.topics) or 'no topic yet'}"
        )
    return snapshot


def _live(
    spark: SparkSession, topic: str, sources: Sources, archived: Snapshot | None, kinds: Mapping[str, Kind]
) -> DataFrame:
    """The topic from where the archive ends to where it ends now, with the archive's columns."""
    assert sources.bootstrap is not None
    archiving = _archiving(kinds, sources)
    ends = {} if archived is None else archived.ends
    with Cluster(sources.bootstrap, isolation="read_committed") as cluster:
        info = cluster.topics([topic])[topic]
        topic_partitions = info.topic_partitions
        if archived is not None:
            check_is_archived(info, ends, archived.topic_numbers, _ALONE)
        earliest, latest = cluster.earliest(topic_partitions), cluster.latest(topic_partitions)
        start = {
            topic_partition: ends.get(topic_partition, earliest[topic_partition])
            for topic_partition in topic_partitions
        }
        for topic_partition, offset in start.items():
            _check_joins(topic_partition, offset, earliest[topic_partition], latest[topic_partition])
        parts = between(start, latest)
        if sources.spool is not None and (found := _spooled(sources.spool, cluster, parts, kinds, archiving)):
            return spark.read.schema(ddl(with_json(kinds))).parquet(str(found))
    options = {
        "kafka.bootstrap.servers": sources.bootstrap,
        "subscribe": topic,
        "startingOffsets": _offsets(topic, start),
        "endingOffsets": _offsets(topic, latest),
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
        **_of_bytes(sources.options),
    }
    return _as_archived(spark.read.format("postroad").options(**options).load(), kinds, archiving)


def _spooled(
    directory: Path,
    cluster: Cluster,
    parts: Sequence[OffsetRange],
    kinds: Mapping[str, Kind],
    archiving: Callable[[Any], Any],
) -> Path | None:
    from postroad.pipelines.spool import spool

    return spool(directory, cluster, parts, with_json(kinds), archiving)


def _check_joins(topic_partition: TopicPartition, archived_to: int, earliest: int, latest: int) -> None:
    topic, partition = topic_partition
    if archived_to < earliest:
        raise PipelineError(
            f"{topic}/{partition}: offsets {archived_to} to {earliest - 1} are neither in the archive nor in "
            f"the topic any more. Archive more often than the topic's retention deletes. {_ALONE}"
        )
    if archived_to > latest:
        raise PipelineError(
            f"{topic}/{partition}: the archive ends at offset {archived_to}, and the topic at {latest}: "
            f"it was deleted and created anew, or this is another cluster. {_ALONE}"
        )


def _offsets(topic: str, offsets: Mapping[TopicPartition, int]) -> str:
    return json.dumps({topic: {str(partition): offset for (_, partition), offset in offsets.items()}})


def _as_archived(live: DataFrame, kinds: Mapping[str, Kind], archiving: Callable[[Any], Any]) -> DataFrame:
    """Live rows with the archive's columns."""
    from pyspark.sql import functions as f

    dated = live.withColumn(DATE, f.expr(live_date())).select(*RECORD.names)
    return _with_columns(dated, kinds, archiving) if kinds else dated


def live_date() -> str:
    """The date of a live row, in SQL, as `tables.files` makes it: UTC's, whatever the session's time zone."""
    micros = "coalesce(unix_micros(timestamp), 0L)"
    day = f"({micros} - pmod({micros}, {DAY_US}L)) div {DAY_US}L"
    return f"date_from_unix_date(int(least(greatest({day}, {DAY_MIN}L), {DAY_MAX}L)))"


def _with_columns(rows: DataFrame, kinds: Mapping[str, Kind], archiving: Callable[[Any], Any]) -> DataFrame:
    """Made by the very same code as the archive's. Only these rows go through Python for it."""

    def extended(batches: Iterator[Any]) -> Iterator[Any]:
        return map(archiving, batches)

    schema = with_json(kinds)
    return with_nulls(without_nulls(rows).mapInArrow(extended, ddl(schema))).select(*schema.names)


def _archiving(kinds: Mapping[str, Kind], sources: Sources) -> Callable[[Any], Any]:
    """Makes a batch what an archive with these columns has."""
    from postroad.pipelines.tables.files import archived
    from postroad.pipelines.tables.json_columns import JsonColumns

    if not kinds:
        return archived
    from postroad.pipelines.tables.schema_columns import SchemaColumns
    from postroad.pipelines.tables.source import schemas_of

    names = with_json(kinds).names
    where = {"kafka.bootstrap.servers": str(sources.bootstrap), "subscribe": "any", **sources.options}
    schemas = schemas_of(where)

    def columns() -> ValueColumns:
        return JsonColumns(kinds) if schemas is None else SchemaColumns(kinds, schemas)

    return lambda batch: columns().extend(archived(batch)).select(names)


def _of_bytes(options: Mapping[str, str]) -> dict[str, str]:
    """Without those that say how values are read: the archive's code does it."""
    names = {name.lower() for name in ("valueFormat", *schema_registry.NAMES)}
    return {name: value for name, value in options.items() if name.lower() not in names}
