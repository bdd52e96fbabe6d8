"""S4: after an accept was answered the message never comes again, also over kill -9 and power cuts."""

from __future__ import annotations

from collections.abc import Iterator

from postroad.client.share_message import AckType
from simulator.violation import Violation
from simulator.workloads.queue_case import QueueCase
from simulator.workloads.queue_history import Outcome


def check(case: QueueCase) -> Iterator[Violation]:
    history = case.history
    for position, deliveries in history.deliveries.items():
        for later in deliveries:
            for saying in history.sayings(position, later.value):
                if saying.kind is not AckType.ACCEPT or saying.outcome is not Outcome.DONE:
                    continue
                if later.asked_at < saying.told_at or history.was_moved(saying.said_at, later.came_at):
                    continue
                if not case.lost_between(saying.said_at, later.came_at):
                    yield Violation(
                        "S4",
                        f"{case.name}: {later} came; its accept was answered at {saying.told_at:.3f} s",
                        later.came_at,
                    )
                    return
