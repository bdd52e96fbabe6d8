"""Transactions that several producers write in: row by row, and in any order against a model."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, Phase
from hypothesis import settings as examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from postroad.broker.transactions.participants import verdicts
from postroad.errors import (
    ApiError,
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTransactionState,
    InvalidTransactionTimeout,
    ProducerFenced,
)
from postroad.now import Now
from postroad.transactions import records, shared
from postroad.transactions.coordinator import Transactions
from postroad.transactions.shared import DONE
from postroad.transactions.transaction import (
    EPOCH_MAX,
    PREPARED,
    Decision,
    Partition,
    Producer,
    Transaction,
    TransactionState,
    Writers,
)

NOW = Now(1_000, 1_700_000_000_000)
PLACE: Partition = (bytes(range(16)), 3)
ID = "job"
TIMEOUT_MS = 1_000
REFUSALS = (ProducerFenced, InvalidTransactionState, ConcurrentTransactions)


class Shell:
    """Applies decisions at once, and completes what is prepared when it is told to."""

    def __init__(self) -> None:
        self.room = Transactions()
        self.room.resume(NOW)
        self.fresh = 100

    @property
    def known(self) -> Transaction:
        return self.room.known[ID]

    def applied(self, decision: Decision) -> Producer | None:
        if decision.transaction is not None:
            self.room.apply(records.encode(ID, decision.transaction), NOW)
        return decision.answer

    def enter(self, run: str = "r1", batch: int = 0, timeout_ms: int = TIMEOUT_MS) -> Producer:
        self.fresh += 2
        ids = self.fresh, self.fresh + 1
        decision = self.room.enter(ID, run, batch, timeout_ms, ids, NOW)
        answer = self.applied(decision)
        if decision.again:
            self.complete()
            return self.enter(run, batch)
        assert answer is not None
        return answer

    def finish(self, *kept: Producer, run: str = "r1", batch: int = 0) -> None:
        self.applied(self.room.finish(ID, run, batch, kept, NOW))

    def complete(self) -> None:
        self.applied(self.room.completed(ID, NOW))


@pytest.fixture
def shell() -> Shell:
    return Shell()


def test_each_who_enters_is_a_producer_of_its_own_and_what_is_kept_counts(shell: Shell) -> None:
    first, failed, last = shell.enter(), shell.enter(), shell.enter()
    assert len({first, failed, last}) == 3
    for who in (first, failed, last):
        shell.applied(shell.room.join(ID, who, [PLACE], (), NOW))
    shell.finish(first, last)
    assert shell.known.state is TransactionState.PREPARE_COMMIT
    assert [verdict[:3] for verdict in verdicts(shell.known, 7)] == [
        (first.producer_id, first.epoch + 1, True),
        (failed.producer_id, failed.epoch + 1, False),
        (last.producer_id, last.epoch + 1, True),
    ]
    assert all(verdict.strict for verdict in verdicts(shell.known, 7))
    shell.complete()
    assert shell.enter() == DONE, "it was committed"


def test_producers_stay_with_a_higher_epoch(shell: Shell) -> None:
    first, second = shell.enter(), shell.enter()
    shell.finish(first, second)
    shell.complete()
    again = shell.enter("r2", 1), shell.enter("r2", 1), shell.enter("r2", 1)
    assert again[:2] == tuple(Producer(who.producer_id, who.epoch + 1) for who in (first, second))
    assert again[2].epoch == 0


def test_a_producer_whose_epochs_are_used_up_is_replaced(shell: Shell) -> None:
    first = shell.enter()
    writers = Writers(run="r1", batch=0, producers=[(first.producer_id, EPOCH_MAX)], count=1)
    shell.room.known[ID] = msgspec.structs.replace(shell.known, writers=writers)
    shell.finish(Producer(first.producer_id, EPOCH_MAX))
    assert verdicts(shell.known, 7)[0].epoch == EPOCH_MAX + 1
    shell.complete()
    following = shell.enter("r2", 1)
    assert (following.producer_id != first.producer_id, following.epoch) == (True, 0)


def test_another_run_takes_over_and_the_one_before_has_lost(shell: Shell) -> None:
    lost = shell.enter("r1")
    shell.applied(shell.room.join(ID, lost, [PLACE], (), NOW))
    mine = shell.enter("r2")
    for refused in (lambda: shell.enter("r1"), lambda: shell.finish(lost, run="r1")):
        with pytest.raises(ProducerFenced):
            refused()
    with pytest.raises(InvalidProducerIdMapping):
        shell.room.join(ID, lost._replace(epoch=lost.epoch + 9), [PLACE], (), NOW)
    shell.finish(mine, run="r2")
    assert shell.known.state is TransactionState.PREPARE_COMMIT


def test_what_was_aborted_is_neither_entered_nor_committed(shell: Shell) -> None:
    who = shell.enter()
    shell.applied(shell.room.finish(ID, "r1", 0, None, NOW))
    assert shell.known.state is TransactionState.PREPARE_ABORT
    shell.complete()
    shell.applied(shell.room.finish(ID, "r1", 0, None, NOW))
    for refused in (shell.enter, lambda: shell.finish(who)):
        with pytest.raises(ProducerFenced):
            refused()
    assert shell.enter("r2") != DONE


def test_a_commit_may_be_asked_for_again_and_means_the_same(shell: Shell) -> None:
    who = shell.enter()
    shell.finish(who)
    with pytest.raises(ConcurrentTransactions):
        shell.finish(who)
    shell.complete()
    before = shell.known
    shell.finish(who)
    assert shell.known == before


def test_a_batch_before_the_last_one_is_refused(shell: Shell) -> None:
    shell.finish(shell.enter("r1", 7), run="r1", batch=7)
    shell.complete()
    with pytest.raises(InvalidTransactionState, match="Batch 7 was committed already, and 6"):
        shell.enter("r2", 6)


def test_nothing_to_keep_is_committed_all_the_same(shell: Shell) -> None:
    shell.finish()
    failed = shell.enter()
    shell.finish()
    assert [verdict.commit for verdict in verdicts(shell.known, 7)] == [False]
    shell.complete()
    assert shell.enter() == DONE
    with pytest.raises(ProducerFenced):
        shell.finish(failed, run="r0")


def test_who_does_not_write_in_it_is_not_kept(shell: Shell) -> None:
    who = shell.enter()
    with pytest.raises(InvalidTransactionState):
        shell.finish(who, Producer(who.producer_id, who.epoch + 1))
    assert shell.known.state is TransactionState.ONGOING


def test_it_is_ended_by_its_run_alone(shell: Shell) -> None:
    who = shell.enter()
    for producer in (who, Producer(shell.known.producer_id, shell.known.epoch)):
        with pytest.raises(ApiError):
            shell.room.end(ID, producer, True, 2, 1, NOW)
        if producer != who:
            with pytest.raises(ProducerFenced):
                shell.room.add(ID, producer, [PLACE], [], 2, NOW)


def test_a_producer_that_begins_under_the_id_aborts_it(shell: Shell) -> None:
    who = shell.enter()
    decision = shell.room.begin(ID, TIMEOUT_MS, None, 1, NOW)
    assert decision.again
    shell.applied(decision)
    assert [verdict.commit for verdict in verdicts(shell.known, 7)] == [False]
    shell.complete()
    alone = shell.applied(shell.room.begin(ID, TIMEOUT_MS, None, 1, NOW))
    assert alone is not None
    with pytest.raises(ProducerFenced):
        shell.finish(who)
    shell.applied(shell.room.add(ID, alone, [PLACE], [], 2, NOW))
    assert [verdict.producer_id for verdict in verdicts(shell.known, 7)] == [alone.producer_id]
    shell.enter("r2")
    with pytest.raises(ProducerFenced):
        shell.room.add(ID, alone, [PLACE], [], 2, NOW)


@pytest.mark.parametrize(("run", "batch"), [("", 0), ("r" * 65, 0), ("r", -1)])
def test_a_run_has_a_name_and_a_number(shell: Shell, run: str, batch: int) -> None:
    with pytest.raises(InvalidRequest):
        shell.enter(run, batch)


def test_the_time_has_bounds(shell: Shell) -> None:
    with pytest.raises(InvalidTransactionTimeout):
        shell.enter(timeout_ms=900_001)


# --- any order, against a model ------------------------------------------------------------------


class Told(NamedTuple):
    run: str
    batch: int
    who: Producer


class SharedMachine(RuleBasedStateMachine):
    """Drivers that begin batches, die and begin again, tasks and zombies; what is written is never torn."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.room = Transactions()
        self.room.resume(NOW)
        self.written: list[records.Record] = []
        self.fresh = 100
        self.told: list[Told] = []
        self.committed: dict[int, tuple[str, frozenset[Producer]]] = {}
        self.lost: set[str] = set()  # runs that were aborted
        self.verdict: tuple[str, int, frozenset[Producer] | None] | None = None
        self.current: tuple[str, int] | None = None

    def apply(self, decision: Decision) -> None:
        if decision.transaction is not None:
            record = records.encode(ID, decision.transaction)
            self.written.append(record)
            self.room.apply(record, self.now)

    @property
    def is_prepared(self) -> bool:
        return ID in self.room.known and self.room.known[ID].state in PREPARED

    def lose(self) -> None:
        assert self.current is not None
        self.verdict = (*self.current, None)
        self.lost.add(self.current[0])

    @rule(run=st.integers(0, 5), batch=st.integers(0, 3))
    def enter(self, run: int, batch: int) -> None:
        name = f"{run}-{batch}"
        self.fresh += 2
        try:
            decision = self.room.enter(ID, name, batch, TIMEOUT_MS, (self.fresh, self.fresh + 1), self.now)
        except REFUSALS:
            assert self.is_prepared or name in self.lost or batch < max(self.committed), (
                "refused without reason"
            )
            return
        assert not self.is_prepared
        if decision.answer == DONE:
            assert batch in self.committed
            assert decision.transaction is None
            return
        assert batch > max(self.committed, default=-1), "a batch that was committed is written again"
        assert name not in self.lost
        if decision.again:
            assert self.current is not None
            assert self.current != (name, batch)
            self.lose()
            self.apply(decision)
            return
        assert decision.answer is not None
        assert self.current in (None, (name, batch)), "two runs at once"
        assert decision.answer not in [each.who for each in self.told], "two with one name"
        assert decision.answer.epoch <= EPOCH_MAX
        self.current = name, batch
        self.told.append(Told(name, batch, decision.answer))
        self.apply(decision)

    @rule(number=st.integers(0, 8), index=st.integers(0, 2))
    def write(self, number: int, index: int) -> None:
        if not self.told:
            return
        told = self.told[-1 - number % len(self.told)]
        try:
            decision = self.room.join(ID, told.who, [(bytes(16), index)], (), self.now)
        except (*REFUSALS, InvalidProducerIdMapping):
            assert self.is_prepared or self.current != told[:2], "refused without reason"
            return
        assert self.current == told[:2], "a zombie was heard"
        assert not self.is_prepared
        self.apply(decision)

    @rule(
        run=st.integers(0, 5), batch=st.integers(0, 3), kept=st.sets(st.integers(0, 4)), commit=st.booleans()
    )
    def finish(self, run: int, batch: int, kept: set[int], commit: bool) -> None:
        name = f"{run}-{batch}"
        mine = [each.who for each in self.told if each[:2] == (name, batch)]
        chosen = frozenset(who for number, who in enumerate(mine) if number in kept)
        try:
            decision = self.room.finish(ID, name, batch, list(chosen) if commit else None, self.now)
        except REFUSALS:
            assert self.is_prepared or self.current != (name, batch), "refused without reason"
            return
        if decision.transaction is None:
            if commit and chosen:
                assert self.committed[batch][0] == name, "told to be committed"
            return
        assert self.current == (name, batch)
        if commit:
            self.verdict = name, batch, chosen
        else:
            self.lose()
        self.apply(decision)

    @rule()
    def complete(self) -> None:
        if not self.is_prepared:
            return
        assert self.verdict is not None
        name, batch, chosen = self.verdict
        known = self.room.known[ID]
        entered = {each.who for each in self.told if each[:2] == (name, batch)}
        found = {Producer(each.producer_id, each.epoch - 1): each.commit for each in verdicts(known, 1)}
        assert found == {who: chosen is not None and who in chosen for who in entered}, "torn"
        if chosen is not None:
            assert batch not in self.committed, "committed twice"
            self.committed[batch] = name, chosen
        self.apply(self.room.completed(ID, self.now))
        self.verdict = self.current = None

    @rule(ms=st.sampled_from([400, TIMEOUT_MS]))
    def time_passes(self, ms: int) -> None:
        self.now = Now(self.now.ms + ms, self.now.wall_ms + ms)
        for name in self.room.due(self.now):
            decision, _ = self.room.expire(name, self.now)
            if decision.transaction is not None:
                self.lose()
            self.apply(decision)

    @rule()
    def restart(self) -> None:
        before = dict(self.room.known)
        self.room = Transactions()
        for record in self.written:
            self.room.apply(record, self.now)
        self.room.resume(self.now)
        assert self.room.known == before

    @invariant()
    def is_consistent(self) -> None:
        assert self.is_prepared == (self.verdict is not None)
        if ID in self.room.known and not self.is_prepared:
            assert (self.room.known[ID].state is TransactionState.ONGOING) == (self.current is not None)


