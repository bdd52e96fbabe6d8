"""The bytes of many rows, one after the other: what row-by-row formats are written with, a column at a time.

Each field makes of its column one run of bytes and the length of each row's part. They are woven together row
by row, once for each record. The other direction is `lanes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from postroad.spark.lanes import VARINT_BYTES_MAX, Numbers


class Ragged(NamedTuple):
    """The bytes of all rows, and how many each has."""

    data: npt.NDArray[np.uint8]
    lengths: Numbers


def nothing(rows: int) -> Ragged:
    return Ragged(np.empty(0, np.uint8), np.zeros(rows, np.int64))


def same(data: bytes, rows: int) -> Ragged:
    """The same bytes in each row."""
    return Ragged(np.tile(np.frombuffer(data, np.uint8), rows), np.full(rows, len(data), np.int64))


def scattered(parts: Sequence[tuple[Numbers, Ragged]], rows: int) -> Ragged:
    """Parts of some rows each, in the order of the rows."""
    lengths = np.zeros(rows, np.int64)
    for which, ragged in parts:
        lengths[which] = ragged.lengths
    begin = np.cumsum(lengths) - lengths
    data = np.empty(int(lengths.sum()), np.uint8)
    for which, ragged in parts:
        _put(data, begin[which], ragged)
    return Ragged(data, lengths)


def woven(parts: Sequence[Ragged], rows: int) -> Ragged:
    """Row by row what each of the parts has of it."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.zeros(rows, np.int64)
    for part in parts:
        lengths += part.lengths
    at = np.cumsum(lengths) - lengths
    data = np.empty(int(lengths.sum()), np.uint8)
    for part in parts:
        _put(data, at, part)
        at = at + part.lengths
    return Ragged(data, lengths)


def _put(data: npt.NDArray[np.uint8], begin: Numbers, part: Ragged) -> None:
    """Each row's bytes to where they begin."""
    if not len(part.data):
        return
    shift = begin - (np.cumsum(part.lengths) - part.lengths)
    data[np.repeat(shift, part.lengths) + np.arange(len(part.data))] = part.data


def counts(values: Any) -> Numbers:
    counts: Numbers = np.diff(values.offsets.to_numpy()).astype(np.int64)
    return counts


def varints(values: npt.NDArray[np.uint64]) -> Ragged:
    """Base 128, the lowest bits first."""
    left = values
    table = np.zeros((len(values), VARINT_BYTES_MAX), np.uint8)
    lengths = np.ones(len(values), np.int64)
    for at in range(VARINT_BYTES_MAX):
        table[:, at] = (left & np.uint64(0x7F)).astype(np.uint8)
        left = left >> np.uint64(7)
        more = left != 0
        if not more.any():
            break
        table[more, at] |= 0x80
        lengths += more
    return Ragged(table[np.arange(VARINT_BYTES_MAX) < lengths[:, None]], lengths)


def zigzags(values: Numbers) -> Ragged:
    """Signed numbers as Avro and Protobuf's sint have them."""
    return varints(((values << 1) ^ (values >> 63)).view(np.uint64))


def fixed(table: npt.NDArray[np.uint8]) -> Ragged:
    """Rows that all have as many bytes."""
    return Ragged(table.reshape(-1), np.full(len(table), table.shape[1], np.int64))


def binaries(values: Any) -> Ragged:
    """An array of binaries or strings without nulls."""
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    data = values.buffers()[2]
    whole = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return Ragged(whole[offsets[0] : offsets[-1]], np.diff(offsets).astype(np.int64))
