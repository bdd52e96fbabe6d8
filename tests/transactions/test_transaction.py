"""The state machine of a transactional id, row by row, and what others learned the hard way."""

from __future__ import annotations

import pytest

from postroad.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTransactionState,
    InvalidTransactionTimeout,
    ProducerFenced,
)
from postroad.now import Now
from postroad.transactions import records
from postroad.transactions.coordinator import SWEEP_MS, Transactions
from postroad.transactions.transaction import EPOCH_MAX, Decision, Partition, Producer, TransactionState

NOW = Now(1_000, 1_700_000_000_000)
TOPIC = bytes(range(16))
PLACE: Partition = (TOPIC, 3)
ID = "payments"


class Shell:
    """Applies decisions at once, and completes what is prepared when it is told to."""

    def __init__(self) -> None:
        self.room = Transactions()
        self.room.resume(NOW)
        self.ids = iter(range(100, 1000))

    @property
    def state(self) -> TransactionState:
        return self.room.known[ID].state

    def applied(self, decision: Decision) -> Producer | None:
        if decision.transaction is not None:
            self.room.apply(records.encode(ID, decision.transaction), NOW)
        return decision.answer

    def begin(self, expected: Producer | None = None, timeout_ms: int = 60_000) -> Producer:
        decision = self.room.begin(ID, timeout_ms, expected, next(self.ids), NOW)
        answer = self.applied(decision)
        if decision.again:
            self.complete()
            return self.begin(None, timeout_ms)
        assert answer is not None
        return answer

    def add(self, who: Producer, *places: Partition, groups: tuple[str, ...] = (), version: int = 1) -> None:
        self.applied(self.room.add(ID, who, places or (PLACE,), groups, version, NOW))

    def end(self, who: Producer, commit: bool, version: int = 1) -> Producer:
        answer = self.applied(self.room.end(ID, who, commit, version, next(self.ids), NOW))
        assert answer is not None
        return answer

    def complete(self) -> None:
        self.applied(self.room.completed(ID, NOW))

    def at_epoch(self, epoch: int) -> Producer:
        """As if the id had been used so often."""
        who = self.begin()
        known = self.room.known[ID]
        self.room.known[ID] = type(known)(
            state=known.state,
            producer_id=who.producer_id,
            epoch=epoch,
            timeout_ms=known.timeout_ms,
            changed_ms=known.changed_ms,
        )
        return Producer(who.producer_id, epoch)


@pytest.fixture
def shell() -> Shell:
    return Shell()


def test_a_new_id_begins_at_epoch_0_and_each_instance_raises_it(shell: Shell) -> None:
    first = shell.begin()
    assert first == (100, 0)
    assert shell.begin() == (100, 1)
    with pytest.raises(ProducerFenced):
        shell.add(first)


def test_nothing_is_known_of_a_stranger(shell: Shell) -> None:
    with pytest.raises(InvalidProducerIdMapping):
        shell.add(Producer(1, 0))
    with pytest.raises(InvalidProducerIdMapping):
        shell.end(Producer(1, 0), commit=True)
    shell.begin()
    with pytest.raises(InvalidProducerIdMapping):
        shell.add(Producer(1, 0))


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_has_bounds(shell: Shell, timeout_ms: int) -> None:
    with pytest.raises(InvalidTransactionTimeout):
        shell.begin(timeout_ms=timeout_ms)


def test_a_transaction_of_version_1_is_committed_and_its_answer_may_be_asked_for_again(shell: Shell) -> None:
    who = shell.begin()
    shell.add(who)
    shell.add(who, (TOPIC, 4), groups=("g",))
    assert shell.end(who, commit=True) == who
    known = shell.room.known[ID]
    assert (known.state, known.places(), known.groups) == (
        TransactionState.PREPARE_COMMIT,
        {(TOPIC, 3), (TOPIC, 4)},
        ["g"],
    )
    shell.complete()
    assert shell.end(who, commit=True) == who
    with pytest.raises(InvalidTransactionState):
        shell.end(who, commit=False)


def test_while_markers_are_under_way_everything_waits_and_the_verdict_stays(shell: Shell) -> None:
    who = shell.begin()
    shell.add(who)
    shell.end(who, commit=True)
    with pytest.raises(ConcurrentTransactions):
        shell.begin()
    with pytest.raises(ConcurrentTransactions):
        shell.add(who)
    with pytest.raises(ConcurrentTransactions):
        shell.end(who, commit=True)
    with pytest.raises(InvalidTransactionState):
        shell.end(who, commit=False)
    assert shell.state is TransactionState.PREPARE_COMMIT


