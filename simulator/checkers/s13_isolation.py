"""S13: a subscription that waits for transactions delivers what is committed, all of it and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from simulator.violation import Violation
from simulator.workloads.isolated_history import IsolatedHistory


def check(history: IsolatedHistory) -> Iterator[Violation]:
    found = set(history.found)
    for value in history.found:
        if not history.delivered[value]:
            yield Violation("S13", f"{value!r} is committed, and was never delivered")
            return
    for value in history.delivered:
        if value not in found:
            yield Violation("S13", f"{value!r} was delivered, and no read_committed reader finds it")
            return


def check_delivered(history: IsolatedHistory, value: bytes) -> Iterator[Violation]:
    """It was delivered just now."""
    attempt = history.attempt_of(value)
    if attempt is None:
        return
    if attempt.aborted < inf:
        yield Violation("S13", f"transaction {attempt.number} was aborted, and is delivered", attempt.aborted)
    elif attempt.asked == inf:
        yield Violation(
            "S13", f"transaction {attempt.number} is delivered, and nobody committed it", attempt.began
        )
