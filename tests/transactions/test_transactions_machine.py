"""Any order of requests, retries, zombies, time-outs and restarts against a model that knows no records.

The model remembers what producers were told: who may speak, what the open transaction reaches, and which
verdicts were given. It must never be told two different things (L9, L10).
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase
from hypothesis import settings as examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from postroad.errors import (
    ApiError,
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTransactionState,
    ProducerFenced,
)
from postroad.now import Now
from postroad.transactions import coordinator, records, transaction
from postroad.transactions.coordinator import Transactions
from postroad.transactions.transaction import (
    COMPLETE,
    EPOCH_MAX,
    PREPARED,
    Decision,
    Partition,
    Producer,
    Transaction,
    TransactionState,
)

ID = "id"
TOPIC = bytes(16)
TIMEOUT_MS = 1000
REFUSALS = (ProducerFenced, InvalidProducerIdMapping, InvalidTransactionState, ConcurrentTransactions)


class TransactionsMachine(RuleBasedStateMachine):
    version = 1

    @initialize(version=st.integers(1, 2), used=st.sampled_from([0, EPOCH_MAX - 2]))
    def start(self, version: int, used: int) -> None:
        self.version = version
        self.now = Now(0, 1_700_000_000_000)
        self.fresh = 1
        self.written: list[records.Record] = []
        self.room = Transactions()
        self.room.resume(self.now)
        self.given: list[Producer] = []  # in the order in which they were told; the last one may speak
        self.opened_ms = 0
        self.fenced: set[Producer] = set()  # their transactions took too long
        self.reached: set[Partition] = set()  # by the transaction that is open
        self.verdict: bool | None = None  # of the one that is ending
        self.ended: dict[Producer, list[bool]] = {}  # what each producer was told of its transactions
        self.markers: dict[int, int] = {}  # the highest epoch of a marker, by producer id
        if used:
            self.given.append(self.begin_new())
            known = msgspec.structs.replace(self.room.known[ID], epoch=used)
            self.apply(Decision(None, known))
            self.given.append(Producer(known.producer_id, used))

    def apply(self, decision: Decision) -> None:
        if decision.transaction is not None:
            record = records.encode(ID, decision.transaction)
            self.written.append(record)
            self.room.apply(record, self.now)

    def take_id(self) -> int:
        self.fresh += 1
        return self.fresh

    def begin_new(self) -> Producer:
        while True:
            decision = self.room.begin(ID, TIMEOUT_MS, None, self.take_id(), self.now)
            self.apply(decision)
            if not decision.again:
                assert decision.answer is not None
                return decision.answer
            self.verdict = False
            self.finish()

    def tell(self, who: Producer) -> None:
        """A producer hears who it is: never what another one was told, and never an epoch without room."""
        assert who not in self.given, "two producers with one name"
        assert who.epoch <= EPOCH_MAX
        assert who.epoch > self.markers.get(who.producer_id, -1) or self.version == 2
        self.given.append(who)

    def speaks(self, number: int) -> Producer | None:
        return self.given[-1 - number % len(self.given)] if self.given else None

    # --- requests

    @rule()
    def new_instance(self) -> None:
        if self.is_prepared:
            with pytest.raises(ConcurrentTransactions):
                self.begin_new()
            return
        self.tell(self.begin_new())
        self.reached = set()

    @rule(number=st.integers(0, 3))
    def raise_own_epoch(self, number: int) -> None:
        who = self.speaks(number)
        if who is None:
            return
        try:
            decision = self.room.begin(ID, TIMEOUT_MS, who, self.take_id(), self.now)
        except REFUSALS:
            return
        assert who in self.given[-2:], "a zombie was heard"
        assert who not in self.fenced
        self.apply(decision)
        if decision.again:
            self.verdict = False
            self.finish()
            self.tell(self.begin_new())
        elif decision.answer != self.given[-1]:
            assert decision.answer is not None
            assert who == self.given[-1]
            self.tell(decision.answer)
        self.reached = set()

    @rule(number=st.integers(0, 2), index=st.integers(0, 3))
    def add(self, number: int, index: int) -> None:
        who = self.speaks(number)
        if who is None:
            return
        try:
            decision = self.room.add(ID, who, [(TOPIC, index)], [], self.version, self.now)
        except REFUSALS:
            return
        assert who == self.given[-1], "a zombie was heard"
        assert who not in self.fenced
        assert not self.is_prepared
        self.apply(decision)
        if not self.reached:
            self.opened_ms = self.now.ms
        self.reached.add((TOPIC, index))

    @rule(number=st.integers(0, 2), commit=st.booleans())
    def end(self, number: int, commit: bool) -> None:
        who = self.speaks(number)
        if who is None:
            return
        was_open = self.room.known[ID].state is TransactionState.ONGOING
        try:
            decision = self.room.end(ID, who, commit, self.version, self.take_id(), self.now)
        except REFUSALS:
            return
        assert who not in self.fenced
        told = self.ended.setdefault(who, [])
        if decision.transaction is None:
            assert told[-1:] == [commit], "a retry hears another verdict"
            assert decision.answer == self.given[-1]
            return
        assert who == self.given[-1], "a zombie was heard"
        told.append(commit)
        if was_open:
            assert decision.transaction.places() == self.reached, "a partition is left out"
            self.verdict = commit
        else:
            assert not commit
        self.apply(decision)
        assert decision.answer is not None
        if self.version == 2:
            self.tell(decision.answer)
        else:
            assert decision.answer == who
        self.reached = set()

    @rule()
    def finish(self) -> None:
        """Markers are written, once or again; the verdict is the one that was given."""
        known = self.room.known.get(ID)
        if known is None or known.state not in PREPARED:
            return
        assert (known.state is TransactionState.PREPARE_COMMIT) == self.verdict
        assert known.epoch >= self.markers.get(known.producer_id, -1)
        self.markers[known.producer_id] = known.epoch
        self.apply(self.room.completed(ID, self.now))
        done = self.room.known[ID]
        assert done.state in COMPLETE
        assert (done.state is TransactionState.COMPLETE_COMMIT) == self.verdict
        self.verdict = None

    @rule(ms=st.one_of(st.integers(1, 700), st.just(TIMEOUT_MS)))
    def time_passes(self, ms: int) -> None:
        self.now = Now(self.now.ms + ms, self.now.wall_ms + ms)
        for name in self.room.due(self.now):
            decision, forget = self.room.expire(name, self.now)
            assert not forget
            if decision.transaction is not None:
                assert decision.transaction.places() == self.reached
                assert decision.transaction.epoch == self.given[-1].epoch + 1, "its producer goes on"
                self.verdict, self.reached = False, set()
                self.fenced.add(self.given[-1])
            self.apply(decision)
        if self.reached:
            assert self.now.ms < self.opened_ms + TIMEOUT_MS, "it takes too long"

    @rule()
    def restart(self) -> None:
        before = dict(self.room.known)
        self.room = Transactions()
        for record in self.written:
            self.room.apply(record, self.now)
        self.room.resume(self.now)
        self.opened_ms = self.now.ms
        assert self.room.known == before

    @property
    def is_prepared(self) -> bool:
        return ID in self.room.known and self.room.known[ID].state in PREPARED

    @invariant()
    def is_consistent(self) -> None:
        known = self.room.known.get(ID)
        if known is None:
            return
        assert (known.state in PREPARED) == (self.verdict is not None)
        if known.state is TransactionState.ONGOING:
            assert known.places() == self.reached


SETTINGS = examples(max_examples=150, stateful_step_count=50, suppress_health_check=list(HealthCheck))
CATCHING = examples(SETTINGS, max_examples=400, phases=[Phase.generate], report_multiple_bugs=False)
TestTransactionsMachine = TransactionsMachine.TestCase
TestTransactionsMachine.settings = SETTINGS


def without_epoch(known: Transaction | None, who: Producer) -> Transaction:
    if known is None or who.producer_id != known.producer_id:
        raise InvalidProducerIdMapping
    return known


def fence_without_epoch(known: Transaction, now: Now) -> Transaction:
    return msgspec.structs.replace(known, state=TransactionState.PREPARE_ABORT)


def add_forgets(known: Any, who: Any, partitions: Any, *rest: Any) -> Decision:
    decision = REAL_ADD(known, who, partitions, *rest)
    if decision.transaction is None:
        return decision
    packed = transaction._packed(partitions)
    return decision._replace(transaction=msgspec.structs.replace(decision.transaction, partitions=packed))


def every_epoch_is_a_retry(known: Transaction, who: Producer) -> bool:
    return who.producer_id == known.producer_id and who.epoch < known.epoch


def completes_as_commit(known: Transaction, now: Now) -> Transaction:
    return msgspec.structs.replace(REAL_COMPLETE(known, now), state=TransactionState.COMPLETE_COMMIT)


REAL_ADD, REAL_COMPLETE = transaction.add, transaction.complete
MUTANTS: dict[str, tuple[object, str, object]] = {
    "the epoch is not checked": (transaction, "check", without_epoch),
    "a fence does not raise the epoch": (transaction, "fence", fence_without_epoch),
    "a partition is forgotten": (transaction, "add", add_forgets),
    "any old epoch is a retry": (transaction, "_is_retry", every_epoch_is_a_retry),
    "the verdict is lost": (transaction, "complete", completes_as_commit),
    "epochs never end": (transaction, "EPOCH_MAX", 40_000),
    "there are no time-outs": (coordinator.Transactions, "_arm", lambda *_: None),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_model_catches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, attribute, changed = MUTANTS[name]
    monkeypatch.setattr(where, attribute, changed)
    with pytest.raises((AssertionError, ApiError)):
        run_state_machine_as_test(TransactionsMachine, settings=CATCHING)
