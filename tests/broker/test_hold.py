"""A hold for a backup: no transaction ends while it lasts, and whoever asks for an end waits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from postroad.broker.transactions import hold as holds
from postroad.broker.transactions.participants import Ending
from postroad.errors import ConcurrentTransactions, RequestTimedOut
from postroad.transactions.transaction import TransactionState
from postroad.wire import backup
from postroad.wire.messages import end_txn
from tests.broker.harness import Running
from tests.broker.test_own_epochs import END, Modern
from tests.broker.test_transactions import end_of, state_of
from tests.clients.wait import until

LONG_MS = 10_000


def ask(running: Running, question: backup.AnyQuestion) -> backup.BackupAnswer:
    answer: backup.BackupAnswer = running.call(backup, 0, question)
    return answer


def begin_end(worker: Modern) -> Callable[[], int]:
    """Ask for a commit; the answer comes by what is returned."""
    answer = worker.connection.begin(end_txn, END, worker.ending(True))
    return lambda: int(answer().error_code)


def test_transaction_ends_when_the_hold_is_released(start: Callable[..., Running]) -> None:
    running = start()
    running.create("t")
    with running.connect() as connection:
        worker = Modern(connection, "w")
        assert worker.send("t") == 0
        assert ask(running, backup.HoldVerdicts("one", LONG_MS)).error_code == 0
        answered = begin_end(worker)
        coordinator = running.node.transactions.find("w")
        until(lambda: coordinator._held, "it waits")
        assert state_of(running, "w") == TransactionState.ONGOING.value
        assert end_of(running, "t") == 0
        assert ask(running, backup.ReleaseVerdicts("one")).unbroken
        assert answered() == 0
    until(lambda: end_of(running, "t") == 2, "the message and its marker")
    assert not ask(running, backup.ReleaseVerdicts("one")).unbroken, "it is over"


def test_hold_ends_by_itself(start: Callable[..., Running]) -> None:
    running = start()
    running.create("t")
    with running.connect() as connection:
        worker = Modern(connection, "w")
        assert worker.send("t") == 0
        assert ask(running, backup.HoldVerdicts("one", 50)).error_code == 0
        assert begin_end(worker)() == 0
    assert not ask(running, backup.ReleaseVerdicts("one")).unbroken


def test_two_backups_do_not_hold_at_a_time(start: Callable[..., Running]) -> None:
    running = start()
    assert ask(running, backup.HoldVerdicts("one", LONG_MS)).error_code == 0
    assert ask(running, backup.HoldVerdicts("two", LONG_MS)).error_code == ConcurrentTransactions.code
    assert not ask(running, backup.ReleaseVerdicts("two")).unbroken
    assert ask(running, backup.ReleaseVerdicts("one")).unbroken
    assert ask(running, backup.HoldVerdicts("two", LONG_MS)).error_code == 0


def test_hold_waits_for_transactions_that_are_being_ended(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    running.create("t")
    held: list[Ending] = []
    begin = Ending.begin
    monkeypatch.setattr(Ending, "begin", lambda ending: held.append(ending))
    monkeypatch.setattr(holds, "QUIET_S", 0.05)
    with running.connect() as connection:
        worker = Modern(connection, "w")
        assert worker.send("t") == 0
        assert worker.finish(commit=True) == 0
        assert ask(running, backup.HoldVerdicts("one", LONG_MS)).error_code == RequestTimedOut.code
        assert not ask(running, backup.ReleaseVerdicts("one")).unbroken
        monkeypatch.setattr(Ending, "begin", begin)
        running.on_loop(held[0].begin)
        until(lambda: end_of(running, "t") == 2, "it has ended")
        assert ask(running, backup.HoldVerdicts("one", LONG_MS)).error_code == 0
        assert ask(running, backup.ReleaseVerdicts("one")).unbroken


def test_coordinator_that_is_loaded_meanwhile_breaks_the_hold(start: Callable[..., Running]) -> None:
    running = start()
    with running.connect() as connection:
        Modern(connection, "w")
    assert ask(running, backup.HoldVerdicts("one", LONG_MS)).error_code == 0
    (partition,) = (each for each in running.node.partitions if each.topic == "__transaction_state")
    running.on_loop(lambda: running.node.transactions.partition_led(partition))
    assert not ask(running, backup.ReleaseVerdicts("one")).unbroken
