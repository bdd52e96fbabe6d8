"""S14: a message that is accepted in a transaction is done if and only if what it wrote is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from simulator.checkers.l9_transactions import check_attempt
from simulator.violation import Violation
from simulator.workloads.taken_history import TakenHistory
from simulator.workloads.transaction_history import COPIES, input_of


def check(history: TakenHistory) -> Iterator[Violation]:
    """All messages are done by now, and `final` is what a read_committed reader finds."""
    transactions = history.transactions
    found: dict[int, Counter[bytes]] = {}
    for value in transactions.final:
        found.setdefault(transactions.attempt_of(value).number, Counter())[value] += 1
    for attempt in transactions.attempts.values():
        yield from check_attempt(attempt, found.get(attempt.number, Counter()))
    copies = Counter(input_of(value) for value in transactions.final)
    for position in history.inputs:
        for copy in range(COPIES):
            times = copies.pop((position, copy), 0)
            if times != 1:
                text = f"message {tuple(position)} is done, and copy {copy} of it is there {times} times"
                yield Violation("S14", text)
                return
    for position, copy in copies:
        yield Violation("S14", f"copy {copy} of {tuple(position)} is there, and no such message")
        return
