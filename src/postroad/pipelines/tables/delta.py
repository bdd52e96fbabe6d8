"""Delta Lake, written by `deltalake`: no JVM, no jar.

A commit is one entry of `_delta_log` with the files and these application transactions (`txn`), of which
Delta keeps the last version for each name, over checkpoints and for ever:

    postroad/query/<query id>             the last micro-batch
    postroad/end/<topic>/<partition>      the offset after the last one archived
    postroad/partitions/<topic>           1 + the highest partition that has an end

Two writers that commit the same name at once get in each other's way, and Delta lets one of them win.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from datetime import date
from typing import Any, ClassVar, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.schema import Field, PrimitiveType
from deltalake.transaction import AddAction

from postroad.pipelines.errors import WrongTable
from postroad.pipelines.tables.schema import PARTITIONED_BY, RECORD, Kind, misfit
from postroad.pipelines.tables.table import (
    KEPT_HOURS,
    TARGET_BYTES,
    Batch,
    Conflict,
    DataFile,
    Optimized,
    Place,
    Recorded,
    Snapshot,
    Table,
)

COMMIT_RETRIES: Final = 5  # Delta's own, over commits of others that don't touch ours
_DELTA_TYPES: Final = {"boolean": "boolean", "bigint": "long", "double": "double", "string": "string"}


class Delta(Table):
    format: ClassVar[str] = "delta"

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
        files = tuple(table.file_uris())
        return Snapshot(self._schema(table), str(self.location), files, tuple(sorted(found)), ends)

    def recorded(self, query: str, topics: Collection[str]) -> Recorded:
        table = self._opened()
        return Recorded(table, table.transaction_version(_query(query)), _ends(table, topics))

    def commit(
        self, at: Recorded, batch: Batch, ends: Mapping[Place, int], new_columns: Mapping[str, Kind]
    ) -> None:
        table: DeltaTable = at.handle
        if new_columns:
            # A commit of its own: a crash after it leaves columns that are null until the next batch.
            table.alter.add_columns(
                [Field(name, PrimitiveType(_DELTA_TYPES[kind])) for name, kind in new_columns.items()]
            )
        try:
            table.create_write_transaction(
                [_added(file) for file in batch.files],
                mode="append",
                schema=table.schema(),
                partition_by=list(PARTITIONED_BY),
                commit_properties=CommitProperties(
                    app_transactions=_transactions(table, batch, ends), max_commit_retries=COMMIT_RETRIES
                ),
            )
        except CommitFailedError as error:
            raise Conflict(str(error)) from error

    def optimize(self) -> Optimized:
        table = self._opened()
        before = len(table.file_uris())
        table.optimize.compact(target_size=TARGET_BYTES)
        # `full`: also what killed tasks left behind. Directories that begin with _ are not touched.
        table.vacuum(retention_hours=KEPT_HOURS, dry_run=False, full=True)
        table.create_checkpoint()
        return Optimized(before, len(self._opened().file_uris()))

    def delete_before(self, day: date) -> int:
        removed = self._opened().delete(f"date < '{day.isoformat()}'")
        return int(removed["num_removed_files"])

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


def _added(file: DataFile) -> AddAction:
    low = {"offset": min(span.first for span in file.spans), "partition": file.spans[0].partition}
    high = {"offset": max(span.last for span in file.spans), "partition": file.spans[-1].partition}
    stats = {"numRecords": file.rows, "minValues": low, "maxValues": high, "nullCount": dict.fromkeys(low, 0)}
    values = {"topic": file.topic, "date": file.date}
    return AddAction(file.path, file.bytes, values, int(time.time() * 1000), True, json.dumps(stats))


def _transactions(table: DeltaTable, batch: Batch, ends: Mapping[Place, int]) -> list[Transaction]:
    transactions = [Transaction(_query(batch.query), batch.number)]
    for topic in sorted({topic for topic, _ in ends}):
        highest = max(partition for name, partition in ends if name == topic)
        count = max(highest + 1, table.transaction_version(_partitions(topic)) or 0)
        transactions.append(Transaction(_partitions(topic), count))
    transactions += [Transaction(_end(*place), end) for place, end in sorted(ends.items())]
    return transactions


def _ends(table: DeltaTable, topics: Collection[str]) -> dict[Place, int]:
    ends = {}
    for topic in topics:
        for partition in range(table.transaction_version(_partitions(topic)) or 0):
            end = table.transaction_version(_end(topic, partition))
            if end is not None:
                ends[topic, partition] = end
    return ends


def _query(query: str) -> str:
    return f"postroad/query/{query}"


def _end(topic: str, partition: int) -> str:
    return f"postroad/end/{topic}/{partition}"


def _partitions(topic: str) -> str:
    return f"postroad/partitions/{topic}"
