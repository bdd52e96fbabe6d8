"""`Pledges`: messages that were accepted in transactions which have not ended.

A pledged message is neither held nor available, and no lock of it runs. The commit of its transaction makes
it done; an abort leaves it as a failed delivery does. How often it was delivered stands among the attempts,
so a pledge is only a mark over them, and taking it away leaves a released message.

Each transaction of a producer has an epoch of its own, and its end a higher one (KIP-890). So a pledge counts
for as long as no end with a higher epoch of its producer is known, in whatever order records are read: a
snapshot that is written late brings no pledge back.

D1 the epoch of a pledge is not below what `ended` has of its producer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from postroad.queues.table import Row, Table
from postroad.queues.update import Ended, Pledged

ENDED_MAX: Final = 10_000  # producers; a snapshot is not written so late that so many ended meanwhile
PRODUCER, EPOCH = 2, 3


class Pledges(Table):
    """Values: producer id, epoch."""

    __slots__ = ("ended",)

    def __init__(self) -> None:
        super().__init__(2)
        self.ended: dict[int, int] = {}  # by producer: its transactions of lower epochs have ended

    def __iter__(self) -> Iterator[Pledged]:
        return map(Pledged._make, self.each())

    def add(self, pledged: Pledged, first: int, last: int) -> None:
        """These messages are part of the transaction, unless it has ended. Nobody pledges what is pledged, so
        of two pledges one is told out of its order; which one wins must not depend on that."""
        if pledged.epoch < self.ended.get(pledged.producer_id, 0):
            return
        mine = pledged.producer_id, pledged.epoch
        for low, high, *other in self.pieces(first, last):
            if tuple(other) < mine or not self.contains(low):
                self.carve(low, high)
                self.put(low, high, *mine)

    def end(self, ended: Ended) -> None:
        """The producer's transactions of lower epochs have ended: nothing is pledged in them any more."""
        producer_id, epoch = ended
        if epoch <= self.ended.get(producer_id, 0):
            return
        for first, last, *_ in self.of(producer_id, epoch):
            self.carve(first, last)
        self.ended.pop(producer_id, None)  # whoever ended last is forgotten last
        self.ended[producer_id] = epoch
        if len(self.ended) > ENDED_MAX:
            del self.ended[next(iter(self.ended))]

    def of(self, producer_id: int, below: int) -> list[Row]:
        """What is pledged in the producer's transactions of lower epochs."""
        return [row for row in self.each() if row[PRODUCER] == producer_id and row[EPOCH] < below]

    def check(self) -> None:
        super().check()
        for row in self.each():
            assert row[EPOCH] >= self.ended.get(row[PRODUCER], 0), "D1"
