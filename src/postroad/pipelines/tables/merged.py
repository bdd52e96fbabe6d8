"""The current state of a topic's keys as a table, and how tasks of Spark bring it up to date.

Rows lie in groups, `key-0007` for those whose key's hash is 7; how many there are is fixed when the table is
made. Of the changes in a step those of one group come to one task. It looks at the keys in the group's
files, writes those files again in which one of the keys is, without those rows, and puts what the rows are
now behind them. Files without such a key stay as they are; small ones are taken along, so that none pile up.
Nobody sees any of it before the driver commits what all tasks did.

Columns:

    message_key         the message's key, unless columns are the key
    message_value       only where values are bytes
    message_partition, message_offset, message_time   of the change that made the row what it is
    …                   JSON columns, as in an archive (`json_columns`)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from postroad.pipelines.changes import Form, Reading
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.tables import TableAddress
from postroad.pipelines.tables.derived import DerivedTable, NewFile, TableFile, open_derived
from postroad.pipelines.tables.growing_columns import Bad
from postroad.pipelines.tables.json_columns import JsonCells, fitting, typed
from postroad.pipelines.tables.rolled import RolledFiles
from postroad.pipelines.tables.schema import KINDS, Kind
from postroad.spark.columns import KEY, OFFSET, PARTITION, TIMESTAMP, TYPES, VALUE

MESSAGE_KEY: Final = "message_key"
MESSAGE_VALUE: Final = "message_value"
_PARTITION: Final = "message_partition"
_OFFSET: Final = "message_offset"
_TIME: Final = "message_time"
RESERVED: Final = (MESSAGE_KEY, MESSAGE_VALUE, _PARTITION, _OFFSET, _TIME)

SMALL_BYTES: Final = 16 * 1024 * 1024  # taken along whenever the group changes: that much costs little
CHANGES_DDL: Final = (
    "bucket int, partition int, offset bigint, time bigint, key binary, value binary, bad bigint"
)
OUTCOME_DDL: Final = "outcome string"
_CHANGES: Final = pa.schema(
    [
        ("bucket", pa.int32()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("time", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("bad", pa.int64()),
    ]
)
_OUTCOME: Final = pa.schema([("outcome", pa.string())])


class Merged(NamedTuple):
    """What one task did; all of it is for the commit."""

    added: tuple[NewFile, ...]
    removed: tuple[TableFile, ...]
    kinds: dict[str, Kind]
    upserts: int
    deletes: int
    bad: int
    bytes: int = 0  # of the changes' keys and values


class _Row(NamedTuple):
    """The newest change of a key; `cells` are None if the row is gone."""

    at: int  # in the task's changes
    time: int
    cells: dict[str, Any] | None


def base_schema(form: Form, key: tuple[str, ...]) -> Any:
    """The columns that the table has from the beginning."""
    fields = [] if key else [(MESSAGE_KEY, pa.binary())]
    fields += [(MESSAGE_VALUE, pa.binary())] if form == "bytes" else []
    fields += [(_PARTITION, pa.int32()), (_OFFSET, pa.int64()), (_TIME, TYPES[TIMESTAMP])]
    return pa.schema(fields)


def with_kinds(base: Any, kinds: Mapping[str, Kind]) -> Any:
    return pa.schema([*base, *(pa.field(name, KINDS[kind]) for name, kind in kinds.items())])


def group_name(bucket: int) -> str:
    return f"key-{bucket:04}"


@dataclass(frozen=True)
class Merging:
    """One step: `files` are the table's, by group, and `kinds` its JSON columns and those it is to have."""

    address: TableAddress
    topic: str
    reading: Reading
    buckets: int
    fails: bool
    kinds: Mapping[str, Kind]
    files: Mapping[str, tuple[TableFile, ...]]

    def changes(self, batches: Iterable[Any]) -> Iterator[Any]:
        """In a task: a topic's rows as changes, each with the bucket of its key."""
        for batch in batches:
            rows: list[tuple[Any, ...]] = []
            bad = 0
            times = batch.column(TIMESTAMP).cast(pa.int64()).to_pylist()
            columns = [batch.column(name).to_pylist() for name in (PARTITION, OFFSET, KEY, VALUE)]
            for time, partition, offset, key, value in zip(times, *columns, strict=True):
                try:
                    for change in self.reading.changes(key, value):
                        at = time if change.time_us is None else change.time_us
                        bucket = crc32(change.key) % self.buckets
                        rows.append((bucket, partition, offset, at, change.key, change.value, None))
                except Bad as error:
                    self._refuse(partition, offset, error)
                    bad += 1
            if bad:
                rows.append((0, None, None, None, None, None, bad))
            yield _batch(rows)

    def merge(self, batches: Iterable[Any]) -> Iterator[Any]:
        """In a task that has all changes of its buckets: what became of them."""
        found = pa.Table.from_batches(list(batches), schema=_CHANGES)
        buckets = found.column("bucket").to_numpy()
        for bucket in np.unique(buckets).tolist():
            outcome = self._merge(bucket, found.filter(pa.array(buckets == bucket)))
            yield pa.RecordBatch.from_pylist([{"outcome": msgspec.json.encode(outcome).decode()}], _OUTCOME)

    def _merge(self, bucket: int, changes: Any) -> Merged:
        cells = JsonCells(self.kinds, RESERVED, self.reading.columns)
        rows, bad = self._newest(changes, cells)
        base = base_schema(self.reading.form, self.reading.columns)
        schema = with_kinds(base, cells.kinds)
        keys, more_bad = self._keys(changes, rows, cells)
        table, group = open_derived(self.address), group_name(bucket)
        files = RolledFiles(table, group, schema)
        kept = [row for row in rows.values() if row.cells is not None]
        try:
            removed = [
                file
                for file in self.files.get(group, ())
                if _rewrite(table, file, keys, files, is_taken=bool(kept) and file.bytes < SMALL_BYTES)
            ]
            files.write(self._made(changes, kept, schema))
            added = tuple(files.finish())
        except BaseException:
            files.abandon()
            raise
        counts = len(kept), len(rows) - len(kept), bad + more_bad, _size(changes)
        return Merged(added, tuple(removed), cells.kinds, *counts)

    def _newest(self, changes: Any, cells: JsonCells) -> tuple[dict[bytes, _Row], int]:
        """The newest change of each key that is not bad. Offsets say so within a partition; between
        partitions, in which no key should be at once, times do."""
        partitions, offsets, times, keys, values, bads = (
            changes.column(name).to_pylist()
            for name in ("partition", "offset", "time", "key", "value", "bad")
        )
        numbers = [number for number, key in enumerate(keys) if key is not None]
        # Several changes of one message are in their order.
        numbers.sort(key=lambda number: (partitions[number], offsets[number], number), reverse=True)
        bad = sum(count for count in bads if count is not None)
        found: dict[bytes, _Row] = {}
        seen: set[tuple[int, bytes]] = set()
        for number in numbers:
            key = keys[number]
            if (partitions[number], key) in seen:
                continue
            try:
                made = self._cells(values[number], cells)
            except Bad as error:
                self._refuse(partitions[number], offsets[number], error)
                bad += 1
                continue
            seen.add((partitions[number], key))
            if key not in found or found[key].time < times[number]:
                found[key] = _Row(number, times[number], made)
        return found, bad

    def _cells(self, value: bytes | None, cells: JsonCells) -> dict[str, Any] | None:
        if value is None:
            return None
        return {MESSAGE_VALUE: value} if self.reading.form == "bytes" else cells.of(value)

    def _keys(self, changes: Any, rows: Mapping[bytes, _Row], cells: JsonCells) -> tuple[Any, int]:
        """The keys as columns of the table; of those that no row can have nothing is told."""
        names = self.reading.columns
        if not names:
            return pa.table({MESSAGE_KEY: pa.array(list(rows), pa.binary())}), 0
        found: list[list[Any]] = []
        bad = 0
        for key, row in rows.items():
            if row.cells is None and any(name not in cells.kinds for name in names):
                continue
            try:
                pairs = zip(names, msgspec.json.decode(key), strict=True)
                found.append([_cell(name, content, cells.kinds[name]) for name, content in pairs])
            except Bad as error:  # of what takes a row away; a row itself was looked at
                self._refuse(
                    changes.column("partition")[row.at].as_py(),
                    changes.column("offset")[row.at].as_py(),
                    error,
                )
                bad += 1
        fields = [(name, KINDS[cells.kinds[name]]) for name in names if name in cells.kinds]
        return pa.table(
            [pa.array([key[at] for key in found], kind) for at, (_, kind) in enumerate(fields)],
            schema=pa.schema(fields),
        ), bad

    def _made(self, changes: Any, rows: list[_Row], schema: Any) -> Any:
        """What rows are now."""
        at = pa.array([row.at for row in rows], pa.int64())
        taken = changes.take(at)
        told = {
            MESSAGE_KEY: taken.column("key"),
            _PARTITION: taken.column("partition"),
            _OFFSET: taken.column("offset"),
            _TIME: taken.column("time").cast(TYPES[TIMESTAMP]),
        }
        arrays = []
        for field in schema:
            if field.name in told:
                arrays.append(told[field.name].combine_chunks())
            else:
                arrays.append(pa.array([(row.cells or {}).get(field.name) for row in rows], field.type))
        plain = [array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array for array in arrays]
        return pa.RecordBatch.from_arrays(plain, schema=schema)

    def _refuse(self, partition: int, offset: int, error: Bad) -> None:
        if self.fails:
            raise PipelineError(
                f"{self.topic}/{partition} offset {offset}: {error}. Nothing of this step was merged; "
                "to leave such messages out say --bad-rows drop"
            )


