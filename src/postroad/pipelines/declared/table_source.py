"""A table as a stream of its rows, each once, and as what it is now.

How far a stream has come is told by what is in the rows, so files may be compacted meanwhile:

    an archive          {"topic": {"partition": offset}}, as its `ends` are
    a table of SQL's    {"postroad_batch": number}: rows before that number; each commit has one

A micro-batch reads the files that may have such rows, and of these the rows. Which they may be is told by
the footer of each, which is read once by a query.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from postroad.pipelines.tables import TableAddress, open_table
from postroad.pipelines.tables.derived import open_derived
from postroad.pipelines.tables.location import Location
from postroad.pipelines.tables.rolled import fitted
from postroad.pipelines.tables.schema import DATE
from postroad.spark import offsets, ranges
from postroad.spark.columns import OFFSET, PARTITION, TOPIC
from postroad.spark.offsets import Offsets
from postroad.spark.workers import Dispatched

NAME: Final = "postroad-table"
BATCH: Final = "postroad_batch"
ROWS_MAX: Final = 1_000_000  # of a micro-batch: what a kill may cost
READ_ROWS: Final = 10_000  # that a task holds at once

_DDL: Final = "rows.ddl"
_TOPICS: Final = "rows.topics"


class Stats(NamedTuple):
    """What a file's footer says of two columns: the lowest and the highest of each; and how many rows it
    has."""

    rows: int
    bounds: dict[str, tuple[int, int]]

    def may_have(self, column: str, low: int, high: int) -> bool:
        """Whether a row may be from `low` up to, but without, `high`."""
        found = self.bounds.get(column)
        return found is None or (found[0] < high and found[1] >= low)


class Piece(NamedTuple):
    """Rows of a file that a task reads: `wanted` is from where up to where in each partition, or of
    `BATCH`."""

    path: str
    wanted: dict[int, tuple[int, int]] | tuple[int, int] | None
    topic: str | None = None
    date: str | None = None


class PiecePartition(InputPartition):
    def __init__(self, piece: Piece) -> None:
        super().__init__(piece)

    @property
    def piece(self) -> Piece:
        found: Piece = self.value
        return found


class TableSource(DataSource):
    """`format("postroad-table")`, once it is registered. Options: `options_of`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return str(self.options[_DDL])

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's)
        return RowsReader(_followed(self.options), _arrow(schema))

    def reader(self, schema: StructType) -> DataSourceReader:
        return NowReader(_followed(self.options), _arrow(schema))


def options_of(address: TableAddress, ddl: str, topics: Sequence[str] = ()) -> dict[str, str]:
    """For the table at the address. `topics`: it is an archive of these."""
    return {**address.options(), _DDL: ddl, _TOPICS: msgspec.json.encode(list(topics)).decode()}


def arrow_of(schema: StructType) -> Any:
    """A schema of Spark's as tables keep it: every column may be null."""
    return _arrow(schema)