def test_a_subset_needs_no_record(shell: Shell) -> None:
    who = shell.begin()
    shell.add(who)
    assert shell.room.add(ID, who, [PLACE], [], 1, NOW).transaction is None


def test_a_new_instance_aborts_the_open_transaction_with_an_epoch_that_nobody_is_told(shell: Shell) -> None:
    who = shell.begin()
    shell.add(who)
    assert shell.begin() == (who.producer_id, 2)
    with pytest.raises(ProducerFenced):
        shell.end(who, commit=True)


def test_a_producer_raises_its_own_epoch_and_may_ask_again(shell: Shell) -> None:
    who = shell.begin()
    raised = shell.begin(expected=who)
    assert raised == (who.producer_id, 1)
    assert shell.begin(expected=who) == raised, "its answer was lost"
    shell.begin()
    with pytest.raises(ProducerFenced):
        shell.begin(expected=who)


def test_a_zombie_is_not_given_the_epoch_of_an_open_transaction(shell: Shell) -> None:
    who = shell.begin()
    raised = shell.begin(expected=who)
    shell.add(raised)
    with pytest.raises(ProducerFenced):
        shell.begin(expected=who)


def test_a_transaction_of_version_2_has_an_epoch_of_its_own(shell: Shell) -> None:
    who = shell.begin()
    shell.add(who, version=2)
    following = shell.end(who, commit=True, version=2)
    assert following == (who.producer_id, 1)
    with pytest.raises(ConcurrentTransactions):
        shell.end(who, commit=True, version=2)
    shell.complete()
    assert shell.end(who, commit=True, version=2) == following, "its answer was lost"
    shell.add(following, version=2)
    with pytest.raises(ProducerFenced):
        shell.end(who, commit=True, version=2)
    assert shell.state is TransactionState.ONGOING, (
        "a late EndTxn does not end the next transaction (KAFKA-17754)"
    )


def test_an_abort_of_nothing_does_not_fence_its_own_producer(shell: Shell) -> None:
    who = shell.begin()
    following = shell.end(who, commit=False, version=2)
    assert following == (who.producer_id, 1)
    assert shell.end(who, commit=False, version=2) == following
    shell.add(following, version=2)


def test_a_commit_of_nothing_is_refused(shell: Shell) -> None:
    who = shell.begin()
    with pytest.raises(InvalidTransactionState):
        shell.end(who, commit=True, version=2)


def test_epochs_end_with_a_new_producer_id(shell: Shell) -> None:
    who = shell.at_epoch(EPOCH_MAX)
    renewed = shell.begin()
    assert renewed.epoch == 0
    assert renewed.producer_id != who.producer_id


def test_a_fence_at_the_last_epoch_has_room_for_its_marker(shell: Shell) -> None:
    who = shell.at_epoch(EPOCH_MAX)
    shell.add(who)
    decision = shell.room.begin(ID, 1000, None, 7, NOW)
    assert decision.transaction is not None
    assert decision.transaction.epoch == EPOCH_MAX + 1
    shell.applied(decision)
    shell.complete()
    assert shell.begin().epoch == 0


@pytest.mark.parametrize("version", [1, 2])
def test_nobody_speaks_with_the_epoch_of_a_fence_at_the_last_epoch(shell: Shell, version: int) -> None:
    """A marker of a higher one could not be written: it would have no room for its epoch."""
    who = shell.at_epoch(EPOCH_MAX)
    shell.add(who)
    shell.applied(shell.room.begin(ID, 1000, None, 7, NOW))
    shell.complete()
    guessed = Producer(who.producer_id, EPOCH_MAX + 1)
    with pytest.raises(ProducerFenced):
        shell.add(guessed, version=version)
    with pytest.raises(ProducerFenced):
        shell.end(guessed, commit=False, version=version)


def test_version_2_rotates_the_producer_id_at_the_last_epoch(shell: Shell) -> None:
    who = shell.at_epoch(EPOCH_MAX)
    shell.add(who, version=2)
    following = shell.end(who, commit=True, version=2)
    assert following.epoch == 0
    assert following.producer_id != who.producer_id
    prepared = shell.room.known[ID]
    assert (prepared.producer_id, prepared.epoch) == (who.producer_id, EPOCH_MAX + 1), "the marker's"
    shell.complete()
    assert shell.end(who, commit=True, version=2) == following
    shell.add(following, version=2)