SETTINGS = examples(max_examples=150, stateful_step_count=50, suppress_health_check=list(HealthCheck))
CATCHING = examples(SETTINGS, max_examples=400, phases=[Phase.generate], report_multiple_bugs=False)
TestSharedMachine = SharedMachine.TestCase
TestSharedMachine.settings = SETTINGS


def keeps_epochs(writers: Writers, committed: bool) -> Writers:
    done = REAL_ENDED(writers, committed)
    return msgspec.structs.replace(done, producers=writers.producers)


def forgets_runs(writers: Writers, committed: bool) -> Writers:
    return msgspec.structs.replace(REAL_ENDED(writers, committed), aborted=[])


def forgets_batch(writers: Writers, committed: bool) -> Writers:
    return msgspec.structs.replace(REAL_ENDED(writers, committed), done=-1)


def keeps_all(what: Any, **changes: Any) -> Any:
    if isinstance(what, Writers) and "kept" in changes:
        changes["kept"] = [producer_id for producer_id, _ in what.open]
    return msgspec.structs.replace(what, **changes)


REAL_ENDED = Writers.ended
MUTANTS: dict[str, tuple[object, str, object]] = {
    "producers keep their epochs": (Writers, "ended", keeps_epochs),
    "runs that were aborted come back": (Writers, "ended", forgets_runs),
    "a batch is not remembered": (Writers, "ended", forgets_batch),
    "any run is the transaction's": (shared, "_is_of", lambda writers, *_: bool(writers.count)),
    "all who wrote are kept": (shared, "replace", keeps_all),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_model_catches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, attribute, changed = MUTANTS[name]
    monkeypatch.setattr(where, attribute, changed)
    with pytest.raises((AssertionError, ApiError)):
        run_state_machine_as_test(SharedMachine, settings=CATCHING)