def _size(changes: Any) -> int:
    return sum(pc.sum(pc.binary_length(changes.column(name))).as_py() or 0 for name in ("key", "value"))


def _rewrite(table: DerivedTable, file: TableFile, keys: Any, files: RolledFiles, *, is_taken: bool) -> bool:
    """Whether the file is to go: then its other rows were written again."""
    with table.location.read(f"{table.data}{file.path}") as stream:
        opened = pq.ParquetFile(stream)
        hit = _hits(opened, keys)
        if not hit.any() and not is_taken:
            return False
        at = 0
        for batch in opened.iter_batches():
            stays = ~hit[at : at + batch.num_rows]
            files.write(batch.filter(pa.array(stays)))
            at += batch.num_rows
    return True


def _hits(opened: Any, keys: Any) -> Any:
    """For each row of the file whether its key is among these."""
    hit = np.zeros(opened.metadata.num_rows, bool)
    names = keys.column_names
    if not keys.num_rows or any(name not in opened.schema_arrow.names for name in names):
        return hit
    found = opened.read(columns=names).cast(keys.schema)
    numbered = found.append_column("row number", pa.array(np.arange(len(hit))))
    hit[numbered.join(keys, keys=names, join_type="left semi").column("row number").to_numpy()] = True
    return hit


def _cell(name: str, content: Any, kind: Kind) -> Any:
    found, cell = typed(name, content)
    return fitting(name, cell, found, kind)


def _batch(rows: list[tuple[Any, ...]]) -> Any:
    columns = zip(*rows, strict=True) if rows else [()] * len(_CHANGES)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, _CHANGES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_CHANGES)
