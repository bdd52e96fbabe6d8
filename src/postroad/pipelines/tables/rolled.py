"""Rows of a derived table → Parquet files of one group, each followed by another when it has become large."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from postroad.pipelines.tables.derived import DerivedTable, NewFile
from postroad.pipelines.tables.files import GROUP_BYTES, GROUP_ROWS
from postroad.pipelines.tables.table import TARGET_BYTES


class RolledFiles:
    """The files of one group, of one schema: `write` rows, then `finish`. After an error, `abandon`."""

    def __init__(self, table: DerivedTable, group: str, schema: Any) -> None:
        self._location = table.location
        self._data = table.data
        self._group = group
        self._schema = schema
        self._done: list[NewFile] = []
        self._waiting: list[Any] = []
        self._waiting_rows = self._waiting_bytes = self._rows = 0
        self._path = ""
        self._stream: Any = None
        self._writer: Any = None

    def write(self, batch: Any) -> None:
        """Rows with columns of the schema; those that are missing are null."""
        if not batch.num_rows:
            return
        batch = fitted(batch, self._schema)
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        self._waiting_bytes += batch.nbytes
        if self._waiting_rows >= GROUP_ROWS or self._waiting_bytes >= GROUP_BYTES:
            self._flush()
            if self._stream.tell() >= TARGET_BYTES:
                self._close()

    def finish(self) -> list[NewFile]:
        self._flush()
        self._close()
        return self._done

    def abandon(self) -> None:
        """None of the files is left, even where nothing more can be written."""
        for opened in (self._writer, self._stream):
            if opened is not None:
                with suppress(OSError):
                    opened.close()
        paths = [file.path for file in self._done] + ([self._path] if self._stream is not None else [])
        for path in paths:
            self._location.delete(f"{self._data}{path}")

    def _flush(self) -> None:
        if not self._waiting:
            return
        if self._stream is None:
            self._path = f"{self._group}/{uuid.uuid4().hex}.parquet"
            self._stream = self._location.create(f"{self._data}{self._path}")
            self._writer = pq.ParquetWriter(
                self._stream, self._schema, compression="zstd", compression_level=1
            )
        group = pa.Table.from_batches(self._waiting, schema=self._schema)
        self._writer.write_table(group, row_group_size=self._waiting_rows)
        self._rows += self._waiting_rows
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def _close(self) -> None:
        if self._stream is None:
            return
        self._writer.close()
        self._done.append(NewFile(self._path, self._stream.tell(), self._rows))
        self._stream.close()
        self._stream = self._writer = None
        self._rows = 0


def fitted(batch: Any, schema: Any) -> Any:
    """The batch with these columns in this order; files that are older lack those that came later."""
    arrays = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
