"""S12: after a seek, or a purge, nothing comes from before it; a deleted subscription knows nothing.

That everything behind it comes is seen in S1.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulator.violation import Violation
from simulator.workloads.queue_case import QueueCase
from simulator.workloads.queue_history import Move, Outcome


def check(case: QueueCase) -> Iterator[Violation]:
    moves = case.history.moves
    for number, move in enumerate(moves):
        doubt = any(earlier.over_at > move.said_at for earlier in moves[:number])
        if move.outcome is Outcome.DONE and not doubt:
            until = min((later.said_at for later in moves[number + 1 :]), default=None)
            yield from _check_move(case, move, until)


def _check_move(case: QueueCase, move: Move, until: float | None) -> Iterator[Violation]:
    for position, deliveries in case.history.deliveries.items():
        start = move.starts.get(position.topic_partition, 0)
        if position.offset >= start:
            continue
        for delivery in deliveries:
            if delivery.asked_at < move.told_at or (until is not None and delivery.came_at > until):
                continue
            if not case.lost_between(move.said_at, delivery.came_at):
                text = f"{case.name}: {delivery} came after a {move.kind} to {start} was answered"
                yield Violation("S12", text, delivery.came_at)
                return
