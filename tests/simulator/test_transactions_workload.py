"""The checks of transactions see what they are there for."""

from __future__ import annotations

import pytest

from simulator.campaign import Campaign, play_apart
from simulator.checkers import l9_transactions, s13_isolation, s14_taken
from simulator.workloads.isolated_history import IsolatedHistory
from simulator.workloads.log_history import Position
from simulator.workloads.taken_history import TakenHistory
from simulator.workloads.transaction_history import NOWHERE, Attempt, TransactionHistory


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


def reading_of(history: TransactionHistory, *offsets: int) -> list[str]:
    """What is broken if a reader of the first partition of the output gets these, from offset 1 on."""
    values = [value for attempt in history.attempts.values() for value in attempt.values()]
    history.places = {Position(0, number): value for number, value in enumerate(values)}
    reading = history.read(0, 1)
    reading.seen = [(offset, values[offset]) for offset in offsets]
    return broken(history)


def test_a_reader_may_begin_and_stop_anywhere() -> None:
    assert reading_of(history_of([0, 1], [2]), 1, 2, 3) == []
    assert reading_of(history_of([0, 1])) == []


@pytest.mark.parametrize("offsets", [(2, 3), (1, 3), (1, 2, 2, 3), (1, 2, 1)])
def test_a_reader_must_not_skip_or_go_back(offsets: tuple[int, ...]) -> None:
    assert reading_of(history_of([0, 1], [2]), *offsets) == ["L5"]


def test_what_was_read_must_stay_where_it_was() -> None:
    history = history_of([0, 1])
    history.read(0, 0).seen = [(0, history.final[1])]
    history.places = {Position(0, 0): history.final[0]}
    assert broken(history) == ["L2"]


# --- a subscription that waits for transactions


def isolated_history() -> IsolatedHistory:
    """One transaction that was committed and delivered, and a message outside of transactions."""
    history = IsolatedHistory()
    attempt = history.transactions.begin([Position(NOWHERE, 0)], 1.0)
    attempt.asked, attempt.committed = 2.0, 3.0
    history.found = [*attempt.values(), b"plain:1"]
    history.delivered.update(history.found)
    return history


def isolation_broken(history: IsolatedHistory) -> list[str]:
    return [violation.text for violation in s13_isolation.check(history)]


def test_what_is_committed_and_delivered_breaks_nothing() -> None:
    history = isolated_history()
    assert isolation_broken(history) == []
    assert not list(s13_isolation.check_delivered(history, history.found[0]))
    assert not list(s13_isolation.check_delivered(history, b"plain:1"))


def test_a_committed_message_that_was_not_delivered_is_seen() -> None:
    history = isolated_history()
    del history.delivered[history.found[0]]
    assert "never delivered" in isolation_broken(history)[0]


def test_a_delivered_message_that_is_not_committed_is_seen() -> None:
    history = isolated_history()
    aborted = history.transactions.begin([Position(NOWHERE, 1)], 4.0)
    (value, *_) = aborted.values()
    assert "nobody committed it" in next(s13_isolation.check_delivered(history, value)).text
    aborted.aborted = 5.0
    assert "was aborted" in next(s13_isolation.check_delivered(history, value)).text
    history.delivered[value] += 1
    assert "no read_committed reader finds it" in isolation_broken(history)[0]


@pytest.mark.parametrize(("nodes", "seed"), [(1, 1), (1, 2), (1, 3), (3, 1)])
def test_a_subscription_that_waits_for_transactions_breaks_no_promise(nodes: int, seed: int) -> None:
    campaign = Campaign(nodes=nodes, workloads=("isolated",))
    assert [str(violation) for violation in play_apart(campaign, seed).violations] == []


# --- messages of a queue that are accepted in transactions


def taken_history() -> TakenHistory:
    """Two messages that were answered in two transactions, and one that was aborted first."""
    history = TakenHistory(history_of([0], [1]), [Position(0, 0), Position(0, 1)])
    aborted = history.transactions.begin([Position(0, 1)], 1.0)
    aborted.aborted = 2.0
    return history


def taken_broken(history: TakenHistory) -> list[str]:
    return [violation.invariant for violation in s14_taken.check(history)]


def test_messages_that_are_answered_once_break_nothing() -> None:
    assert taken_broken(taken_history()) == []


def test_a_message_that_is_done_without_its_answer_is_seen() -> None:
    history = taken_history()
    history.inputs.append(Position(1, 0))
    assert taken_broken(history) == ["S14"]


def test_a_message_that_is_answered_twice_is_seen() -> None:
    history = taken_history()
    again = history.transactions.begin([Position(0, 1)], 4.0)
    again.asked = 5.0
    history.transactions.final += again.values()
    assert taken_broken(history) == ["S14"]


def test_an_answer_to_what_was_never_there_is_seen() -> None:
    history = taken_history()
    history.inputs.pop()
    assert taken_broken(history) == ["S14"]


@pytest.mark.parametrize(("nodes", "seed"), [(1, 1), (1, 2), (1, 3), (3, 1)])
def test_messages_that_are_taken_in_transactions_break_no_promise(nodes: int, seed: int) -> None:
    campaign = Campaign(nodes=nodes, workloads=("taken",))
    assert [str(violation) for violation in play_apart(campaign, seed).violations] == []
