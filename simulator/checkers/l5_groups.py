"""L5 in groups: within one assignment neither a gap nor a step back."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.violation import Violation
from simulator.workloads.group_history import GroupHistory


def check(history: GroupHistory) -> Iterator[Violation]:
    for stretch in history.stretches:
        for expected, came in stretch.steps:
            yield Violation(
                "L5",
                f"{history.group}: {stretch.who} got {came} of partition {stretch.partition} where "
                f"{expected} was next",
                stretch.told,
            )
