"""archive: topics → a table, each record once, until it has all there is or for as long as it runs.

The query's source reads topics and writes files; its sink commits them to the table (both in `tables`).
Where it begins is not only in Spark's checkpoint: the table itself says up to where each partition is
archived. A checkpoint that is lost costs nothing, and one that doesn't fit the table is refused.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from postroad.errors import ConfigurationError
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.running import Moved, Progress, Report, follow
from postroad.pipelines.tables import OURS, TableAddress, create_table
from postroad.pipelines.tables.bad_rows import DEADLETTER, DROP
from postroad.pipelines.tables.compaction import Merging
from postroad.pipelines.tables.location import Location
from postroad.pipelines.tables.merging import merging
from postroad.pipelines.tables.retention import delete_before
from postroad.pipelines.tables.schema import Kind
from postroad.pipelines.tables.settings import FileSettings
from postroad.pipelines.tables.sink import AGAIN, ArchiveSink
from postroad.pipelines.tables.sink import NAME as SINK
from postroad.pipelines.tables.source import BYTES, ROWS, ArchiveSource, read_options
from postroad.pipelines.tables.source import NAME as SOURCE
from postroad.pipelines.tables.table import (
    ELSEWHERE,
    Conflict,
    Optimized,
    Table,
    TopicPartition,
    over_conflicts,
)
from postroad.pipelines.tables.topics import check_is_archived
from postroad.spark import offsets
from postroad.spark.cluster import Cluster, TopicInfo
from postroad.spark.option_values import Values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

UPKEEP_EVERY_S: Final = 3600.0
RETENTION_MS_MIN: Final = 3_600_000  # upkeep comes once an hour: nothing shorter could be kept
OBSERVED: Final = "archived"  # what counts records and their bytes: a row of the stream is a file
EARLIEST: Final = -2  # as startingOffsets writes it

T = TypeVar("T")

log = logging.getLogger(__name__)

# Archives of one session begin one after the other, each with its own registration. Spark refuses a name that
# another thread registers at the same moment; and queries that share a registration share a map in it, which
# one may change while the other's task is being serialized (OptionalDataException).
_BEGINNING: Final = threading.Lock()


@dataclass(frozen=True)
class ArchiveSettings:
    """What to archive, and how. `to` is a directory or a URL."""

    bootstrap: str
    topics: Sequence[str]
    to: str
    format: Literal["delta", "iceberg", "parquet"] = "delta"
    once: bool = False  # stop when all is archived that was there at the start
    every_s: float = 60.0  # otherwise: how often new records become a commit
    checkpoint: str | None = None  # in the table's directory by default
    catalog: str = ""  # Iceberg's: its URL, and the table's name in it
    table: str = "postroad.archive"
    json_columns: bool = False
    json_kinds: Mapping[str, Kind] = field(default_factory=dict)  # types that JSON columns must have
    bad_rows: Literal["keep", "fail", "drop", "deadletter"] = "keep"
    dead_letter_topic: str = ""  # where bad rows go; it is created if need be
    optimize: bool = False
    retention_ms: int | None = None  # messages that are older are deleted; at least RETENTION_MS_MIN
    # Further options of the source. With valueFormat and schemaRegistry values become columns.
    source: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> TableAddress:
        """With the whole path: tasks have another working directory."""
        return TableAddress(str(Location(self.to)), self.format, self.catalog, self.table)

    @property
    def files(self) -> FileSettings:
        kinds = self.json_kinds if self.has_columns else {}
        return FileSettings(self.address, self.json_columns, kinds, self.bad_rows, self.dead_letter_topic)

    @property
    def has_columns(self) -> bool:
        """Whether values become columns."""
        return self.json_columns or Values(self.source).has("valueFormat")


class Archived(NamedTuple):
    """What a run did. `ends`: the offset after the last one archived, by topic and partition."""

    rows: int
    ends: dict[str, dict[int, int]]
    optimized: Optimized | None
    files_deleted: int


def archive(
    spark: SparkSession,
    settings: ArchiveSettings,
    *,
    report: Report = lambda progress: None,
    stop: threading.Event | None = None,
) -> Archived:
    """Runs until all is archived (`once`), or until `stop` is set.

    Before anything is written it is an error if the cluster or a topic is not there, if a topic is not the
    one that was archived, if something else than this archive lies at the path, or if there is no such
    option of the source.
    """
    _check_retention(settings.retention_ms)
    _check_bad_rows(settings)
    read_options(_options(settings, "earliest"))
    with Cluster(settings.bootstrap, isolation="read_committed") as cluster:
        infos = cluster.topics(list(settings.topics))
        if settings.dead_letter_topic:
            cluster.create_topic(settings.dead_letter_topic, exist_ok=True)
        table = create_table(settings.address)
        known = table.recorded("", list(settings.topics))
        for info in infos.values():
            check_is_archived(info, known.ends, known.topic_numbers, ELSEWHERE)
        ends = known.ends
        latest = cluster.latest(
            [topic_partition for info in infos.values() for topic_partition in info.topic_partitions]
        )
        earliest = cluster.earliest(list(latest))
    begin = {
        topic_partition: max(ends.get(topic_partition, 0), first)
        for topic_partition, first in earliest.items()
    }
    total = sum(max(0, end - begin[topic_partition]) for topic_partition, end in latest.items())
    upkeep = Upkeep(table, settings, merging=merging(spark, settings.address))
    with _checkpoint(
        settings, {topic_partition: begin[topic_partition] for topic_partition in ends}
    ) as checkpoint:
        rows = 0
        while True:
            with _BEGINNING:
                query = _start(spark, settings, _starting_offsets(infos, ends), checkpoint)
            counted = _Counted(report, rows)
            try:
                stopping = stop or threading.Event()
                follow(query, total, counted.report, stopping, upkeep.now_and_then, _moved)
            except PipelineError as error:
                if not str(error).startswith(AGAIN):
                    raise
                log.info("%s", error)
                continue
            finally:
                query.stop()
                rows = counted.rows
            break
    if settings.once:
        upkeep.run()
    return Archived(rows, _by_topic(table.ends(list(settings.topics))), upkeep.optimized, upkeep.deleted)


def _start(spark: SparkSession, settings: ArchiveSettings, starting: str, checkpoint: str) -> StreamingQuery:
    from pyspark.sql import functions as sf

    # A stream's sink is looked up in the thread's active session, and a thread that is new to Spark has none.
    spark.createDataFrame([], "nothing int")
    spark.dataSource.register(ArchiveSource)
    spark.dataSource.register(ArchiveSink)
    writer = (
        _files(spark, settings, starting)
        .observe(OBSERVED, sf.sum(ROWS).alias(ROWS), sf.sum(BYTES).alias(BYTES))
        .writeStream.format(SINK)
        .options(**settings.files.options())
        .option("checkpointLocation", checkpoint)
    )
    if settings.once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{settings.every_s:g} seconds").start()


def _files(spark: SparkSession, settings: ArchiveSettings, starting: str) -> DataFrame:
    """The stream of files that are to be committed."""
    return spark.readStream.format(SOURCE).options(**_options(settings, starting)).load()


def _options(settings: ArchiveSettings, starting: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": settings.bootstrap,
        "subscribe": ",".join(settings.topics),
        "startingOffsets": starting,
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
        **settings.source,
        **settings.files.options(),
    }


@contextmanager
def _checkpoint(settings: ArchiveSettings, ends: Mapping[TopicPartition, int]) -> Iterator[str]:
    """Where Spark keeps its own notes, which may not be ahead of the table.

    For a table that is not a directory a temporary one will do.
    """
    directory = Location(settings.to).directory
    if settings.checkpoint is None and directory is None:
        passing = tempfile.mkdtemp(prefix="postroad-checkpoint-")
        try:
            yield passing
        finally:
            shutil.rmtree(passing, ignore_errors=True)
        return
    checkpoint = settings.checkpoint or str(directory / OURS / "checkpoint" if directory else "")
    done = _committed(Path(checkpoint))
    is_ahead = any(offset > ends.get(topic_partition, offset) for topic_partition, offset in done.items())
    if is_ahead or (done and not ends):
        raise PipelineError(
            f"the checkpoint {checkpoint} has archived rows that are not in {settings.to}: it belongs to "
            "another table, or the table was deleted or is an older copy. Delete it, or name another with "
            "--checkpoint"
        )
    yield checkpoint


def _committed(checkpoint: Path) -> offsets.Offsets:
    """The offsets that a query has done with, as Spark notes them; none if it has done nothing yet."""
    batches = [int(path.name) for path in (checkpoint / "commits").glob("[0-9]*") if path.name.isdecimal()]
    if not batches:
        return {}
    try:
        # A version, then what concerns the query, then a line for each of its sources: here it has one.
        lines = (checkpoint / "offsets" / str(max(batches))).read_text().splitlines()
        return offsets.from_json(json.loads(lines[2]))
    except (OSError, ValueError, IndexError, ConfigurationError) as error:
        raise PipelineError(
            f"the checkpoint {checkpoint} can't be read ({error}): delete it, which costs nothing"
        ) from None


def _starting_offsets(infos: Mapping[str, TopicInfo], ends: Mapping[tuple[str, int], int]) -> str:
    """For a query without a checkpoint: on from where the table ends."""
    return json.dumps(
        {
            name: {str(number): ends.get((name, number), EARLIEST) for number in info.partitions}
            for name, info in sorted(infos.items())
        }
    )


def _moved(told: Any) -> Moved:
    """What a micro-batch archived, by its progress."""
    observed = told["observedMetrics"].get(OBSERVED)
    return Moved(0, 0) if observed is None else Moved(observed[ROWS] or 0, observed[BYTES] or 0)


def _by_topic(ends: Mapping[tuple[str, int], int]) -> dict[str, dict[int, int]]:
    topics: dict[str, dict[int, int]] = {}
    for (topic, partition), end in sorted(ends.items()):
        topics.setdefault(topic, {})[partition] = end
    return topics


class _Counted:
    """Progress of a query that may be the second of a run."""

    def __init__(self, report: Report, rows: int) -> None:
        self._report = report
        self.rows = self._before = rows

    def report(self, progress: Progress) -> None:
        self.rows += progress.rows
        done = self._before + progress.done
        self._report(progress._replace(done=done, total=max(progress.total, done)))


class Upkeep:
    """Compaction and retention: after a run that ends, and once an hour in one that doesn't."""

    def __init__(
        self,
        table: Table,
        settings: ArchiveSettings,
        every_s: float = UPKEEP_EVERY_S,
        merging: Merging | None = None,
    ) -> None:
        """`merging`: who makes large files; without it this process."""
        self._table = table
        self._merging = merging
        self._settings = settings
        self._every_s = every_s
        self._next = time.monotonic() + every_s
        self.optimized: Optimized | None = None
        self.deleted = 0

    def now_and_then(self) -> None:
        """Rows come first: upkeep that fails is told, and ends no archive."""
        if not self._settings.once and time.monotonic() >= self._next:
            try:
                self.run()
            except Exception as error:
                log.warning("%s: no upkeep now, the next time will do: %s", self._table.location, error)
            self._next = time.monotonic() + self._every_s

    def run(self) -> None:
        retention_ms = self._settings.retention_ms
        if retention_ms is not None:
            oldest_us = (time.time_ns() // 1_000_000 - retention_ms) * 1000
            self.deleted += _kept_up(lambda: delete_before(self._table, oldest_us))
        if self._settings.optimize:
            self.optimized = _kept_up(partial(self._table.optimize, self._merging))


def _check_retention(retention_ms: int | None) -> None:
    if retention_ms is not None and retention_ms < RETENTION_MS_MIN:
        raise PipelineError("a retention is at least an hour: that is how often it is looked after")


def _check_bad_rows(settings: ArchiveSettings) -> None:
    if settings.bad_rows in (DROP, DEADLETTER) and not settings.has_columns:
        raise PipelineError(f"--bad-rows {settings.bad_rows}: without columns of values no row is bad")
    if (settings.bad_rows == DEADLETTER) != bool(settings.dead_letter_topic):
        raise PipelineError("--bad-rows deadletter and --dead-letter-topic belong together: give both")
    if settings.dead_letter_topic in settings.topics:
        raise PipelineError(
            f"{settings.dead_letter_topic} is archived itself: its letters would be dead letters again"
        )
    if settings.json_columns and Values(settings.source).has("valueFormat"):
        raise PipelineError("values are JSON (--json-columns) or have a schema (--values): say one of them")


def _kept_up(work: Callable[[], T]) -> T:
    try:
        return over_conflicts(work)
    except Conflict:
        raise PipelineError("the table changes too fast for its upkeep: try again later") from None


def kinds_of_ddl(ddl: str) -> dict[str, Kind]:
    """`amount double, id string` as types of JSON columns. PipelineError if it can't be that."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        parsed: Any = StructType.fromDDL(ddl)
    except PySparkException:
        raise PipelineError(f"--json-schema: {ddl!r} is not like: amount double, id string") from None
    kinds: dict[str, Kind] = {}
    for column in parsed.fields:
        kind = _KIND_OF_SPARK.get(column.dataType.simpleString())
        if kind is None:
            raise PipelineError(
                f"--json-schema: column {column.name} is {column.dataType.simpleString()}; "
                "a JSON column is boolean, bigint, double or string"
            )
        kinds[column.name] = kind
    return kinds


_KIND_OF_SPARK: Final[dict[str, Kind]] = {
    "boolean": "boolean",
    "int": "bigint",
    "bigint": "bigint",
    "float": "double",
    "double": "double",
    "string": "string",
}
