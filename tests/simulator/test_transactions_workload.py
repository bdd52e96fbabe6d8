"""The checks of transactions see what they are there for."""

from __future__ import annotations

import pytest

from simulator.checkers import l9_transactions
from simulator.workloads.log_history import Position
from simulator.workloads.transaction_history import Attempt, TransactionHistory


def history_of(*committed: list[int]) -> TransactionHistory:
    """Each list of offsets of partition 0 is one transaction that was committed and is there."""
    history = TransactionHistory()
    for offsets in committed:
        attempt = history.begin([Position(0, offset) for offset in offsets], 1.0)
        attempt.asked, attempt.committed = 2.0, 3.0
        history.final += attempt.values()
    history.offsets = {0: sum(map(len, committed))}
    return history


def broken(history: TransactionHistory) -> list[str]:
    return [violation.invariant for violation in l9_transactions.check(history)]


def last(history: TransactionHistory) -> Attempt:
    return history.attempts[len(history.attempts) - 1]


def test_copies_that_are_there_once_with_their_offsets_break_nothing() -> None:
    history = history_of([0, 1], [2])
    unknown = history.begin([Position(0, 3)], 4.0)
    unknown.asked = 5.0
    assert broken(history) == []


@pytest.mark.parametrize("aborted", [True, False])
def test_what_was_aborted_or_never_committed_must_not_be_read(aborted: bool) -> None:
    history = history_of([0, 1])
    last(history).asked = float("inf")
    last(history).committed = float("inf")
    if aborted:
        last(history).aborted = 4.0
    assert broken(history) == ["L4"]


def test_a_transaction_must_not_be_torn() -> None:
    history = history_of([0, 1], [2])
    history.final.remove(last(history).values()[0])
    assert "L9" in broken(history)


def test_a_commit_that_was_acknowledged_must_be_there() -> None:
    history = history_of([0, 1], [2])
    history.final = [value for value in history.final if history.attempt_of(value) is not last(history)]
    assert "L1" in broken(history)


def test_an_input_must_not_be_copied_by_two_transactions() -> None:
    history = history_of([0, 1], [1])
    history.offsets = {0: 2}
    assert broken(history) == ["L9"]


def test_offsets_must_not_be_committed_without_their_copies() -> None:
    history = history_of([0, 1])
    history.offsets = {0: 3}
    assert broken(history) == ["L9"]


def test_copies_must_not_be_there_without_their_offsets() -> None:
    history = history_of([0, 1])
    history.offsets = {0: 1}
    assert broken(history) == ["L9"]
