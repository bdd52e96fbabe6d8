"""What the broker does around a share partition, in a few lines: the disk never fails unless told to."""

from __future__ import annotations

from typing import Any

from postroad.now import Now
from postroad.queues.entry import QueueEntry
from postroad.queues.holdings import Holdings
from postroad.queues.ledger import Ledger
from postroad.queues.settings import QueueSettings
from postroad.queues.settlement import Settlement
from postroad.queues.share_partition import AckBatch, SharePartition
from postroad.queues.update import Key, Update

KEY = Key("workers", bytes(16), 0)
ACCEPT, RELEASE, REJECT, RENEW, RETURN = 1, 2, 3, 4, 100


class Shell:
    def __init__(self, holdings: Holdings | None = None, **settings: Any) -> None:
        self.now = Now(10_000, 1_700_000_000_000)
        self.settings = QueueSettings(**settings)
        self.holdings = holdings or Holdings()
        self.log: list[Update] = []
        self.partition = SharePartition(Ledger(KEY), self.settings, self.holdings, lambda: 0.0)

    def send(self, *entries: QueueEntry) -> None:
        self.settle(self.partition.extend(entries[-1].last + 1, entries, self.now))

    def acquire(self, member: str = "anna", count: int = 500, **options: Any) -> list[tuple[int, int]]:
        """Ranges of offsets."""
        got = self.partition.acquire(member, count, self.now, **options)
        self.settle(self.partition.take_expired(self.now))
        return [(first, last) for first, last, _ in got]

    def acknowledge(
        self, kind: int, first: int, last: int | None = None, member: str = "anna", **how: Any
    ) -> None:
        last = first if last is None else last
        self.settle(self.partition.acknowledge(member, [AckBatch(first, last, (kind,))], self.now, **how))

    def settle(self, settlement: Settlement | None) -> None:
        if settlement is not None and settlement.update is not None:
            self.log.append(settlement.update)
            self.partition.ledger.apply(settlement.update)
            self.partition.settled(settlement, self.now)
        self.partition.check()

    def wait(self, ms: int) -> None:
        """Time passes, and every deadline is kept."""
        self.now = Now(self.now.ms + ms, self.now.wall_ms + ms)
        while (due := self.partition.next_deadline()) is not None and due <= self.now.ms:
            self.settle(self.partition.expire(self.now))

    def crash(self, *entries: QueueEntry) -> None:
        """Only what was committed is left; the log is read again."""
        ledger = Ledger(KEY)
        for update in self.log:
            ledger.apply(update)
        self.holdings = Holdings()
        self.partition = SharePartition(ledger, self.settings, self.holdings, lambda: 0.0)
        if entries:
            self.send(*entries)


def batches_of(offsets: list[int], types: list[int]) -> list[AckBatch]:
    """Neighbours in one batch, as clients send them."""
    batches: list[AckBatch] = []
    for offset, kind in zip(offsets, types, strict=True):
        if batches and batches[-1].last + 1 == offset:
            first, _, before = batches[-1]
            batches[-1] = AckBatch(first, offset, [*before, kind])
        else:
            batches.append(AckBatch(offset, offset, [kind]))
    return batches
