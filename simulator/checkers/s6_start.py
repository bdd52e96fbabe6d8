"""S6: a subscription's start never falls, and passes only messages that have ended."""

from __future__ import annotations

from collections.abc import Iterator

from postroad.client.metadata import TopicPartition
from simulator.violation import Violation
from simulator.workloads.queue_case import QueueCase
from simulator.workloads.queue_history import SeenStarts


def check(case: QueueCase) -> Iterator[Violation]:
    highest: dict[TopicPartition, tuple[int, SeenStarts]] = {}
    for seen in case.history.starts:
        for part, start in seen.starts.items():
            before, when = highest.get(part, (-1, seen))
            if start > before:
                highest[part] = start, seen
            elif start < before and when.came_at <= seen.asked_at and _must_hold(case, when, seen):
                yield Violation(
                    "S6", f"{case.name}: the start of {part} fell from {before} to {start}", seen.came_at
                )
                return
            elif start < before:
                highest[part] = start, seen
    yield from _check_passed(case)


def _must_hold(case: QueueCase, before: SeenStarts, after: SeenStarts) -> bool:
    moved = case.history.was_moved(before.asked_at, after.came_at)
    return not moved and not case.lost_between(before.asked_at, after.came_at)


def _check_passed(case: QueueCase) -> Iterator[Violation]:
    """Nothing that a start has passed is delivered later."""
    for seen in case.history.starts:
        for position, deliveries in case.history.deliveries.items():
            if position.offset >= seen.starts.get(position.topic_partition, 0):
                continue
            for delivery in deliveries:
                moved = case.history.was_moved(seen.asked_at, delivery.came_at)
                lost = case.lost_between(seen.asked_at, delivery.came_at)
                if delivery.asked_at >= seen.came_at and not (moved or lost):
                    start = seen.starts[position.topic_partition]
                    text = f"{case.name}: {delivery} came, although the start was {start} before"
                    yield Violation("S6", text, delivery.came_at)
                    return
