"""Subscriptions on a page: how far they are behind, and what is under way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from postroad.broker.metrics.ages import age_s
from postroad.broker.partition import Partition
from postroad.broker.subscriptions.isolation import readable_end
from postroad.broker.subscriptions.lag import lag
from postroad.broker.subscriptions.queue import Queue
from postroad.metrics.page import COUNTER, GAUGE, Family, Page, labels
from postroad.queues.ledger import Ledger

if TYPE_CHECKING:
    from postroad.broker.node import Node

STEPS_MAX: Final = 100  # over locks and what is done, to the first message that waits for somebody

_MEANINGS: Final = {
    "lag_messages": "Messages that are neither acknowledged nor dead, those in flight among them.",
    "lag_seconds": "The age of the oldest message that nobody holds.",
    "oldest_seconds": "The age of the oldest message that is not acknowledged.",
    "in_flight": "Messages that consumers hold, those that are pledged among them.",
    "pledged": "Messages that were accepted in transactions which have not ended.",
    "ready": "Messages that are known and can go out now; more may lie in the log.",
    "delayed": "Messages whose time has not come.",
    "waiting": "Messages behind others of their key.",
    "dying": "Messages whose copies among the dead letters are on their way.",
}
_COUNTED: Final = {
    "delivered": "Messages handed to consumers, each as often as it was.",
    "accepted": "Messages that consumers accepted.",
    "released": "Messages that consumers released, or held when they left.",
    "rejected": "Messages that consumers rejected.",
    "returned": "Messages that a gateway took and nobody saw: their deliveries don't count.",
    "expired": "Messages whose locks ended before they were settled.",
    "dead": "Messages that were given up, whatever the reason.",
}


def write_subscriptions(page: Page, node: Node) -> Iterator[None]:
    """One step for each partition of each subscription."""
    families = {
        name: page.family(f"postroad_subscription_{name}", GAUGE, meaning)
        for name, meaning in _MEANINGS.items()
    }
    doubt = page.family(
        "postroad_subscription_in_doubt", GAUGE, "1: messages that it accepted may be delivered again."
    )
    counted = {
        name: page.family(f"postroad_subscription_{name}_total", COUNTER, meaning)
        for name, meaning in _COUNTED.items()
    }
    now_ms = node.clock.now_ms()
    for group_id in sorted(node.subscriptions.ids()):
        if node.subscriptions.is_bookkeeping(group_id):
            continue
        if node.subscriptions.is_in_doubt(group_id):
            doubt.add(1, labels(subscription=group_id))
        tally = node.subscriptions.tally(group_id)
        for name, family in counted.items():
            family.add(getattr(tally, name), labels(subscription=group_id))
        for ledger in node.subscriptions.ledgers(group_id):
            partition = node.partitions.find(ledger.key.topic_id, ledger.key.partition)
            if partition is not None:
                given = labels(subscription=group_id, topic=partition.topic, partition=partition.index)
                queue = node.subscriptions.queue_in_use(ledger.key)
                committed_only = node.subscriptions.settings(group_id).committed_only
                _write(families, given, ledger, partition, queue, committed_only, now_ms)
            yield


def _write(
    families: dict[str, Family],
    given: str,
    ledger: Ledger,
    partition: Partition,
    queue: Queue | None,
    committed_only: bool,
    now_ms: int,
) -> None:
    behind = lag(ledger, partition.log.start_offset, readable_end(partition, committed_only))
    oldest = max(ledger.start, partition.log.start_offset)
    families["lag_messages"].add(behind, given)
    families["oldest_seconds"].add(age_s(partition, oldest, now_ms) if behind else 0, given)
    families["dying"].add(sum(dying.last - dying.first + 1 for dying in ledger.dying), given)
    free = oldest if queue is None else _first_free(queue, oldest)
    families["lag_seconds"].add(age_s(partition, free, now_ms) if behind else 0, given)
    core = None if queue is None else queue.core
    pledged = ledger.pledges.messages
    families["in_flight"].add(pledged if core is None else core.in_hand, given)
    families["pledged"].add(pledged, given)
    families["ready"].add(0 if core is None else core.ready, given)
    families["delayed"].add(0 if core is None else core.delayed, given)
    families["waiting"].add(0 if core is None else core.waiting, given)


def _first_free(queue: Queue, offset: int) -> int:
    """The first offset from this one on that is neither held, pledged nor done, as far as a short look can
    tell."""
    for _ in range(STEPS_MAX):
        held = queue.core.locks.find(offset) or queue.core.ledger.pledges.find(offset)
        further = queue.core.ledger.done.first_missing(offset if held is None else held[1] + 1)
        if further == offset:
            break
        offset = further
    return offset
