"""Topics as a stream of files: a task reads its range of offsets, writes it, and passes on what it wrote.

A record is decoded and written in one process. As a row of Spark's it would go from Python to the JVM, from
columns to rows and back to columns, and to Python again: that took more time than all the rest. The rows of
this stream are few: one for each file, with how many records are in it, and one for each range of offsets,
with where it ends.

Offsets, limits and the checkpoint are those of the source `postroad`, whose reader this one is but for what
its tasks do. Files are nobody's until `sink` commits them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from postroad.errors import ConfigurationError
from postroad.pipelines.tables.files import Files
from postroad.pipelines.tables.settings import FileSettings
from postroad.pipelines.tables.table import Reached
from postroad.pipelines.tables.topics import topic_number
from postroad.spark import columns, ranges
from postroad.spark.dead_letters import DeadLetters
from postroad.spark.option_values import Values
from postroad.spark.options import ReadOptions, ValueOptions, parse_read
from postroad.spark.own_schemas import OwnSchemas
from postroad.spark.parsed_values import micro_batch
from postroad.spark.ranges import OffsetRange
from postroad.spark.reader import RangePartition, Task
from postroad.spark.registered_parsing import FORMATS
from postroad.spark.rows import sizes
from postroad.spark.stream_reader import StreamReader

NAME: Final = "postroad-archive-files"

TASK_OFFSETS_MIN: Final = 100_000  # less than that is not worth a task, and a file, of its own
TASK_OFFSETS_MAX: Final = 1_000_000  # more than that is the work of several
BATCH_BYTES: Final = 4 << 30  # of a micro-batch, as stored: what a kill may cost; minutes at most

ROWS: Final = "rows"
BYTES: Final = "bytes"  # of the records, without compression
FILE: Final = "file"
REACHED: Final = "reached"
DDL: Final = f"{ROWS} bigint, {BYTES} bigint, {FILE} string, {REACHED} string"
_SCHEMA: Final = pa.schema(
    [(ROWS, pa.int64()), (BYTES, pa.int64()), (FILE, pa.string()), (REACHED, pa.string())]
)


class ArchiveSource(DataSource):
    """`readStream.format("postroad-archive-files")`, once it is registered as `ArchiveSink` is.

    Options: those of FileSettings, and those of the source `postroad`.
    """

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        read_options(self.options)
        return DDL

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's)
        return FilesReader(
            read_options(self.options), FileSettings.of(self.options), schemas_of(self.options)
        )


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """ConfigurationError if one of them is none of the source's, or none for an archive."""
    found = parse_read(FileSettings.others(options), streaming=True)
    if found.values is not None:
        _check_values(options, found.values)
    return found


def schemas_of(options: Mapping[str, str]) -> OwnSchemas | None:
    """How values are read that have a registered schema; None: they are what they are. Raises
    ConfigurationError."""
    values = read_options(options).values
    if values is None:
        return None
    assert values.registry is not None, "it was checked"
    return OwnSchemas(values.registry, FORMATS[values.format])


def _check_values(given: Mapping[str, str], values: ValueOptions) -> None:
    if values.registry is None:
        raise ConfigurationError(
            "Option valueFormat: of an archive it is avro, json-schema or protobuf. Columns of JSON without "
            "a schema are --json-columns."
        )
    asked = Values(given)
    if asked.given("badRows", "deadLetterTopic"):
        raise ConfigurationError("An archive is told of bad rows by --bad-rows and --dead-letter-topic.")
    for name in asked.given("valueSchema", "schemaSubject", "schemaMessage"):
        raise ConfigurationError(
            f"Option {name}: leave it out. An archive reads each message by its own schema."
        )


class FilesPartition(InputPartition):
    """What one task archives: ranges of one topic. `topic_number`: which topic of that name it is."""

    def __init__(self, ranges: tuple[OffsetRange, ...], topic_number: int) -> None:
        super().__init__(ranges)
        self.topic_number = topic_number

    @property
    def ranges(self) -> tuple[OffsetRange, ...]:
        found: tuple[OffsetRange, ...] = self.value
        return found


class FilesReader(StreamReader):
    """The reader whose tasks write files.

    Ranges are cut and put together, unless the user says how large they are to be: a partition that has most
    of the messages is the work of several tasks, and a thousand that have little are not as many files.
    """

    def __init__(
        self, options: ReadOptions, settings: FileSettings, schemas: OwnSchemas | None = None
    ) -> None:
        self._is_told = options.min_partitions > 1 or options.max_records is not None
        if not self._is_told:
            options = replace(options, max_records=TASK_OFFSETS_MAX)
        if options.max_offsets is None and options.max_bytes is None:
            options = replace(options, max_bytes=BATCH_BYTES)
        super().__init__(options, Task(options, columns.every(headers=True)))
        self._settings = settings
        self._schemas = schemas

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        parts = [part.range for part in super().partitions(start, end) if isinstance(part, RangePartition)]
        ids = self._cluster.topic_ids({part.topic for part in parts})
        groups = ranges.pack(parts, 0 if self._is_told else TASK_OFFSETS_MIN)
        return [FilesPartition(group, topic_number(ids[group[0].topic])) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """In a task: files that no reader sees yet; none are left after an error."""
        assert isinstance(partition, FilesPartition)
        files = self._settings.files(self._schemas)
        try:
            read = [self._read(part, files) for part in partition.ranges]
            done = files.finish()
        except BaseException:
            files.abandon()
            raise
        rows: list[dict[str, Any]] = [{ROWS: file.rows, BYTES: 0, FILE: file.to_json()} for file in done]
        for (topic, number, _, until), size in zip(partition.ranges, read, strict=True):
            reached = Reached(topic, partition.topic_number, number, until)
            rows.append({ROWS: 0, BYTES: size, REACHED: reached.to_json()})
        yield pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)

    def _read(self, part: OffsetRange, files: Files) -> int:
        """How many bytes the records have."""
        topic, size = self._settings.dead_letter_topic, 0
        if not topic:
            for batch in self._task.read(part):
                files.write(batch)
                size += _bytes(batch)
            return size
        with copy(self._options.cluster) as cluster:
            letters = DeadLetters(cluster, topic, part, f"{micro_batch()} {files.kinds}")
            for batch in self._task.read(part):
                files.write(batch, letters)
                size += _bytes(batch)
            letters.flush()
        return size


def _bytes(batch: Any) -> int:
    return int(sizes(batch).sum())