def test_an_abort_of_nothing_at_the_last_epoch_rotates_too(shell: Shell) -> None:
    who = shell.at_epoch(EPOCH_MAX)
    following = shell.end(who, commit=False, version=2)
    assert following.epoch == 0
    shell.add(following, version=2)


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(shell: Shell) -> None:
    who = shell.begin(timeout_ms=500)
    shell.add(who)
    assert shell.room.next_deadline() == NOW.ms + 500
    late = Now(NOW.ms + 500, NOW.wall_ms + 500)
    assert shell.room.due(late) == [ID]
    decision, forget = shell.room.expire(ID, late)
    assert not forget
    shell.applied(decision)
    assert shell.state is TransactionState.PREPARE_ABORT
    shell.complete()
    with pytest.raises(ProducerFenced):
        shell.end(who, commit=True)


def test_more_partitions_do_not_give_more_time(shell: Shell) -> None:
    who = shell.begin(timeout_ms=500)
    shell.add(who)
    later = Now(NOW.ms + 400, NOW.wall_ms + 400)
    decision = shell.room.add(ID, who, [(TOPIC, 9)], [], 1, later)
    assert decision.transaction is not None
    shell.room.apply(records.encode(ID, decision.transaction), later)
    assert shell.room.due(Now(NOW.ms + 500, 0)) == [ID]


def test_a_transaction_that_has_ended_is_not_timed_out(shell: Shell) -> None:
    who = shell.begin(timeout_ms=500)
    shell.add(who)
    shell.end(who, commit=True)
    shell.complete()
    assert shell.room.due(Now(NOW.ms + 501, NOW.wall_ms)) == []
    shell.add(who)
    assert shell.room.expire(ID, NOW) == (Decision(None), False), "the next one has its own time"


def test_an_id_that_was_not_used_for_a_week_is_forgotten(shell: Shell) -> None:
    shell.begin()
    week_ms = 7 * 24 * 3_600_000
    later = Now(NOW.ms + SWEEP_MS, NOW.wall_ms + week_ms + 1)
    assert shell.room.due(later) == [ID]
    assert shell.room.expire(ID, later) == (Decision(None), True)
    shell.room.apply(records.encode(ID, None), later)
    assert ID not in shell.room.known


def test_an_open_transaction_is_never_forgotten(shell: Shell) -> None:
    shell.add(shell.begin())
    later = Now(NOW.ms, NOW.wall_ms + 10**12)
    assert not shell.room.expire(ID, later)[1]


def test_only_partitions_of_the_open_transaction_are_verified(shell: Shell) -> None:
    who = shell.begin()
    assert shell.room.verify(ID, who, [PLACE]) == {PLACE}
    shell.add(who)
    assert shell.room.verify(ID, who, [PLACE, (TOPIC, 9)]) == {(TOPIC, 9)}
    shell.end(who, commit=True)
    with pytest.raises(ConcurrentTransactions):
        shell.room.verify(ID, who, [PLACE])
    shell.complete()
    assert shell.room.verify(ID, who, [PLACE]) == {PLACE}


def test_an_older_connection_is_not_heard_any_more(shell: Shell) -> None:
    shell.begin()
    shell.room.admit_connection(ID, 4)
    shell.room.admit_connection(ID, 7)
    shell.room.admit_connection(ID, 7)
    with pytest.raises(ProducerFenced):
        shell.room.admit_connection(ID, 4)
    shell.room.admit_connection("other", 4)


def test_a_connection_that_names_an_unknown_id_leaves_nothing_behind(shell: Shell) -> None:
    for number in range(10):
        shell.room.admit_connection(f"stranger-{number}", number)
    assert not shell.room.has_spoken("stranger-9")
    shell.begin()
    shell.room.admit_connection(ID, 7)
    assert shell.room.has_spoken(ID)


def test_a_restart_finds_what_is_to_be_completed_and_gives_the_rest_its_full_time(shell: Shell) -> None:
    who = shell.begin(timeout_ms=500)
    shell.add(who)
    again = Transactions()
    for name, known in shell.room.known.items():
        again.apply(records.encode(name, known), Now(0, 0))
    assert again.resume(Now(9_000, NOW.wall_ms)) == []
    assert again.next_deadline() == 9_500
    shell.end(who, commit=False)
    again = Transactions()
    again.apply(records.encode(ID, shell.room.known[ID]), NOW)
    assert again.resume(NOW) == [ID]
