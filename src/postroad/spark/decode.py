"""Record batches → Arrow, without a Python object for any record.

The batches that one Fetch brought are decoded in chunks, column by column (layout: `wire.records`):

1. `chunks` checks headers and CRCs and leaves out control batches and aborted ones.
2. `record_starts` finds where each record begins.
3. The numbers of all records are read with numpy: first all timestamps, then all offsets, all lengths of
   keys, … Each step's positions are those behind what was read before.
4. Keys and values stay where they are until Arrow copies them, once (`texts`).

Whatever the bytes are: each position that is read lies within the buffer and each field within its record,
or there is a CorruptMessage; and the work is bounded by the number of bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa

from postroad.errors import ApiError, CorruptMessage
from postroad.spark import columns, texts, varints
from postroad.spark.chunks import Chunk, chunks
from postroad.spark.columns import Columns
from postroad.spark.fetched import Aborted
from postroad.spark.header_lists import check_none, header_lists
from postroad.spark.record_starts import record_starts
from postroad.spark.router import TopicPartition, about
from postroad.spark.varints import Numbers
from postroad.wire.batch import LOG_APPEND_TIME

TIME_MAX_MS: Final = (1 << 62) // 1000  # so that sums and microseconds stay within 64 bits
_US: Final = 1000


def decode(
    data: memoryview | bytes,
    topic_partition: TopicPartition,
    first_offset: int,
    until_offset: int,
    want: Columns,
    aborted: Sequence[Aborted] = (),
    times_ms: tuple[int, int] | None = None,
) -> Iterator[Any]:
    """The records from `first_offset` up to, not including, `until_offset`, in few Arrow record batches;
    of these only the ones from one time to the other, both included, if `times_ms` says so.

    `data` are whole batches as a Fetch brings them. They are unpacked as far as their records are asked for:
    a few kilobytes may hold gigabytes. CorruptMessage says where they are damaged, MessageTooLarge
    if a batch unpacks to more than any node takes; what comes before may have been given by then.
    """
    try:
        for chunk in chunks(memoryview(data), first_offset, until_offset, aborted):
            records = _Records(chunk)
            records.read_times_and_offsets()
            records.keep(first_offset, until_offset)
            if times_ms is not None:
                records.keep_times(*times_ms)
            batch = _columns(records, topic_partition, want)
            if batch.num_rows:
                yield batch
    except ApiError as error:
        raise about(
            f"{topic_partition[0]}/{topic_partition[1]} from offset {first_offset:,}", error
        ) from None


def _columns(records: _Records, topic_partition: TopicPartition, want: Columns) -> Any:
    found = {
        columns.TOPIC: lambda: pa.repeat(pa.scalar(topic_partition[0], pa.string()), len(records)),
        columns.PARTITION: lambda: pa.array(np.full(len(records), topic_partition[1], dtype=np.int32)),
        columns.OFFSET: lambda: pa.array(records.offsets),
        columns.TIMESTAMP: lambda: pa.array(records.times * _US).cast(columns.TYPES[columns.TIMESTAMP]),
        columns.TIMESTAMP_TYPE: lambda: pa.array(records.time_types),
        columns.KEY: lambda: records.key,
        columns.VALUE: lambda: records.value,
        columns.HEADERS: lambda: records.headers,
    }
    if not _TEXTS.isdisjoint(want.names):
        records.read_texts(want)
    return pa.RecordBatch.from_arrays([found[name]() for name in want.names], schema=want.schema)


_TEXTS: Final = {columns.KEY, columns.VALUE, columns.HEADERS}


class _Records:
    """The records of a chunk, read from their beginnings to their ends; an array for each field."""

    key: Any
    value: Any
    headers: Any

    def __init__(self, chunk: Chunk) -> None:
        raw = chunk.buffer
        self._arrow_buffer = pa.py_buffer(raw)
        self._buffer = np.frombuffer(raw, dtype=np.uint8)
        self._batches = np.array([header[5:9] + header[:1] for header in chunk.headers], dtype=np.int64)
        self._counts = np.array([header.count for header in chunk.headers], dtype=np.int64)
        self._starts, self._ends = np.array(chunk.spans, dtype=np.int64).T

    def __len__(self) -> int:
        return len(self.offsets)

    def read_times_and_offsets(self) -> None:
        """Afterwards `offsets`, `times` (ms) and `time_types` are there, and `_at` is where keys begin."""
        attributes, last_deltas, base_times, max_times, base_offsets = self._batches.T
        if (abs(self._batches[:, 2:4]) > TIME_MAX_MS).any():
            _corrupt("A batch's timestamp is no time.")
        starts = record_starts(self._buffer, self._starts, self._ends, self._counts)
        length, body = varints.read(self._buffer, starts)
        self._end = body + length
        if (length < 0).any():
            _corrupt("A record's length is negative.")
        is_appended = attributes & LOG_APPEND_TIME != 0
        deltas, at = varints.read(self._buffer, body + 1)  # after the attributes
        if len(deltas) and max(-int(deltas.min()), int(deltas.max())) > TIME_MAX_MS:
            _corrupt("A record's timestamp is no time.")
        deltas[np.repeat(is_appended, self._counts)] = 0
        self.times = np.repeat(np.where(is_appended, max_times, base_times), self._counts) + deltas
        self.time_types = np.repeat(is_appended.astype(np.int32), self._counts)
        delta, self._at = varints.read(self._buffer, at)
        if (
            (self._at > self._end).any()
            or (delta < 0).any()
            or (delta > np.repeat(last_deltas, self._counts)).any()
        ):
            _corrupt("A record's offset lies outside its batch, or it is shorter than its fields.")
        self.offsets = np.repeat(base_offsets, self._counts) + delta
        if (np.diff(self.offsets) <= 0).any():
            _corrupt("Offsets don't rise from record to record.")

    def keep(self, first: int, until: int) -> None:
        """Only the records with these offsets."""
        self._keep(slice(*np.searchsorted(self.offsets, [first, until]).tolist()))

    def keep_times(self, since_ms: int, until_ms: int) -> None:
        """Only the records of these times, both included."""
        self._keep((self.times >= since_ms) & (self.times <= until_ms))

    def _keep(self, kept: Any) -> None:
        self.offsets, self.times, self.time_types = (
            self.offsets[kept],
            self.times[kept],
            self.time_types[kept],
        )
        self._at, self._end = self._at[kept], self._end[kept]

    def read_texts(self, want: Columns) -> None:
        """Afterwards `key`, `value` and `headers` are there, as far as they are wanted."""
        key_length, key = self._read_length(self._at)
        value_length, value = self._read_length(key + np.maximum(key_length, 0))
        at = value + np.maximum(value_length, 0)
        if columns.KEY in want.names:
            self.key = texts.gather(self._arrow_buffer, key, key_length)
        if columns.VALUE in want.names:
            self.value = texts.gather(self._arrow_buffer, value, value_length)
        if columns.HEADERS in want.names:
            self.headers = header_lists(self._buffer, self._arrow_buffer, at, self._end)
        else:
            check_none(self._buffer, at, self._end)

    def _read_length(self, at: Numbers) -> tuple[Numbers, Numbers]:
        """A key's or value's length (-1 for null) and where it begins. It lies within its record."""
        length, behind = varints.read(self._buffer, at)
        if (length < -1).any() or (behind + length > self._end).any():
            _corrupt("A key or value reaches past the end of its record.")
        return length, behind


def _corrupt(text: str) -> NoReturn:
    raise CorruptMessage(text)
