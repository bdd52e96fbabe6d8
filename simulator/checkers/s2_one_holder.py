"""S2: one member at a time holds a message, until its lock ends.

The node gave the lock at some moment between the member's request and its answer, so the lock is certain
from the answer on, and until the lock's time after the request. Its end is counted in whole milliseconds.
A member whose session or membership was not continued may have lost its locks with it: after the last request
that proves the session nothing is claimed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from postroad.client.metadata import TopicPartition
from simulator.violation import Violation
from simulator.workloads.queue_case import QueueCase
from simulator.workloads.queue_history import Delivery

CLOCK_S: Final = 0.002  # the node counts in milliseconds, which it rounds down


def check(case: QueueCase) -> Iterator[Violation]:
    for first, second in case.pairs():
        if _overlap(first, second):
            yield Violation(
                "S2",
                f"{case.name}: {second} came while {first.member[:8]}, who got it at {first.came_at:.3f} s, "
                f"held it until {first.surely_held_until():.3f} s",
                second.came_at,
            )
            return
    yield from _check_window(case)


def _overlap(first: Delivery, second: Delivery) -> bool:
    first_until = first.surely_held_until() - CLOCK_S
    second_until = second.surely_held_until() - CLOCK_S
    both_at = max(first.came_at, second.came_at)
    taken_from_first = first.came_at <= second.asked_at and second.came_at <= first_until
    return taken_from_first or min(first_until, second_until) >= both_at


def _check_window(case: QueueCase) -> Iterator[Violation]:
    """Messages in flight are bounded for each partition. A move lets new ones out while members still have
    the old ones."""
    if case.history.plan.is_moved:
        return
    bound = case.history.plan.partition_locks_max
    changes: defaultdict[TopicPartition, list[tuple[float, int]]] = defaultdict(list)
    for delivery in case.history.all():
        until = delivery.surely_held_until() - CLOCK_S
        if until > delivery.came_at:
            changes[delivery.position.topic_partition] += [(delivery.came_at, 1), (until, -1)]
    for part, steps in changes.items():
        held = 0
        for at, step in sorted(steps):
            held += step
            if held > bound:
                yield Violation("S6", f"{case.name}: {held} messages of {part} in flight, {bound} may be", at)
                return
