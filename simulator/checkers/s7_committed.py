"""S7: what is delivered is committed: somebody sent it, it lies in the log for ever, and never changes."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.violation import Violation
from simulator.workloads.queue_case import QueueCase


def check(case: QueueCase) -> Iterator[Violation]:
    for delivery in case.history.all():
        topic, position = case.topics[delivery.position.topic], delivery.position
        sent = topic.sent.get(delivery.value)
        if sent is None:
            yield Violation("S7", f"{case.name}: {delivery} was never sent", delivery.came_at)
            return
        if (delivery.key, list(delivery.headers)) != (sent.key, list(sent.headers)):
            yield Violation(
                "S7", f"{case.name}: {delivery} came with another key or headers", delivery.came_at
            )
            return
        if delivery.asked_at <= case.lost_until or topic.is_deleted(position):
            continue
        found = topic.found.get(position)
        if found is None or found.value != delivery.value:
            there = "nothing" if found is None else repr(found.value[:24])
            yield Violation(
                "S7", f"{case.name}: {delivery} was delivered; in the end {there} is there", delivery.came_at
            )
            return
