"""Arrow → a record batch, without a Python object for any record.

A record is its numbers and its texts in turn (layout: `wire.records`), so an Arrow array of binaries is made
for each of these, and Arrow joins them row by row:

    [length, attributes, timestamp, offset, key's length] key [value's length] value [header count] headers

The joined array's elements lie one behind the other, and that is the block of records. The same rows always
give the same bytes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from postroad.errors import MessageTooLarge
from postroad.spark import varints
from postroad.spark.columns import HEADERS, KEY, TIMESTAMP, VALUE
from postroad.spark.varints import Numbers
from postroad.wire.batch import MAGIC, NO_PRODUCER, NO_SEQUENCE, BatchHeader
from postroad.wire.compression import NONE
from postroad.wire.records import pack_batch

BLOCK_BYTES_MAX: Final = (1 << 31) - 1  # what Arrow's 32-bit offsets reach
_NO_HEADERS: Final[Any] = pa.scalar(b"\0", pa.binary())  # a count of none, for all rows


def encode(
    rows: Any,
    *,
    compression: int = NONE,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    attributes: int = 0,
) -> bytearray:
    """One batch with all rows of an Arrow record batch, at least one; its offsets count from 0.

    `value` and `timestamp` (Kafka's milliseconds as integers, or Arrow's timestamps; never null) must be
    there, `key` and `headers` may be. How many rows make a batch is the caller's choice. MessageTooLarge
    from 2 GiB on.
    """
    times = _milliseconds(rows.column(TIMESTAMP))
    block = _block(rows, times - times[0])
    header = BatchHeader(
        base_offset=0,
        length=0,
        leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=len(rows) - 1,
        base_timestamp=int(times[0]),
        max_timestamp=int(times.max()),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=len(rows),
    )
    return pack_batch(header, block, compression)


def _block(rows: Any, time_deltas: Numbers) -> memoryview:
    key_length, key = _text(rows, KEY)
    value_length, value = _text(rows, VALUE)
    headers = _headers(rows)
    raw_value_length = varints.zigzag(value_length)
    raw = [
        np.zeros(len(rows), dtype=np.int64),  # attributes
        varints.zigzag(time_deltas),
        varints.zigzag(np.arange(len(rows))),
        varints.zigzag(key_length),
    ]
    length = np.maximum(key_length, 0) + np.maximum(value_length, 0) + _sizes(headers, len(rows))
    for numbers in (*raw, raw_value_length):
        length += varints.sizes(numbers)
    if int(length.sum()) + 5 * len(rows) > BLOCK_BYTES_MAX:
        raise MessageTooLarge(
            f"{len(rows):,} rows are more than {BLOCK_BYTES_MAX:,} bytes: send fewer at once."
        )
    parts = (_numbers(varints.zigzag(length), *raw), key, _numbers(raw_value_length), value, headers)
    return _content(_join(*(part for part in parts if part is not None)))


def _headers(rows: Any) -> Any:
    """Each row's number of headers, and the headers; one scalar if no row has any."""
    if HEADERS not in rows.schema.names:
        return _NO_HEADERS
    lists = rows.column(HEADERS)
    counts = pc.list_value_length(lists).fill_null(0).to_numpy().astype(np.int64)
    if not counts.any():
        return _NO_HEADERS
    pairs = lists.flatten()
    keys, values = pairs.field(0).cast(pa.binary()), pairs.field(1).cast(pa.binary())
    each = _join(
        _numbers(varints.zigzag(_lengths(keys))), keys, _numbers(varints.zigzag(_lengths(values))), values
    )
    _, offsets, data = each.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[np.concatenate([[0], np.cumsum(counts)])]
    of_rows = pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(bounds), data])
    return _join(_numbers(varints.zigzag(counts)), of_rows)


def _text(rows: Any, name: str) -> tuple[Numbers, Any]:
    """The lengths of a column, -1 for null, and the column; None where all of it is null."""
    if name not in rows.schema.names or rows.column(name).null_count == len(rows):
        return np.full(len(rows), -1, dtype=np.int64), None
    texts = rows.column(name).cast(pa.binary())
    return _lengths(texts), texts


def _lengths(texts: Any) -> Numbers:
    lengths: Numbers = pc.binary_length(texts).fill_null(-1).to_numpy().astype(np.int64)
    return lengths


def _sizes(headers: Any, count: int) -> Numbers:
    if headers is _NO_HEADERS:
        return np.ones(count, dtype=np.int64)
    return _lengths(headers)


def _numbers(*columns: Numbers) -> Any:
    """Each row's numbers as zigzag varints, one behind the other."""
    sizes = [varints.sizes(raw) for raw in columns]
    ends = np.cumsum(np.sum(sizes, axis=0))
    bounds = np.zeros(len(ends) + 1, dtype=np.int32)
    bounds[1:] = ends
    out = np.empty(int(ends[-1]), dtype=np.uint8)
    at = bounds[:-1].astype(np.int64)
    for raw, size in zip(columns, sizes, strict=True):
        varints.write(out, at, raw, size)
        at = at + size
    return pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(bounds), pa.py_buffer(out)])


def _join(*parts: Any) -> Any:
    """Row by row, with nothing between; null is nothing."""
    return pc.binary_join_element_wise(*parts, b"", null_handling="replace", null_replacement=b"")


def _content(texts: Any) -> memoryview:
    """All elements of a joined array as they lie behind each other."""
    _, offsets, data = texts.buffers()
    return memoryview(data)[: int(np.frombuffer(offsets, dtype=np.int32)[len(texts)])]


def _milliseconds(times: Any) -> Numbers:
    if pa.types.is_timestamp(times.type):
        times = pc.floor_temporal(times, unit="millisecond").cast(pa.timestamp("ms", times.type.tz))
    found: Numbers = times.cast(pa.int64()).to_numpy()
    return found
