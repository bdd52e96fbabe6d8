"""A log as a list of records, with the leader epochs of a real one."""

from __future__ import annotations

from typing import NamedTuple

from postroad.log.epochs import LeaderEpochs


class Record(NamedTuple):
    epoch: int
    value: int


class ModelLog:
    def __init__(self, *, syncs: bool) -> None:
        self.syncs = syncs  # flush `sync`: only what is synced is safe
        self.records: list[Record] = []
        self.epochs = LeaderEpochs()
        self.synced = 0
        self.watermark = 0  # as its replica knows it, also over a restart

    @property
    def end(self) -> int:
        return len(self.records)

    @property
    def safe(self) -> int:
        return self.synced if self.syncs else self.end

    @property
    def last_epoch(self) -> int:
        return self.records[-1].epoch if self.records else -1

    def append(self, record: Record) -> None:
        assert record.epoch >= self.last_epoch, "L12"
        if record.epoch > self.epochs.last:
            self.epochs.start(record.epoch, self.end)
        self.records.append(record)

    def truncate(self, offset: int) -> None:
        del self.records[offset:]
        self.epochs.truncate(offset)
        self.synced = min(self.synced, offset)
        self.watermark = min(self.watermark, offset)
