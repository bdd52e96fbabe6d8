"""Where one record batch ends and the next begins: the same rows are always cut the same way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from postroad.spark.rows import sizes


def cut(rows: Any, batch_bytes: int) -> Iterator[Any]:
    """Slices of the rows, each of at most `batch_bytes` when encoded and not compressed, or of one row."""
    upto = np.cumsum(sizes(rows))
    at = before = 0
    while at < len(rows):
        end = max(at + 1, int(np.searchsorted(upto, before + batch_bytes, side="right")))
        yield rows.slice(at, end - at)
        at, before = end, int(upto[end - 1])
