"""Rows → Parquet files, one for each topic and date; the part that tasks do.

Rows come in small batches and go out in row groups that scan well; a file that has become large is followed
by another one. Names are random: two attempts of one task never meet, and what a failed attempt left is never
part of a commit.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from postroad.pipelines.tables.bad_rows import BadRows
from postroad.pipelines.tables.growing_columns import ValueColumns
from postroad.pipelines.tables.schema import (
    DATE,
    DAY_MAX,
    DAY_MIN,
    DAY_US,
    EPOCH,
    RECORD,
    Kind,
    json_kinds,
    without_partitions,
)
from postroad.pipelines.tables.table import TARGET_BYTES, DataFile, Span, Table
from postroad.spark.columns import OFFSET, PARTITION, TIMESTAMP, TOPIC
from postroad.spark.dead_letters import DeadLetters

GROUP_ROWS: Final = 128 * 1024
GROUP_BYTES: Final = 64 * 1024 * 1024
OPEN_MAX: Final = 32  # files that one task writes at once: old timestamps may lie in very many dates

# Columns that repeat themselves. Keys and values rarely do, and a dictionary of them only costs.
_WITH_DICTIONARY: Final = [TOPIC, PARTITION, "timestampType", DATE, "headers.list.element.key"]
_KEPT: Final = BadRows()
_WITH_STATISTICS: Final = [TOPIC, PARTITION, OFFSET, TIMESTAMP, DATE]


class Files:
    """The files of one task: `write` each batch, then `finish`. After an error, `abandon`."""

    def __init__(self, table: Table, columns: ValueColumns | None = None, bad_rows: BadRows = _KEPT) -> None:
        self._table = table
        self._columns = columns
        self._bad_rows = bad_rows
        self._open: dict[tuple[str, int], PartFile] = {}
        self._done: list[DataFile] = []

    @property
    def kinds(self) -> dict[str, Kind]:
        """The columns of values so far."""
        return {} if self._columns is None else dict(self._columns.kinds)

    def write(self, batch: Any, letters: DeadLetters | None = None) -> None:
        """Rows with the columns of the source; others are left out. `letters`: where bad rows go, if they
        are to."""
        if self._columns is not None and batch.num_rows:
            batch = self._bad_rows.apply(self._columns.extend(archived(batch)), letters)
        elif batch.num_rows:
            batch = archived(batch)
        if not batch.num_rows:
            return
        days = _days(batch.column(TIMESTAMP))
        for topic, day, rows in _by_topic_and_day(batch, days):
            file = self._file(topic, day, rows.schema)
            file.write(rows)
            if file.bytes >= TARGET_BYTES:
                self._close((topic, day))

    def finish(self) -> list[DataFile]:
        for file in self._open.values():
            self._done.append(file.finish())
        self._open.clear()
        return self._done

    def abandon(self) -> None:
        """No file of this task is left."""
        for file in self._open.values():
            file.abandon()
        self._table.discard(self._done)

    def _file(self, topic: str, day: int, schema: Any) -> PartFile:
        """The open file for it. A new JSON column means a new file; with too many, one is closed."""
        file = self._open.get((topic, day))
        if file is not None and file.schema != schema:
            self._close((topic, day))
            file = None
        if file is None:
            if len(self._open) >= OPEN_MAX:
                self._close(next(iter(self._open)))
            file = self._open[topic, day] = PartFile(self._table, topic, EPOCH + timedelta(days=day), schema)
        return file

    def _close(self, which: tuple[str, int]) -> None:
        self._done.append(self._open.pop(which).finish())


class PartFile:
    """One file with rows of one topic and date: `write` batches of its schema, then `finish`."""

    def __init__(self, table: Table, topic: str, day: date, schema: Any) -> None:
        self.schema = schema
        self._location = table.location
        self._topic, self._date = topic, day.isoformat()
        self.path = (
            f"{table.files_below}topic={topic}/date={self._date}/{uuid.uuid4().hex}{table.file_suffix}"
        )
        self._columns = schema if table.has_partitions_in_files else without_partitions(schema)
        self._stream = table.location.create(self.path)
        self._writer = pq.ParquetWriter(
            self._stream,
            self._columns,
            compression="zstd",
            compression_level=1,
            use_dictionary=_of(_WITH_DICTIONARY, self._columns),
            write_statistics=_of(_WITH_STATISTICS, self._columns),
        )
        self._waiting: list[Any] = []
        self._waiting_rows = self._waiting_bytes = self._rows = 0
        self._spans: dict[int, Span] = {}

    @property
    def rows(self) -> int:
        """How many were written."""
        return self._rows + self._waiting_rows

    @property
    def bytes(self) -> int:
        """As stored, without the rows that wait for their group."""
        return int(self._stream.tell())

    def write(self, rows: Any) -> None:
        if not rows.num_rows:
            return
        for span in _spans(rows):
            known = self._spans.get(span.partition, span)
            first, last = min(known.first, span.first), max(known.last, span.last)
            self._spans[span.partition] = Span(span.partition, first, last)
        self._waiting.append(rows.select(self._columns.names))
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += rows.nbytes
        if self._waiting_rows >= GROUP_ROWS or self._waiting_bytes >= GROUP_BYTES:
            self._flush()

    def finish(self) -> DataFile:
        self._flush()
        self._writer.close()
        size = self._stream.tell()
        self._stream.close()
        spans = tuple(sorted(self._spans.values()))
        return DataFile(self.path, self._topic, self._date, self._rows, size, spans, json_kinds(self.schema))

    def abandon(self) -> None:
        """It is gone, even where nothing more can be written."""
        self._waiting.clear()
        for opened in (self._writer, self._stream):
            with suppress(OSError):
                opened.close()
        self._location.delete(self.path)

    def _flush(self) -> None:
        if self._waiting:
            group = pa.Table.from_batches(self._waiting, schema=self._columns)
            self._writer.write_table(group, row_group_size=self._waiting_rows)
            self._rows += self._waiting_rows
            self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0


def archived(batch: Any) -> Any:
    """A batch of the source as an archive has it: with the date, in the table's order and exact types."""
    days = _days(batch.column(TIMESTAMP))
    dates = pa.array(days.astype(np.int32), pa.int32()).cast(pa.date32())
    arrays = [dates if field.name == DATE else batch.column(field.name).cast(field.type) for field in RECORD]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORD)


