"""Where one record batch ends and the next begins: the same rows are always cut the same way.

A broker knows a repeated batch by its first and last sequence number, never by its content. Rows that come in
another order when a task is repeated (a shuffle does that) would be taken for those that were there before,
some would be lost and others stored twice. So a cut depends on what the rows say: a batch is shortened by
up to `SHORTENED_MAX` rows, by a checksum of its rows. Other rows, or another order, are cut elsewhere, the
broker finds their sequence out of order, and the task fails (`sending.DifferentRows`).

Rows that fit into one batch need none of this: it is stored as a whole, in whatever order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from postroad.spark.columns import KEY, VALUE
from postroad.spark.rows import column, sizes
from postroad.wire.batch import crc32c

SHORTENED_MAX: Final = 64
RECORD_BYTES: Final = 32  # lengths, deltas and counts of a record, generously


def cut(rows: Any, batch_bytes: int) -> Iterator[Any]:
    """Slices of the rows, each of at most `batch_bytes` when encoded and not compressed, or of one row."""
    upto = np.cumsum(sizes(rows) + RECORD_BYTES)
    at = before = 0
    while at < len(rows):
        end = max(at + 1, int(np.searchsorted(upto, before + batch_bytes, side="right")))
        if end < len(rows):
            end -= _checksum(rows.slice(at, end - at)) % min(SHORTENED_MAX, end - at)
        yield rows.slice(at, end - at)
        at, before = end, int(upto[end - 1])


def _checksum(rows: Any) -> int:
    parts = [column(rows, name) for name in (KEY, VALUE)]
    return sum(crc32c(_content(part)) for part in parts if part is not None)


def _content(texts: Any) -> bytes:
    """All bytes of a slice of a binary array, one after the other."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32)[[texts.offset, texts.offset + len(texts)]]
    return memoryview(data)[bounds[0] : bounds[1]].tobytes() if data else b""
