"""Transactions as a reader of the whole log sees them, without any index: what the tests compare with."""

from __future__ import annotations

from typing import NamedTuple

from postroad.log.partition_log import PartitionLog
from postroad.wire.batch import CONTROL, TRANSACTIONAL
from postroad.wire.marker import read_marker
from postroad.wire.records import Record, decode_records

from .logs import NOW, append, batch, read_all


class Ended(NamedTuple):
    producer_id: int
    first: int
    marker: int
    commit: bool


class Found(NamedTuple):
    ended: list[Ended]
    open: dict[int, int]  # producer → first offset

    def stable_offset(self, watermark: int) -> int:
        pending = [entry.first for entry in self.ended if entry.marker >= watermark]
        return min([watermark, *pending, *self.open.values()])

    def aborted(self, first: int, below: int) -> list[tuple[int, int, int]]:
        return sorted(
            (entry.first, entry.producer_id, entry.marker)
            for entry in self.ended
            if not entry.commit and entry.marker >= first and entry.first < below
        )


def find(log: PartitionLog) -> Found:
    """Read everything, in order."""
    found = Found([], {})
    for header, content in read_all(log):
        if header.attributes & CONTROL:
            marker = read_marker(content)
            first = found.open.pop(header.producer_id, marker.first_offset)
            if first >= 0:
                found.ended.append(Ended(header.producer_id, first, header.base_offset, marker.commit))
        elif header.attributes & TRANSACTIONAL:
            found.open.setdefault(header.producer_id, header.base_offset)
    return found


def committed_records(log: PartitionLog) -> list[Record]:
    """As a read_committed consumer reads: with the log's list of aborted transactions."""
    below = log.stable_offset(log.written_offset)
    coming = [(entry.first, entry.producer_id) for entry in log.aborted(log.start_offset, below)]
    leaving_out: set[int] = set()
    found: list[Record] = []
    for header, content in read_all(log):
        if header.base_offset >= below:
            break
        while coming and coming[0][0] <= header.last_offset:
            leaving_out.add(coming.pop(0)[1])
        if header.attributes & CONTROL:
            if not read_marker(content).commit:
                leaving_out.discard(header.producer_id)
        elif not (header.attributes & TRANSACTIONAL and header.producer_id in leaving_out):
            found += decode_records(content)
    return found


class Writer:
    """A producer that counts its sequence numbers."""

    def __init__(self, producer_id: int, epoch: int = 0) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.sequence = 0

    def write(self, log: PartitionLog, count: int = 1, key: bytes | None = None, size: int = 40) -> int:
        """Append to its transaction; returns the offset."""
        content = batch(
            count,
            key=key,
            size=size,
            producer=self.producer_id,
            epoch=self.epoch,
            sequence=self.sequence,
            attributes=TRANSACTIONAL,
        )
        offset = append(log, content).base_offset
        self.sequence += count
        return offset

    def end(self, log: PartitionLog, commit: bool, *, raise_epoch: bool = False) -> bool:
        if log.led_epoch == -1:
            log.begin_epoch(0)
        if raise_epoch:
            self.epoch, self.sequence = self.epoch + 1, 0
        return log.append_marker(self.producer_id, self.epoch, commit, 0, NOW, strict=raise_epoch)