def _of(names: Iterable[str], schema: Any) -> list[str]:
    return [name for name in names if name.partition(".")[0] in schema.names]


def _days(timestamps: Any) -> Any:
    """Days since 1970, as numpy; no timestamp is day 0."""
    micros = pc.fill_null(timestamps.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return np.clip(micros // DAY_US, DAY_MIN, DAY_MAX)


def _by_topic_and_day(batch: Any, days: Any) -> Iterator[tuple[str, int, Any]]:
    """Nearly always a batch is of one topic and one day: then it goes on as it is."""
    topics = batch.column(TOPIC)
    for topic in [topics[0].as_py()] if _is_one(topics) else pc.unique(topics).to_pylist():
        is_topic = None if _is_one(topics) else pc.equal(topics, topic).to_numpy(zero_copy_only=False)
        of_topic = days if is_topic is None else days[is_topic]
        for day in _distinct(of_topic):
            if is_topic is None and len(of_topic) == batch.num_rows and bool((days == day).all()):
                yield topic, day, batch
            else:
                chosen = (days == day) if is_topic is None else (days == day) & is_topic
                yield topic, day, batch.filter(pa.array(chosen))


def _is_one(topics: Any) -> bool:
    return bool(pc.all(pc.equal(topics, topics[0])).as_py())


def _distinct(numbers: Any) -> Iterable[int]:
    low, high = int(numbers.min()), int(numbers.max())
    return [low] if low == high else [int(number) for number in np.unique(numbers)]


def _spans(rows: Any) -> Iterator[Span]:
    partitions = rows.column(PARTITION).to_numpy(zero_copy_only=False)
    offsets = rows.column(OFFSET).to_numpy(zero_copy_only=False)
    for partition in _distinct(partitions):
        of_it = offsets[partitions == partition]
        yield Span(partition, int(of_it.min()), int(of_it.max()))
