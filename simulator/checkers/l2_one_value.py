"""L2: one value for each offset, for ever: what a consumer saw once is what everybody sees there."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.violation import Violation
from simulator.workloads.log_history import LogHistory


def check(history: LogHistory, lost_until: float) -> Iterator[Violation]:
    """What was seen by `lost_until` may be gone, and its offsets may hold other messages by now."""
    changed = [
        (position, told)
        for position, told in history.seen.items()
        if told.at > lost_until and history.is_kept(position) and history.final.get(position) != told.value
    ]
    if changed:
        position, told = min(changed)
        found = history.final.get(position)
        yield Violation(
            "L2",
            f"{history.topic}: {len(changed)} of {len(history.seen)} messages that were read are gone; "
            f"the first at {tuple(position)}: {told.value[:24]!r}, read at {told.at:.3f} s; "
            f"there is {found if found is None else found[:24]!r}",
        )
