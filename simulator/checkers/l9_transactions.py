"""L1, L2, L4, L5, L9 of transactions: all or nothing, nothing aborted is read, nothing committed is lost, and
no reader of what is committed skips anything or goes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import inf

from simulator.violation import Violation
from simulator.workloads.log_history import Position
from simulator.workloads.transaction_history import (
    COPIES,
    NOWHERE,
    Attempt,
    Reading,
    TransactionHistory,
    input_of,
)


def check(history: TransactionHistory) -> Iterator[Violation]:
    """`history.final` is what a read_committed reader found when all was at rest."""
    found: dict[int, Counter[bytes]] = {}
    for value in history.final:
        found.setdefault(history.attempt_of(value).number, Counter())[value] += 1
    for attempt in history.attempts.values():
        yield from check_attempt(attempt, found.get(attempt.number, Counter()))
    yield from check_inputs(history)
    for reading in history.readings:
        yield from check_reading(history, reading)


def check_attempt(attempt: Attempt, seen: Counter[bytes]) -> Iterator[Violation]:
    if seen:
        yield from check_read(attempt)
    elif attempt.committed < inf:
        yield Violation(
            "L1", f"transaction {attempt.number} was committed, and is not there", attempt.committed
        )
    expected = Counter(attempt.values())
    if seen and seen != expected:
        missing, extra = len(expected - seen), len(seen - expected)
        yield Violation(
            "L9", f"transaction {attempt.number} is torn: {missing} values are missing, {extra} too many"
        )


def check_read(attempt: Attempt) -> Iterator[Violation]:
    """Somebody has read something of it with read_committed."""
    if attempt.aborted < inf:
        yield Violation("L4", f"transaction {attempt.number} was aborted, and is read", attempt.aborted)
    elif attempt.asked == inf:
        yield Violation("L4", f"transaction {attempt.number} is read, and nobody committed it", attempt.began)


def check_inputs(history: TransactionHistory) -> Iterator[Violation]:
    """Offsets are committed if and only if the copies are."""
    copies = Counter(input_of(value) for value in history.final)
    for partition, end in sorted(history.offsets.items()):
        for offset in range(end):
            for copy in range(COPIES):
                times = copies.pop((Position(partition, offset), copy), 0)
                if times != 1:
                    yield Violation("L9", f"copy {copy} of input {partition}-{offset} is there {times} times")
                    return
    for (position, _), _ in sorted(copies.items()):
        if position.partition == NOWHERE:
            continue
        yield Violation("L9", f"input {tuple(position)} was copied, but its offset is not committed")
        return


def check_reading(history: TransactionHistory, reading: Reading) -> Iterator[Violation]:
    """What a reader got, one after the other, is what is there from its first offset to its last."""
    where, got = reading.partition, [offset for offset, _ in reading.seen]
    for before, after in pairwise(got):
        if after <= before:
            yield Violation("L5", f"a reader of output {where} went back from {before} to {after}")
            return
    for offset, value in reading.seen:
        stored = history.places.get(Position(where, offset))
        if stored != value:
            yield Violation("L2", f"output {where}-{offset} was read as {value!r}, and is {stored!r}")
            return
    there = {offset for partition, offset in history.places if partition == where}
    skipped = {offset for offset in there if got and reading.begin <= offset <= got[-1]} - set(got)
    if skipped:
        yield Violation("L5", f"a reader of output {where} from {reading.begin} on skipped {sorted(skipped)}")
