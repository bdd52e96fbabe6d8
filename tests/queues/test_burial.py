"""A dead letter that is buried right after a start, before the log was read."""

from __future__ import annotations

from postroad.now import Now
from postroad.queues.entry import QueueEntry
from postroad.queues.holdings import Holdings
from postroad.queues.ledger import Ledger
from postroad.queues.settings import QueueSettings
from postroad.queues.share_partition import SharePartition
from postroad.queues.update import Dying, Key, Reason, Update

NOW = Now(1_000, 1_000)


def test_what_was_settled_above_a_dead_letter_is_not_delivered_after_its_burial() -> None:
    ledger = Ledger(Key("workers", bytes(16), 0))
    ledger.apply(Update(1, start=0))
    ledger.apply(Update(1, done=[(1, 9)], dying=[Dying(0, 0, Reason.REJECTED, 1, 500, 500)]))
    partition = SharePartition(ledger, QueueSettings(), Holdings(), lambda: 0.0)
    ledger.apply(partition.bury([(0, 0)]))
    partition.extend(12, [QueueEntry(0, 11)], NOW)
    assert [(first, last) for first, last, _ in partition.acquire("member", 100, NOW)] == [(10, 11)]
    partition.check()
