"""Delta Lake, written by `deltalake`: no JVM, no jar.

A commit is one entry of `_delta_log` with the files and these application transactions (`txn`), of which
Delta keeps the last version for each name, over checkpoints and for ever:

    postroad/query/<query id>             the last micro-batch
    postroad/end/<topic>/<partition>      the offset after the last one archived
    postroad/partitions/<topic>           1 + the highest partition that has an end
    postroad/topic/<topic>                which topic of that name it was
    postroad/optimize                     the last compaction, or file without what was older

Two writers that commit the same name at once get in each other's way, and Delta lets one of them win. For
compactions that is all that keeps them apart: deltalake sees no conflict in two that remove the same files,
and both their results would be in the table.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any, ClassVar, Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.schema import Field, PrimitiveType
from deltalake.transaction import AddAction, RemoveAction

from postroad.pipelines.errors import PipelineError, WrongTable
from postroad.pipelines.tables.compaction import Merging, compact
from postroad.pipelines.tables.location import Location
from postroad.pipelines.tables.schema import PARTITIONED_BY, RECORD, Kind, json_kinds, misfit
from postroad.pipelines.tables.table import (
    KEPT_HOURS,
    Batch,
    Conflict,
    DataFile,
    Optimized,
    Recorded,
    Snapshot,
    Table,
    TableFile,
    TopicPartition,
)

COMMIT_RETRIES: Final = 5  # Delta's own, over commits of others that don't touch ours
_DECODED: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_OPTIMIZE: Final = "postroad/optimize"


class Delta(Table):
    format: ClassVar[str] = "delta"

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        check_location(location)

    def is_there(self) -> bool:
        return self.location.is_there("_delta_log")

    def create(self) -> None:
        self.location.make_directory()
        DeltaTable.create(
            str(self.location), RECORD, partition_by=list(PARTITIONED_BY), name="postroad archive"
        )

    def schema(self) -> Any:
        return self._schema(self._opened())

    def snapshot(self, topics: Collection[str] = ()) -> Snapshot:
        table = self._opened()
        found = {str(labels["topic"]) for labels in table.partitions()}
        ends = _ends(table, found.union(topics))
        files = tuple(self.location.below(path) for path in _files(table))
        numbers = _numbers(table, found.union(topics))
        return Snapshot(self._schema(table), str(self.location), files, tuple(sorted(found)), ends, numbers)

    def recorded(self, query: str, topics: Collection[str]) -> Recorded:
        table = self._opened()
        number = table.transaction_version(_query(query))
        kinds = json_kinds(self._schema(table))
        return Recorded(table, number, _ends(table, topics), _numbers(table, topics), kinds)

    def commit(
        self, at: Recorded, batch: Batch, ends: Mapping[TopicPartition, int], new_columns: Mapping[str, Kind]
    ) -> None:
        table: DeltaTable = at.handle
        if new_columns:
            # A commit of its own: a crash after it leaves columns that are null until the next batch.
            with conflicts():
                table.alter.add_columns([_field(name, kind) for name, kind in new_columns.items()])
        transactions = _transactions(table, batch, ends)
        _write(table, [_added(file) for file in batch.files], transactions)

    def optimize(self, merging: Merging | None = None) -> Optimized:
        table = self._opened()
        small = _files(table).values()
        compact(self, small, self._schema(table), self.swap, merging)
        table = self._opened()
        # `full`: also what killed tasks left behind. Directories that begin with _ are not touched.
        with conflicts():
            table.vacuum(retention_hours=KEPT_HOURS, dry_run=False, full=True)
        table.create_checkpoint()
        return Optimized(len(small), len(_files(table)))

    def delete_dates_before(self, day: date) -> int:
        with conflicts():
            removed = self._opened().delete(f"date < '{day.isoformat()}'")
        return int(removed["num_removed_files"])

    def files(self) -> list[TableFile]:
        return list(_files(self._opened()).values())

    def swap(
        self, group: Sequence[TableFile], merged: DataFile | None, *, are_rows_same: bool = True
    ) -> bool:
        table = self._opened()
        known = _files(table)
        if merged is not None and merged.path in known:
            return True
        if any(small.path not in known for small in group):
            return False
        now = _now_ms()
        added = [] if merged is None else [_added(merged, is_new=not are_rows_same)]
        removed = [
            RemoveAction(
                small.path, not are_rows_same, now, small.bytes, {"topic": small.topic, "date": small.date}
            )
            for small in group
        ]
        _write(table, [*added, *removed], [Transaction(_OPTIMIZE, now)])
        return True

    def _opened(self) -> DeltaTable:
        return DeltaTable(str(self.location))

    def _schema(self, table: DeltaTable) -> Any:
        schema = pa.schema(table.schema().to_arrow())
        why = misfit(schema)
        if why is None and tuple(table.metadata().partition_columns) != PARTITIONED_BY:
            why = f"it is not partitioned by {' and '.join(PARTITIONED_BY)}"
        if why is not None:
            raise WrongTable(
                f"{self.location} holds a Delta table that is no archive: {why}. Choose another directory"
            )
        return schema


def _field(name: str, kind: Kind) -> Field:
    """Delta has Spark's words for types, but for one."""
    return Field(name, PrimitiveType("long" if kind == "bigint" else kind))


