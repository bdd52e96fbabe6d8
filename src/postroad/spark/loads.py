"""A task's rows in loads: what is placed, encoded and sent at a time.

A load ends with the row that makes it as large as some full record batches, or as many as `ROWS`. That
depends on the rows alone, not on how Spark cut them into Arrow batches, which is a matter of settings: a
repeated task makes the same loads and so the same record batches (`identity`). A task's memory is a few
loads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from postroad.spark.rows import cast, sizes
from postroad.spark.write_options import BATCH_BYTES

BATCHES: Final = 8  # in a load, if all rows go to one partition
ROWS: Final = 64 * 1024


def loads(batches: Iterable[Any], batch_bytes: int = BATCH_BYTES) -> Iterator[Any]:
    """Batches of Spark's rows in, batches of `rows.cast` out; every row once, in order."""
    size = BATCHES * batch_bytes
    gathering = _Load(size)
    for batch in map(cast, batches):
        upto = np.cumsum(sizes(batch))
        at = 0
        while at < len(batch):
            taken = gathering.take(batch, upto, at)
            at += taken
            if gathering.is_full:
                yield gathering.whole()
                gathering = _Load(size)
    if gathering.rows:
        yield gathering.whole()


class _Load:
    def __init__(self, size: int) -> None:
        self.rows = 0
        self._room = size
        self._parts: list[Any] = []

    @property
    def is_full(self) -> bool:
        return self.rows >= ROWS or self._room <= 0

    def take(self, batch: Any, upto: Any, at: int) -> int:
        """Add rows from `at` on, as many as belong here; `upto`: the batch's bytes up to each row's end."""
        before = upto[at - 1] if at else 0
        reaching = int(np.searchsorted(upto, before + self._room)) + 1
        end = min(len(batch), reaching, at + ROWS - self.rows)
        self._parts.append(batch.slice(at, end - at))
        self.rows += end - at
        self._room -= int(upto[end - 1] - before)
        return end - at

    def whole(self) -> Any:
        if len(self._parts) == 1:
            return self._parts[0]
        return pa.Table.from_batches(self._parts).combine_chunks().to_batches()[0]
