"""Which partition each row goes to: the one that Kafka's own clients would choose.

1. A row that names its partition goes there.
2. A row with a key goes where murmur2 of the key says, as with Java's producer and `client.partitioner`, but
   for a whole column at once.
3. A row without a key goes in turn: `CHUNK` such rows to one partition, then to the next. The turn depends on
   the task, its micro-batch and the row's number alone, never on chance or time: a repeated task must send
   each row to where it went before (`identity`).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from postroad.client.partitioner import murmur2 as murmur2_of_one

CHUNK: Final = 512  # rows without a key that stay together: a batch worth sending, and soon all partitions

_SEED: Final = np.uint32(0x9747B28C)
_M: Final = np.uint32(0x5BD1E995)
_POSITIVE: Final = np.uint32(0x7FFFFFFF)
_FEW: Final = 8  # as many keys are hashed one by one in less time than a step of numpy takes

Hashes = npt.NDArray[np.uint32]
Partitions = npt.NDArray[np.int32]


class Turn:
    """The partitions of rows without a key; one for each task and topic, told of the rows in order."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._seen = 0

    def take(self, rows: int, partitions: int) -> Partitions:
        numbers = np.arange(self._seen, self._seen + rows, dtype=np.int64)
        self._seen += rows
        return ((numbers // CHUNK + self._first) % partitions).astype(np.int32)


def topic_partition(keys: Any, wanted: Any, rows: int, partitions: int, turn: Turn) -> Partitions:
    """The partition of each row of one topic.

    `keys` (binary) and `wanted` (int) are Arrow arrays of that many rows; None stands for a column of nulls.
    A partition that does not exist is the caller's to find.
    """
    chosen = np.empty(rows, np.int32)
    named, keyed = _filled(wanted, rows), _filled(keys, rows)
    if named.any():
        chosen[named] = pc.drop_null(wanted).to_numpy(zero_copy_only=False)
    keyed &= ~named
    if keyed.any():
        hashes = murmur2(keys.filter(pa.array(keyed)))
        chosen[keyed] = (hashes & _POSITIVE) % np.uint32(partitions)
    rest = ~(named | keyed)
    chosen[rest] = turn.take(int(rest.sum()), partitions)
    return chosen


def gather(codes: npt.NDArray[np.int64]) -> tuple[Any, list[tuple[int, int, int]]]:
    """The order in which rows of one code stand together, each code's rows in the order they came; and
    (code, first row, number of rows) for each. The order is None if the rows stand so already."""
    if not len(codes):
        return None, []
    order = None
    if (np.diff(codes) < 0).any():
        order = np.argsort(codes, kind="stable")
        codes = codes[order]
    firsts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1))
    counts = np.diff(firsts, append=len(codes))
    return order, list(zip(codes[firsts].tolist(), firsts.tolist(), counts.tolist(), strict=True))


def murmur2(keys: Any) -> Hashes:
    """`client.partitioner.murmur2` of each element of an Arrow array of binaries without nulls.

    Word by word over all keys that are long enough, the longest first: those still to be hashed are always
    the beginning of the arrays. When few are left they are done one by one, however long they are.
    """
    starts, lengths, data = _spans(keys)
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    values = _SEED ^ lengths.astype(np.uint32)
    missing = -(lengths // 4)  # whole words, negative: rising, as searchsorted wants it
    step, left = 0, int(np.count_nonzero(missing))
    while left > _FEW:
        word = _words(data, starts[:left] + 4 * step) * _M
        word ^= word >> np.uint32(24)
        values[:left] = values[:left] * _M ^ word * _M
        step += 1
        left = int(np.searchsorted(missing, -step))
    values = _with_tails(values, starts, lengths, data)
    for at in range(left):
        values[at] = murmur2_of_one(data[starts[at] : starts[at] + lengths[at]].tobytes())
    hashes = np.empty_like(values)
    hashes[order] = values
    return hashes


def _with_tails(values: Hashes, starts: Any, lengths: Any, data: Any) -> Hashes:
    """The up to three bytes after the last whole word, and the last mixing."""
    whole = lengths & ~3
    tails = np.zeros(len(values), np.uint32)
    for byte in range(3):
        has = np.flatnonzero(lengths - whole > byte)
        tails[has] |= data[starts[has] + whole[has] + byte].astype(np.uint32) << np.uint32(8 * byte)
    values = np.where(lengths > whole, (values ^ tails) * _M, values)
    values ^= values >> np.uint32(13)
    values *= _M
    return values ^ values >> np.uint32(15)


def _words(data: Any, at: Any) -> Hashes:
    """The little-endian words that begin at these bytes, wherever they lie."""
    view: Hashes = np.ndarray((len(data) - 3,), "<u4", data, strides=(1,))
    words: Hashes = view[at]
    return words


def _spans(keys: Any) -> tuple[Any, Any, Any]:
    """Start and length of each element in the array's own bytes."""
    wide = pa.types.is_large_binary(keys.type)
    offsets = np.frombuffer(keys.buffers()[1], np.int64 if wide else np.int32)
    offsets = offsets[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    return offsets[:-1], np.diff(offsets), data


def _filled(column: Any, rows: int) -> npt.NDArray[np.bool_]:
    if column is None:
        return np.zeros(rows, bool)
    filled: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return filled