def check_location(location: Location) -> None:
    """PipelineError where deltalake would look elsewhere."""
    if location.directory is not None and (found := _DECODED.search(str(location))):
        raise PipelineError(
            f"{location}: a Delta table can't lie in a directory with {found[0]} in its path, which its "
            "library takes for another name: choose another, or take --format parquet"
        )


def _files(table: DeltaTable) -> dict[str, TableFile]:
    """The table's files by their paths below it. (Whole ones deltalake gives as parts of URLs.)"""
    actions = pa.table(table.get_add_actions(flatten=True))
    columns = [
        actions[name].to_pylist() for name in ("path", "partition.topic", "partition.date", "size_bytes")
    ]
    return {
        path: TableFile(path, topic, day.isoformat(), size)
        for path, topic, day, size in zip(map(unquote, columns[0]), *columns[1:], strict=True)
    }


def _added(file: DataFile, *, is_new: bool = True) -> AddAction:
    """`is_new`: readers have to look at it, since its rows are others than before."""
    low = {"offset": min(span.first for span in file.spans), "partition": file.spans[0].partition}
    high = {"offset": max(span.last for span in file.spans), "partition": file.spans[-1].partition}
    stats = {"numRecords": file.rows, "minValues": low, "maxValues": high, "nullCount": dict.fromkeys(low, 0)}
    values = {"topic": file.topic, "date": file.date}
    return AddAction(file.path, file.bytes, values, _now_ms(), is_new, json.dumps(stats))


def _write(table: DeltaTable, actions: list[Any], transactions: list[Transaction]) -> None:
    """One commit: all of it, or Conflict."""
    with conflicts():
        table.create_write_transaction(
            actions,
            mode="append",
            schema=table.schema(),
            partition_by=list(PARTITIONED_BY),
            commit_properties=CommitProperties(
                app_transactions=transactions, max_commit_retries=COMMIT_RETRIES
            ),
        )


@contextmanager
def conflicts() -> Iterator[None]:
    try:
        yield
    except CommitFailedError as error:
        raise Conflict(str(error)) from error


def _now_ms() -> int:
    return int(time.time() * 1000)


def _transactions(table: DeltaTable, batch: Batch, ends: Mapping[TopicPartition, int]) -> list[Transaction]:
    transactions = [Transaction(_query(batch.query), batch.number)]
    for topic in sorted({topic for topic, _ in ends}):
        highest = max(partition for name, partition in ends if name == topic)
        count = max(highest + 1, table.transaction_version(_partitions(topic)) or 0)
        transactions.append(Transaction(_partitions(topic), count))
    transactions += [Transaction(_topic(name), number) for name, number in batch.topic_numbers.items()]
    transactions += [
        Transaction(_end(*topic_partition), end) for topic_partition, end in sorted(ends.items())
    ]
    return transactions


def _ends(table: DeltaTable, topics: Collection[str]) -> dict[TopicPartition, int]:
    ends = {}
    for topic in topics:
        for partition in range(table.transaction_version(_partitions(topic)) or 0):
            end = table.transaction_version(_end(topic, partition))
            if end is not None:
                ends[topic, partition] = end
    return ends


def _numbers(table: DeltaTable, topics: Collection[str]) -> dict[str, int]:
    found = {topic: table.transaction_version(_topic(topic)) for topic in topics}
    return {topic: number for topic, number in found.items() if number is not None}


def _query(query: str) -> str:
    return f"postroad/query/{query}"


def _end(topic: str, partition: int) -> str:
    return f"postroad/end/{topic}/{partition}"


def _partitions(topic: str) -> str:
    return f"postroad/partitions/{topic}"


def _topic(topic: str) -> str:
    return f"postroad/topic/{topic}"
