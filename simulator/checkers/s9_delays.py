"""S9: a message that asks for a time is not delivered before it.

The node's wall clock decides, so nothing is claimed once somebody has set it. That no message is late for
ever is seen in S1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simulator.clock import EPOCH_MS
from simulator.violation import Violation
from simulator.workloads.queue_case import QueueCase
from simulator.workloads.queue_topic import due_ms

CLOCK_MS: Final = 2  # both clocks are rounded to milliseconds


def check(case: QueueCase) -> Iterator[Violation]:
    for delivery in case.history.all():
        due = due_ms(delivery.headers, delivery.timestamp)
        came_ms = EPOCH_MS + delivery.came_at * 1000
        if due and not delivery.clock_jumps and came_ms + CLOCK_MS < due:
            text = f"{case.name}: {delivery} came {due - came_ms:.0f} ms too early"
            yield Violation("S9", text, delivery.came_at)
            return
