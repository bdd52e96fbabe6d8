"""L1: every acknowledged send is read by whoever reads everything, at the offset that was told."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.violation import Violation
from simulator.workloads.log_history import LogHistory


def check(history: LogHistory, lost_until: float) -> Iterator[Violation]:
    """What was sent by `lost_until` may be gone: a power cut took what was not on the disk."""
    missing = [
        (position, told)
        for position, told in history.acknowledged.items()
        if told.at > lost_until and history.is_kept(position) and history.final.get(position) != told.value
    ]
    if missing:
        position, told = min(missing)
        found = history.final.get(position)
        yield Violation(
            "L1",
            f"{history.topic}: {len(missing)} of {len(history.acknowledged)} acknowledged messages are not "
            f"where they were said to be; the first at {tuple(position)}: {told.value[:24]!r}, "
            f"sent at {told.at:.3f} s; there is {found if found is None else found[:24]!r}",
        )
