"""Many stretches of one buffer as an Arrow array of binaries, with one copy, made by Arrow.

The buffer is looked at as an array that has both the stretches and what lies between them as its elements:
its offsets are start, end, start, end, … Taking every second element leaves the stretches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from postroad.spark.varints import Numbers


def gather(buffer: Any, starts: Numbers, lengths: Numbers) -> Any:
    """The stretches as binaries; a negative length is null.

    `buffer` is an Arrow buffer below 2 GiB. The caller has made sure that the stretches lie within it, one
    behind the other.
    """
    count = len(starts)
    is_null = lengths < 0
    if is_null.all():
        return pa.nulls(count, pa.binary())
    bounds = np.empty(2 * count, dtype=np.int32)
    bounds[0::2] = starts
    bounds[1::2] = starts + np.maximum(lengths, 0)
    spread = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), buffer])
    taken = pc.take(spread, pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)), boundscheck=False)
    if not is_null.any():
        return taken
    _, offsets, data = taken.buffers()
    return pa.Array.from_buffers(pa.binary(), count, [bitmap(~is_null), offsets, data])


def bitmap(is_there: NDArray[np.bool_]) -> Any:
    """Arrow's way to say which elements are not null."""
    return pa.py_buffer(np.packbits(is_there, bitorder="little"))