class Followed(ABC):
    """A table whose rows are numbered in some way."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self._stats: dict[str, Stats] = {}

    @abstractmethod
    def begin(self) -> dict[str, Any]:
        """Where a stream starts that has no checkpoint."""

    @abstractmethod
    def end(self) -> dict[str, Any]:
        """Where the table ends now."""

    @abstractmethod
    def admit(self, start: dict[str, Any], end: dict[str, Any]) -> dict[str, Any]:
        """Where a micro-batch of about `ROWS_MAX` rows ends."""

    @abstractmethod
    def pieces(self, start: dict[str, Any], end: dict[str, Any]) -> list[Piece]:
        """What there is to read from `start` to `end`."""

    @abstractmethod
    def now(self) -> list[Piece]:
        """All rows that the table has."""

    def read(self, piece: Piece, schema: Any) -> Iterator[Any]:
        """In a task."""
        with self.location.read(piece.path) as stream:
            for batch in pq.ParquetFile(stream).iter_batches(READ_ROWS):
                rows = self._chosen(batch, piece)
                if rows.num_rows:
                    yield fitted(rows, schema)

    @abstractmethod
    def _chosen(self, batch: Any, piece: Piece) -> Any:
        """The rows that are wanted, with all columns that they have."""

    def _of(self, path: str, columns: Sequence[str]) -> Stats:
        if path not in self._stats:
            with self.location.read(path) as stream:
                self._stats[path] = _stats(pq.ParquetFile(stream).metadata, columns)
        return self._stats[path]

    def _forget(self, paths: Sequence[str]) -> None:
        """All that is known of files that are no longer in the table."""
        self._stats = {path: self._stats[path] for path in paths if path in self._stats}


class Archived(Followed):
    """An archive of topics."""

    def __init__(self, address: TableAddress, topics: Sequence[str]) -> None:
        self._table = open_table(address)
        self._topics = list(topics)
        super().__init__(self._table.location)

    def begin(self) -> dict[str, Any]:
        return {}

    def end(self) -> dict[str, Any]:
        return offsets.to_json(self._table.ends(self._topics))

    def admit(self, start: dict[str, Any], end: dict[str, Any]) -> dict[str, Any]:
        until = offsets.from_json(end)
        admitted = ranges.admit_offsets(dict.fromkeys(until, 0) | _offsets(start), until, ROWS_MAX)
        return offsets.to_json(admitted)

    def pieces(self, start: dict[str, Any], end: dict[str, Any]) -> list[Piece]:
        begun = _offsets(start)
        wanted: dict[str, dict[int, tuple[int, int]]] = {}
        for (topic, partition), until in offsets.from_json(end).items():
            if (first := begun.get((topic, partition), 0)) < until:
                wanted.setdefault(topic, {})[partition] = first, until
        files = self._files()
        self._forget([path for path, _, _ in files])
        return [
            Piece(path, wanted[topic], topic, day)
            for path, topic, day in files
            if topic in wanted and self._may_have(path, wanted[topic])
        ]

    def now(self) -> list[Piece]:
        return [Piece(path, None, topic, day) for path, topic, day in self._files()]

    def _files(self) -> list[tuple[str, str, str]]:
        return [(file.path, file.topic, file.date) for file in self._table.files()]

    def _may_have(self, path: str, wanted: Mapping[int, tuple[int, int]]) -> bool:
        stats = self._of(path, (PARTITION, OFFSET))
        return any(
            stats.may_have(PARTITION, partition, partition + 1) and stats.may_have(OFFSET, *bounds)
            for partition, bounds in wanted.items()
        )

    def _chosen(self, batch: Any, piece: Piece) -> Any:
        rows = batch
        if isinstance(piece.wanted, dict):
            partitions, at = (
                batch.column(name).to_numpy(zero_copy_only=False) for name in (PARTITION, OFFSET)
            )
            is_wanted = np.zeros(batch.num_rows, bool)
            for partition, (first, until) in piece.wanted.items():
                is_wanted |= (partitions == partition) & (at >= first) & (at < until)
            rows = batch.filter(pa.array(is_wanted))
        for name, given in ((TOPIC, piece.topic), (DATE, piece.date)):  # what directories say, files may not
            if name not in rows.schema.names:
                rows = rows.append_column(name, pa.repeat(pa.scalar(given, pa.string()), rows.num_rows))
        return rows


class Derived(Followed):
    """What SQL made."""

    def __init__(self, address: TableAddress) -> None:
        self._table = open_derived(address)
        super().__init__(self._table.location)

    def begin(self) -> dict[str, Any]:
        return {BATCH: 0}

    def end(self) -> dict[str, Any]:
        return {BATCH: self._table.load([BATCH]).notes.get(BATCH, -1) + 1}

    def admit(self, start: dict[str, Any], end: dict[str, Any]) -> dict[str, Any]:
        """The first batches, one at least, that have so many rows."""
        first, until = start[BATCH], end[BATCH]
        sizes: dict[int, int] = {}
        for path in self._paths():
            stats = self._of(path, (BATCH,))
            number = stats.bounds.get(BATCH, (first, first))[0]
            sizes[number] = sizes.get(number, 0) + stats.rows
        rows = 0
        for number in range(first, until):
            rows += sizes.get(number, 0)
            if rows >= ROWS_MAX:
                return {BATCH: number + 1}
        return {BATCH: until}

    def pieces(self, start: dict[str, Any], end: dict[str, Any]) -> list[Piece]:
        bounds = start[BATCH], end[BATCH]
        paths = self._paths()
        self._forget(paths)
        return [Piece(path, bounds) for path in paths if self._of(path, (BATCH,)).may_have(BATCH, *bounds)]

    def now(self) -> list[Piece]:
        return [Piece(path, None) for path in self._paths()]

    def _paths(self) -> list[str]:
        return [f"{self._table.data}{path}" for path in self._table.load().files]

    def _chosen(self, batch: Any, piece: Piece) -> Any:
        if not isinstance(piece.wanted, tuple):
            return batch
        numbers = batch.column(BATCH).to_numpy(zero_copy_only=False)
        first, until = piece.wanted
        return batch.filter(pa.array((numbers >= first) & (numbers < until)))


class RowsReader(Dispatched, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The rows that come."""

    def __init__(self, followed: Followed, schema: Any) -> None:
        self._followed = followed
        self._schema = schema
        self._target: dict[str, Any] | None = None
        self._latest: dict[str, Any] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's, as those below)
        return self._followed.begin()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._followed.end()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(ROWS_MAX)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        self._latest = end = self._followed.end() if self._target is None else self._target
        if end == start or isinstance(limit, ReadAllAvailable):
            return end
        return self._followed.admit(start, end)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return self._latest

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [PiecePartition(piece) for piece in self._followed.pieces(start, end)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, PiecePartition)
        return self._followed.read(partition.piece, self._schema)


class NowReader(Dispatched, DataSourceReader):
    """All rows, as they are when a query, or one of its micro-batches, begins."""

    def __init__(self, followed: Followed, schema: Any) -> None:
        self._followed = followed
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        return [PiecePartition(piece) for piece in self._followed.now()]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, PiecePartition):  # Spark's way to say that there are no partitions
            return iter(())
        return self._followed.read(partition.piece, self._schema)


def _followed(options: Mapping[str, str]) -> Followed:
    address = TableAddress.of(options)
    topics = msgspec.json.decode(options[_TOPICS], type=list[str])
    return Archived(address, topics) if topics else Derived(address)


def _offsets(start: dict[str, Any]) -> Offsets:
    return offsets.from_json(start) if start else {}


def _arrow(schema: StructType) -> Any:
    try:
        found = to_arrow_schema(schema, timezone="UTC")
    except TypeError:  # PySpark 4.2 has no such argument: it is always UTC there
        found = to_arrow_schema(schema)
    return pa.schema([field.with_nullable(True) for field in found])


def _stats(metadata: Any, columns: Sequence[str]) -> Stats:
    paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    bounds = {}
    for name in columns:
        if name in paths and (found := _bounds(metadata, paths.index(name))) is not None:
            bounds[name] = found
    return Stats(metadata.num_rows, bounds)


def _bounds(metadata: Any, column: int) -> tuple[int, int] | None:
    groups = [
        metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups)
    ]
    if not groups or any(each is None or not each.has_min_max for each in groups):
        return None
    return min(each.min for each in groups), max(each.max for each in groups)
