"""`AskedPledge`: a pledge between the question to its coordinator and the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from postroad.broker.subscriptions.queue import Queue
    from postroad.transactions.transaction import Producer


class AskedPledge:
    """A pledge that waits for the coordinator of its transaction: the end may come before its answer."""

    __slots__ = ("_who", "has_ended", "queue")

    def __init__(self, queue: Queue, who: Producer) -> None:
        self.queue = queue
        self.has_ended = False
        self._who = who
        queue.asked_pledges[self] = None

    def note_end(self, who: Producer) -> None:
        """The producer's transactions below this epoch have ended."""
        if who.producer_id == self._who.producer_id and self._who.epoch < who.epoch:
            self.has_ended = True

    def forget(self) -> None:
        self.queue.asked_pledges.pop(self, None)
