"""Where the records of many batches begin: the one thing in a batch that has to be read in order.

Each record begins with its length, so the next one's position is known only when this one's length is.
That is a chain for each batch, and an interpreter takes some 150 ns for a link. Three ways are cheaper:

- Many batches: all chains take a step together, which costs each of them some 15 ns.
- Records of the same size in a row: where the next lengths are the very same bytes, a stride apart,
  is found by one comparison of all of them.
- Only what is neither is walked link by link.

Whichever is taken, a batch counts as walked only if its records fill it exactly.
"""

from __future__ import annotations

from typing import Final, NoReturn

import numpy as np

from postroad.errors import CorruptMessage
from postroad.spark.varints import Bytes, Numbers
from postroad.wire.records import read_varint

TOGETHER_MIN: Final = 32  # chains; with fewer a common step costs more than single ones or runs
RECORD_BYTES_MIN: Final = 7  # a length, attributes, and five numbers of one byte
_RUN_MIN: Final = 16  # records; a comparison costs as much as walking over these
_STEPS_MIN: Final = 64  # single steps between two searches for a run; doubled when there was none


def record_starts(buffer: Bytes, begins: Numbers, ends: Numbers, counts: Numbers) -> Numbers:
    """The position of each record's length, batch after batch.

    `begins`, `ends` and `counts` say where each batch's records lie and how many it claims.
    CorruptMessage unless that many fill their batch exactly.
    """
    if (counts * RECORD_BYTES_MIN > ends - begins).any():
        _corrupt("A batch counts more records than it has bytes for.")
    starts = np.empty(int(counts.sum()), dtype=np.int64)
    rows = np.cumsum(counts) - counts
    order = np.argsort(-counts, kind="stable")  # the longest first: those that are done drop off at the end
    reached, steps = _step_together(buffer, begins[order], rows[order], counts[order], starts)
    is_done = (reached == ends[order]) & (counts[order] <= steps)
    for chain in np.flatnonzero(~is_done).tolist():
        batch = int(order[chain])
        begin, end, count, row = (int(each[batch]) for each in (begins, ends, counts, rows))
        mine = starts[row : row + count]
        went_on = count > steps and _walk(buffer, int(reached[chain]), end, mine[steps:])
        if not went_on and not _walk(buffer, begin, end, mine):
            _corrupt("A batch's records don't fill it, or reach past its end.")
    return starts


def _step_together(
    buffer: Bytes, begins: Numbers, rows: Numbers, counts: Numbers, starts: Numbers
) -> tuple[Numbers, int]:
    """Where each chain has got to, and after how many steps (or all of its own).

    A length of three bytes or more makes its chain stand still, which the caller finds out: such a chain
    does not end at its batch's end.
    """
    reached = begins.copy()
    if len(begins) < TOGETHER_MIN or len(buffer) < 2:
        return reached, 0
    words = np.ndarray((len(buffer) - 1,), "<u2", buffer, 0, (1,))  # the two bytes at any position
    steps = int(counts[TOGETHER_MIN - 1])
    active = np.searchsorted(-counts, -np.arange(steps), side="left").tolist()  # how many are longer
    try:
        for step in range(steps):
            at = reached[: active[step]]
            starts[rows[: active[step]] + step] = at
            at += _STRIDES[words[at]]
    except IndexError:  # one of them is damaged: walked singly, each is judged on its own
        return begins.copy(), 0
    return reached, steps


def _walk(buffer: Bytes, at: int, end: int, starts: Numbers) -> bool:
    """Fill `starts` from `at` on; whether the records end at `end`."""
    row, count = 0, len(starts)
    steps = _STEPS_MIN
    data = buffer.data
    try:
        while row < count:
            stride = _stride(data, at)
            run = min(_run_length(buffer, at, end, stride), count - row)
            starts[row : row + run] = np.arange(at, at + run * stride, stride)[:run]
            at, row = at + run * stride, row + run
            if run >= _RUN_MIN:
                steps = _STEPS_MIN
                continue
            found, at = _single_steps(data, at, end, min(steps, count - row))
            starts[row : row + len(found)] = found
            row += len(found)
            steps *= 2
            if at >= end:
                break
    except IndexError:
        return False
    return row == count and at == end


def _run_length(buffer: Bytes, at: int, end: int, stride: int) -> int:
    """How many records from `at` on are of the same size: their lengths are the same bytes."""
    if at + stride >= end:
        return 1
    first, second = buffer[at:end:stride], buffer[at + 1 : end : stride]
    same = first == first[0]
    if first[0] > 0x7F:
        same = same[: len(second)] & (second == second[0])
        if second[0] > 0x7F:
            return 1  # large records are few
    differs = int(same.argmin())
    return len(same) if same[differs] else differs


def _single_steps(data: memoryview, at: int, end: int, count: int) -> tuple[list[int], int]:
    """At most `count` records from `at` on, and the position behind them."""
    found: list[int] = []
    append = found.append
    for _ in range(count):
        if at >= end:
            break
        append(at)
        low = data[at]
        if low < 0x80:
            at += (low >> 1) + 1
        elif (high := data[at + 1]) < 0x80:
            at += (high << 6) + (low >> 1) - 62
        else:
            at += _stride(data, at)
    return found, at


def _stride(data: memoryview, at: int) -> int:
    """From one record to the next. A negative length is for others to refuse; here each step goes on."""
    length, behind = read_varint(data, at)
    return behind - at + max(length, -length - 1)


def _all_strides() -> Numbers:
    """For each two bytes that a record may begin with; 0 where its length takes more than two."""
    words = np.arange(1 << 16)
    low, high = words & 0xFF, words >> 8
    short = (low >> 1) + 1
    long = np.where(high < 0x80, (high << 6) + (low >> 1) - 62, 0)
    return np.where(low < 0x80, short, long).astype(np.int64)


def _corrupt(text: str) -> NoReturn:
    raise CorruptMessage(text)


_STRIDES: Final = _all_strides()
