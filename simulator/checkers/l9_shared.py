"""L1, L4, L9 of shared transactions: of each batch one run is there, whole, with what was kept, or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import inf

from simulator.violation import Violation
from simulator.workloads.shared_history import Run, SharedHistory


def check(history: SharedHistory) -> Iterator[Violation]:
    """`history.final` is what a read_committed reader found when all was at rest."""
    found: dict[int, Counter[bytes]] = {}
    for value in history.final:
        yield from check_read(history, value)
        found.setdefault(history.attempt_of(value).run, Counter())[value] += 1
    by_batch: dict[int, list[int]] = {}
    for run in history.runs:
        seen = found.get(run.number, Counter())
        if seen:
            by_batch.setdefault(run.batch, []).append(run.number)
        yield from check_run(run, seen)
    for batch, runs in sorted(by_batch.items()):
        if len(runs) > 1:
            yield Violation("L9", f"batch {batch} was committed by runs {runs}")
    yield from check_done(history, set(by_batch))


def check_run(run: Run, seen: Counter[bytes]) -> Iterator[Violation]:
    expected = Counter(run.values())
    if run.committed < inf and expected and not seen:
        yield Violation("L1", f"run {run.number} was committed, and is not there", run.committed)
    elif seen and seen != expected:
        missing, extra = len(expected - seen), len(seen - expected)
        yield Violation("L9", f"run {run.number} is torn: {missing} values are missing, {extra} too many")


def check_read(history: SharedHistory, value: bytes) -> Iterator[Violation]:
    """Somebody has read it with read_committed."""
    attempt = history.attempt_of(value)
    run = history.runs[attempt.run]
    if run.aborted < inf:
        yield Violation("L4", f"run {run.number} was aborted, and is read", run.aborted)
    elif run.asked == inf:
        yield Violation("L4", f"run {run.number} is read, and nobody committed it")
    elif not attempt.is_kept:
        yield Violation(
            "L4", f"attempt {attempt.number} of run {run.number} was not kept, and is read", run.asked
        )


def check_done(history: SharedHistory, there: set[int]) -> Iterator[Violation]:
    """Who was told that a batch is done has written nothing: somebody else must have."""
    for batch in sorted(history.done - there):
        if not any(run.batch == batch and run.asked < inf and not run.values() for run in history.runs):
            yield Violation("L1", f"batch {batch} was said to be done, and is not there")
