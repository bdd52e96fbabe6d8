"""Comparing the replicas of one log offline: are their bytes equal?

Replicas hold the same batches, byte for byte, wherever all of them have something. They may begin at
different offsets (retention runs on each by itself), end at different ones (a follower lags behind), and
differ where compaction has rewritten them. Above the watermark the end of a leader that died may differ from
the others' until it follows the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from postroad.log.checkpoint import UNKNOWN, read_checkpoint
from postroad.log.compaction_files import base_offsets
from postroad.log.disk import Disk
from postroad.log.inspect import Batch, iterate_batches
from postroad.log.scan import DamagedBatch


class Comparison(NamedTuple):
    """What was found. Offsets below `start` could not be compared, and those from `end` on not in all."""

    start: int
    end: int  # the lowest end of a replica, or where the first difference was
    ends: tuple[int, ...]  # of each replica, as far as it was read
    watermark: int  # the highest that a replica knew of when it stopped; -1 if none did
    different: int | None  # the first offset whose bytes differ

    @property
    def is_equal(self) -> bool:
        """Whether no committed byte differs: what nobody was told of may."""
        return self.different is None or (self.watermark != UNKNOWN and self.different >= self.watermark)


def compare_directories(disk: Disk, directories: Sequence[str]) -> Comparison:
    """Compare the replicas in these directories, each of a stopped node. Raises DamagedBatch."""
    found = [read_checkpoint(disk, directory) for directory in directories]
    checkpoints = [slot[1] for slot in found if slot is not None]
    watermark = max((checkpoint.watermark for checkpoint in checkpoints), default=UNKNOWN)
    cleaned = max((max(each.start_offset, each.cleaned_offset) for each in checkpoints), default=0)
    bases = [base_offsets(disk.list(directory)) for directory in directories]
    start = max([cleaned, *(segments[0] for segments in bases if segments)])
    replicas = [
        _Replica(iterate_batches(disk, directory, start), start, slot[1].point.offset if slot else 0)
        for directory, slot in zip(directories, found, strict=True)
    ]
    different = _first_difference(replicas)
    ends = tuple(replica.end for replica in replicas)
    return Comparison(start, min(ends) if different is None else different, ends, watermark, different)


class _Replica:
    """A replica's batches, one after the other; None behind the last."""

    def __init__(self, batches: Iterator[Batch], start: int, recovery_point: int) -> None:
        self._batches = batches
        self._recovery_point = recovery_point
        self.end = start
        self.batch: Batch | None = None
        self.advance()

    def advance(self) -> None:
        if self.batch is not None:
            self.end = self.batch.header.next_offset
        try:
            self.batch = next(self._batches, None)
        except DamagedBatch:
            if self.end < self._recovery_point:
                raise
            self.batch = None  # a tail that a crash has torn: the next start cuts it


def _first_difference(replicas: Sequence[_Replica]) -> int | None:
    """The first offset where two replicas that have it hold other bytes; each has been read up to there."""
    while True:
        batches = [replica.batch for replica in replicas if replica.batch is not None]
        if len(batches) < 2:
            for replica in replicas:
                while replica.batch is not None:
                    replica.advance()
            return None
        if any(batch.content != batches[0].content for batch in batches[1:]):
            return min(batch.header.base_offset for batch in batches)
        for replica in replicas:
            if replica.batch is not None:
                replica.advance()
