"""The headers of many records as one Arrow column.

Records have few headers, so all records take a step together: the first header of each, then the second of
those that have one, and so on. What is left when few records go on (one with a thousand headers, say) is
read header by header.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from postroad.errors import CorruptMessage
from postroad.spark import texts, varints
from postroad.spark.columns import HEADER_TYPE, HEADERS, TYPES
from postroad.spark.varints import Bytes, Numbers
from postroad.wire.records import read_varint

TOGETHER_MIN: Final = 8  # records; with fewer a common step costs more than single ones
_HEADER_BYTES_MIN: Final = 2

_Fields = tuple[Numbers, Numbers, Numbers, Numbers]
"""Of each header: where its key begins, its key's length, where its value begins, its value's length."""


def header_lists(buffer: Bytes, arrow_buffer: Any, at: Numbers, ends: Numbers) -> Any:
    """The column, from the positions of the records' header counts and of their ends.

    A record without headers has null, as Spark's Kafka connector has it. CorruptMessage unless the headers
    fill each record exactly.
    """
    counts, at = varints.read(buffer, at)
    if (counts < 0).any() or (counts * _HEADER_BYTES_MIN > ends - at).any():
        raise CorruptMessage("A record counts more headers than it has bytes.")
    fields = _read(buffer, counts, at, ends)
    offsets = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=offsets[1:])
    keys = _to_strings(texts.gather(arrow_buffer, fields[0], fields[1]))
    values = texts.gather(arrow_buffer, fields[2], fields[3])
    pairs = pa.StructArray.from_arrays([keys, values], fields=list(HEADER_TYPE))
    bounds = [texts.bitmap(counts > 0), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(TYPES[HEADERS], len(counts), bounds, children=[pairs])


def check_none(buffer: Bytes, at: Numbers, ends: Numbers) -> None:
    """Where headers are not wanted: a record has some, or it must end here."""
    counts, behind = varints.read(buffer, at)
    if ((behind != ends) & (counts == 0)).any() or (counts < 0).any() or (behind > ends).any():
        raise CorruptMessage("A record's length does not fit what is in it.")


def _read(buffer: Bytes, counts: Numbers, at: Numbers, ends: Numbers) -> _Fields:
    total = int(counts.sum())
    fields = tuple(np.empty(total, dtype=np.int64) for _ in range(4))
    rows = np.cumsum(counts) - counts  # of each record's next header among all headers
    going_on = np.flatnonzero(counts)
    at, left = at.copy(), counts.copy()
    while len(going_on) >= TOGETHER_MIN:
        read, at[going_on] = _read_one(buffer, at[going_on], ends[going_on])
        for field, found in zip(fields, read, strict=True):
            field[rows[going_on]] = found
        rows[going_on] += 1
        left[going_on] -= 1
        going_on = going_on[left[going_on] > 0]
    data = buffer.data
    for record in going_on.tolist():
        row, count = int(rows[record]), int(left[record])
        mine = [field[row : row + count] for field in fields]
        at[record] = _read_singly(data, int(at[record]), int(ends[record]), mine)
    if (at != ends).any():
        raise CorruptMessage("A record's length does not fit what is in it.")
    return fields[0], fields[1], fields[2], fields[3]


def _read_one(buffer: Bytes, at: Numbers, ends: Numbers) -> tuple[_Fields, Numbers]:
    """One header of each record, and the positions behind them."""
    key_length, key = varints.read(buffer, at)
    behind_key = key + key_length
    if (key_length < 0).any() or (behind_key > ends).any():
        raise CorruptMessage("A header has no key, or one that reaches past the end of its record.")
    value_length, value = varints.read(buffer, behind_key)
    behind = value + np.maximum(value_length, 0)
    if (value_length < -1).any() or (behind > ends).any():
        raise CorruptMessage("A header's value reaches past the end of its record.")
    return (key, key_length, value, value_length), behind


def _read_singly(data: memoryview, at: int, end: int, fields: list[Numbers]) -> int:
    """As many headers as the fields have room for; the position behind them."""
    found: list[tuple[int, int, int, int]] = []
    try:
        for _ in range(len(fields[0])):
            key_length, key = read_varint(data, at)
            value_length, value = read_varint(data, key + max(key_length, 0))
            at = value + max(value_length, 0)
            if key_length < 0 or value_length < -1 or at > end:
                raise CorruptMessage("A header reaches past the end of its record, or has no key.")
            found.append((key, key_length, value, value_length))
    except IndexError:
        raise CorruptMessage("A header reaches past the end of its batch.") from None
    for field, numbers in zip(fields, zip(*found, strict=True), strict=True):
        field[:] = numbers
    return at


def _to_strings(keys: Any) -> Any:
    """Text that is no UTF-8 is mended, as Java does: Spark would stop at it."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        mended = [key.decode("utf-8", "replace") for key in keys.to_pylist()]
        return pa.array(mended, pa.string())
