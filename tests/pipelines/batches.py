"""Record batches as the source gives them. For programs that are started again and again: imports little."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from postroad.spark.columns import ALL_WITH_HEADERS, TYPES

DAY_MS = 86_400_000
NOON_MS = 1_700_000_000_000


def record_batch(
    first: int,
    count: int,
    *,
    topic: str = "orders",
    partition: int = 0,
    times: list[int] | None = None,
    values: list[bytes | None] | None = None,
) -> Any:
    """A batch as the source gives it."""
    columns = {
        "key": [b"k"] * count,
        "value": values or [b"v"] * count,
        "topic": [topic] * count,
        "partition": [partition] * count,
        "offset": range(first, first + count),
        "timestamp": [ms * 1000 for ms in times or [NOON_MS] * count],
        "timestampType": [0] * count,
        "headers": [[{"key": "h", "value": b"1"}]] * count,
    }
    names = list(ALL_WITH_HEADERS.names)
    return pa.RecordBatch.from_arrays([pa.array(columns[name], TYPES[name]) for name in names], names=names)
