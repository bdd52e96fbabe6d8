"""Whether the offsets that batches claim can be right: they lie outside the CRC, but not by themselves.

A batch begins where the one before it ended, or later where compaction has left a gap, and ends before the
next one begins. Of two that contradict each other the one behind a gap is wrong if the other fits without it:
a batch without a gap before it is where it must be. So where there are no gaps every wrong offset is found.
The leader epoch, too, lies outside the CRC; the log knows which one each offset has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from postroad.log.epochs import UNKNOWN, LeaderEpochs
from postroad.log.scan import DamagedBatch
from postroad.wire.batch import BatchHeader


class Placed(NamedTuple):
    position: int
    header: BatchHeader
    right: bool  # False: its offsets can't be


def runs_on(
    batches: Iterable[tuple[int, BatchHeader]], offset: int, ceiling: int, epochs: LeaderEpochs
) -> bool:
    """Whether each batch begins where the one before it ended, all in one epoch: the ordinary case."""
    epoch = epochs.at(offset)
    for _, header in batches:
        if header[0] != offset or header[2] != epoch:  # base offset, leader epoch
            return False
        offset += header[6] + 1  # last offset delta
    return offset <= ceiling and (epoch == epochs.last or epochs.at(offset - 1) == epoch)


def in_order(batches: Iterable[tuple[int, BatchHeader]], floor: int, ceiling: int) -> Iterator[Placed]:
    """Each batch, from `floor` on and below `ceiling`. What `batches` raises comes after those before it."""
    held: Placed | None = None  # it is right unless the next one says otherwise
    without_gap = floor  # where the held one would end, were there no gap before it
    try:
        for position, header in batches:
            base, count = header.base_offset, header.last_offset_delta + 1
            if held is not None:
                if without_gap <= base < held.header.next_offset:
                    held, floor = held._replace(right=False), without_gap
                yield held
                held = None
            if floor <= base <= ceiling - count:
                held, without_gap = Placed(position, header, True), floor + count
                floor = base + count
            else:
                yield Placed(position, header, False)
                floor += count if count <= ceiling - floor else 0
    except DamagedBatch:
        if held is not None:
            yield held
        raise
    if held is not None:
        yield held


def first_wrong(placed: Iterable[Placed], epochs: LeaderEpochs, start: int, end: int) -> DamagedBatch | None:
    """The first batch from position `start` to `end` whose offset or leader epoch is wrong."""
    before: Placed | None = None
    current: Placed | None = None
    for following in chain(placed, (None,)):
        if current is not None and start <= current.position < end:
            wrong = _wrong(current, [one for one in (before, following) if one is not None], epochs)
            if wrong is not None:
                return wrong
        before, current = current, following
    return None


def _wrong(placed: Placed, beside: Sequence[Placed], epochs: LeaderEpochs) -> DamagedBatch | None:
    position, header, right = placed
    if not right:
        return DamagedBatch(position, f"claims offset {header.base_offset}, which is not its own")
    if not _has_epoch(header, epochs) and _neighbours_agree(beside, epochs):
        return DamagedBatch(position, f"claims leader epoch {header.leader_epoch}, not its own")
    return None


def _has_epoch(header: BatchHeader, epochs: LeaderEpochs) -> bool:
    return epochs.at(header.base_offset) in (UNKNOWN, header.leader_epoch)


def _neighbours_agree(beside: Sequence[Placed], epochs: LeaderEpochs) -> bool:
    """Whether what is known of the epochs is right for those beside this one; else that may be wrong."""
    return all(epochs.at(one.header.base_offset) == one.header.leader_epoch for one in beside)
