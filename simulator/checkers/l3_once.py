"""L3: what an idempotent producer sent lies at one offset only; nothing lies there that nobody sent."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.violation import Violation
from simulator.workloads.log_history import LogHistory, Position


def check(history: LogHistory) -> Iterator[Violation]:
    first: dict[bytes, Position] = {}
    for position, value in history.final.items():
        if value not in history.sent:
            yield Violation("L3", f"{history.topic}: {value[:24]!r} at {tuple(position)} was never sent")
        elif history.idempotent and value in first:
            yield Violation(
                "L3", f"{history.topic}: {value[:24]!r} is at {tuple(first[value])} and at {tuple(position)}"
            )
        first[value] = position
