"""Zigzag varints by the thousand: read at many positions of a buffer at once, or written one after the other.

A varint is 7 bits a byte, lowest first, the top bit set on all but the last; zigzag keeps small negative
numbers short (0, -1, 1, -2 … are 0, 1, 2, 3 …). Nearly all in a record take one byte or two. Those are
read for all rows together; only the few longer ones are looked at separately.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from postroad.errors import CorruptMessage

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]

BYTES_MAX: Final = 9  # 63 bits: whatever a time, an offset or a length may be


def read(buffer: Bytes, at: Numbers) -> tuple[Numbers, Numbers]:
    """The numbers at these positions, and the positions behind them.

    CorruptMessage for a number without an end. Positions must not be negative; one that lies outside of the
    buffer is an error, never a read.
    """
    raw, behind = read_raw(buffer, at)
    return raw >> 1 ^ -(raw & 1), behind


def read_raw(buffer: Bytes, at: Numbers) -> tuple[Numbers, Numbers]:
    """As `read`, but still in zigzag: twice the number, or one less than twice its amount if negative."""
    try:
        low = buffer.take(at)
        if not at.size or low.max() < 0x80:
            return low.astype(np.int64), at + 1
        return _read_long(buffer, at, low)
    except IndexError:
        raise CorruptMessage("A record reaches past the end of its batch.") from None


def _read_long(buffer: Bytes, at: Numbers, low: Bytes) -> tuple[Numbers, Numbers]:
    """The first byte was read. The second counts only where the first one says that it is there."""
    is_long = low >> 7
    high = buffer.take(at + is_long)
    number = (low & 0x7F).astype(np.int64)
    number |= (high & 0x7F).astype(np.int64) * is_long << 7
    behind = at + is_long + 1
    longer = np.flatnonzero(is_long & high >> 7)
    shift = 14
    while longer.size:
        if shift >= 7 * BYTES_MAX:
            raise CorruptMessage("A number has too many bytes.")
        byte = buffer.take(behind[longer])
        number[longer] |= (byte & 0x7F).astype(np.int64) << shift
        behind[longer] += 1
        longer = longer[byte > 0x7F]
        shift += 7
    return number, behind


def zigzag(numbers: Any) -> Numbers:
    """What stands in a varint for each number."""
    wide = np.asarray(numbers, dtype=np.int64)
    return wide << 1 ^ wide >> 63


def sizes(raw: Numbers) -> Numbers:
    """How many bytes each number takes, which is in zigzag and below 2^63."""
    size = np.ones(raw.shape, dtype=np.int64)
    limit = 0x80
    while limit < 1 << 63 and (is_longer := raw >= limit).any():
        size += is_longer
        limit <<= 7
    return size


def write(out: Bytes, at: Numbers, raw: Numbers, size: Numbers) -> None:
    """Numbers in zigzag, each of its size, to these positions of `out`."""
    out[at] = raw & 0x7F | (size > 1) << 7
    longer = np.flatnonzero(size > 1)
    shift = 7
    while longer.size:
        is_last = size[longer] * 7 == shift + 7
        out[at[longer] + shift // 7] = raw[longer] >> shift & 0x7F | ~is_last << 7
        longer = longer[~is_last]
        shift += 7
