"""Transactions with an epoch each (`transaction.version` 2, KIP-890): what producers of Java 4 send."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from postroad.broker.transactions.participants import Ending
from postroad.transactions.transaction import EPOCH_MAX, Producer, TransactionState
from postroad.wire.messages import api_versions, end_txn, txn_offset_commit
from tests.broker.harness import Running
from tests.broker.test_transactions import (
    ABORTABLE,
    INVALID_EPOCH,
    INVALID_STATE,
    Worker,
    committed_offset,
    end_of,
    state_of,
)
from tests.clients.wait import until

FENCED, UNKNOWN_ID, TRY_AGAIN = 90, 49, 19
PRODUCE, OFFSETS, END = 12, 5, 5  # the versions that mean it


class Modern(Worker):
    """A producer that adds nothing, and goes on as whom it is told to with each end."""

    def send(self, topic: str, value: bytes = b"x") -> int:
        return self.write(topic, value, PRODUCE)

    def finish(self, commit: bool) -> int:
        code, following = self.ask_end(self.ending(commit))
        if not code:
            self.id, self.epoch = following
            self.sequence = 0
        return code

    def ask_end(self, request: end_txn.EndTxnRequest) -> tuple[int, Producer]:
        answer = self.connection.call(end_txn, END, request)
        return answer.error_code, Producer(answer.producer_id, answer.producer_epoch)

    def send_offset(self, group: str, topic: str, offset: int) -> int:
        answer = self.connection.call(txn_offset_commit, OFFSETS, self.offsets(group, topic, offset))
        return int(answer.topics[0].partitions[0].error_code)


def features_of(running: Running) -> dict[str, int]:
    request = api_versions.ApiVersionsRequest("tests", "1")
    answer = running.call(api_versions, 4, request)
    return {each.name: each.max_version_level for each in answer.finalized_features}


def test_the_feature_is_published_where_transactions_are_on(
    shared: Running, start: Callable[..., Running]
) -> None:
    assert features_of(shared) == {"transaction.version": 2, "postroad.shared.transactions": 1}
    assert features_of(start(kafka_transactions="false")) == {}


def test_what_is_sent_joins_the_transaction_by_itself(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        worker = Modern(connection, topic)
        first = Producer(worker.id, worker.epoch)
        assert [worker.send(topic) for _ in range(2)] == [0, 0]
        assert worker.send_offset(topic, topic, 5) == 0
        assert state_of(shared, topic) == TransactionState.ONGOING.value
        assert end_of(shared, topic) == 0
        assert worker.finish(commit=True) == 0
        assert (worker.id, worker.epoch) == (first.producer_id, first.epoch + 1)
        assert worker.send(topic) == 0, "the next one has begun"
        assert committed_offset(shared, topic, topic, stable=True) == (0, 5)
        assert worker.finish(commit=False) == 0
        assert worker.epoch == first.epoch + 2
    until(lambda: end_of(shared, topic) == 5, "two messages, one that was aborted, and two markers")


def test_a_batch_waits_for_the_markers_of_the_transaction_before(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    running.create("t")
    held: list[Ending] = []
    begin = Ending.begin
    monkeypatch.setattr(Ending, "begin", lambda ending: held.append(ending))
    with running.connect() as connection:
        worker = Modern(connection, "w")
        assert worker.send("t") == 0
        assert worker.finish(commit=True) == 0
        answered = worker.begin_write("t", b"y", PRODUCE)
        until(lambda: running.partition("t").gates, "it waits")
        monkeypatch.setattr(Ending, "begin", begin)
        running.on_loop(held[0].begin)
        assert answered() == 0
        worker.sequence = 1
        assert worker.send("t") == 0
        assert worker.finish(commit=True) == 0
    until(lambda: end_of(running, "t") == 5, "three messages and two markers")


def test_a_batch_that_comes_late_does_not_come_into_the_next_transaction(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        worker = Modern(connection, topic)
        late = Modern(connection, topic + "-other")
        assert worker.send(topic) == 0
        late.id, late.epoch, late.sequence, late.name = worker.id, worker.epoch, 1, worker.name
        assert worker.finish(commit=False) == 0
        until(lambda: end_of(shared, topic) == 2, "the marker is there")
        assert late.send(topic) == INVALID_EPOCH
        assert worker.send(topic) == 0
        assert late.send(topic) == INVALID_EPOCH
        assert late.send_offset(topic, topic, 7) == INVALID_EPOCH
        assert worker.finish(commit=True) == 0


def test_an_end_that_is_repeated_is_answered_again_and_a_late_one_is_refused(
    shared: Running, topic: str
) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        worker = Modern(connection, topic)
        assert worker.send(topic) == 0
        request = worker.ending(commit=True)
        assert worker.finish(commit=True) == 0
        following = Producer(worker.id, worker.epoch)
        assert worker.ask_end(request) == (0, following)
        other = worker.ending(commit=False)
        other.producer_epoch = request.producer_epoch
        assert worker.ask_end(other)[0] == INVALID_STATE, "it was committed"
        assert worker.send(topic) == 0
        assert worker.ask_end(request)[0] == FENCED
        assert state_of(shared, topic) == TransactionState.ONGOING.value
        assert worker.finish(commit=False) == 0


def test_an_abort_of_nothing_raises_the_epoch_and_a_commit_of_nothing_is_refused(
    shared: Running, topic: str
) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        worker = Modern(connection, topic)
        epoch = worker.epoch
        assert worker.finish(commit=True) == INVALID_STATE
        request = worker.ending(commit=False)
        assert worker.finish(commit=False) == 0
        assert worker.epoch == epoch + 1
        assert worker.ask_end(request) == (0, Producer(worker.id, epoch + 1))
        assert worker.send(topic) == 0
        assert worker.finish(commit=True) == 0


@pytest.mark.parametrize("commit", [True, False])
def test_a_producer_whose_epochs_are_used_up_goes_on_with_a_new_id(
    shared: Running, topic: str, commit: bool
) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        worker = Modern(connection, topic)
        set_epoch(shared, worker, EPOCH_MAX)
        assert worker.send(topic) == 0
        assert worker.send_offset(topic, topic, 3) == 0
        before, request = worker.id, worker.ending(commit)
        assert worker.finish(commit) == 0
        assert (worker.id != before, worker.epoch) == (True, 0)
        assert worker.send(topic) == 0, "as soon as it has been told"
        assert committed_offset(shared, topic, topic, stable=True) == (0, 3 if commit else -1)
        assert worker.finish(commit=True) == 0
        assert worker.ask_end(request)[0] == UNKNOWN_ID
    until(lambda: end_of(shared, topic) == 4, "two messages and two markers")


def test_a_fence_at_the_last_epoch_ends_with_a_new_id(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        worker = Modern(connection, topic)
        set_epoch(shared, worker, EPOCH_MAX)
        assert worker.send(topic) == 0
        following = Modern(connection, topic)
        assert (following.id != worker.id, following.epoch) == (True, 0)
        assert worker.finish(commit=True) == UNKNOWN_ID
        assert worker.send(topic) == INVALID_EPOCH
        assert following.send(topic) == 0
        assert following.finish(commit=True) == 0


def test_what_comes_late_of_a_producer_without_own_epochs_opens_nothing(shared: Running, topic: str) -> None:
    """The producer's next transaction has the same epoch: nobody would ever end what this opens."""
    shared.create(topic)
    with shared.connect() as connection:
        worker = Modern(connection, topic)
        assert worker.add(topic) == [0]
        assert worker.write(topic) == 0
        assert worker.end(commit=True) == 0
        until(lambda: end_of(shared, topic) == 2, "the marker is there")
        assert worker.send(topic) == ABORTABLE
        assert worker.send_offset(topic, topic, 5) == ABORTABLE
        assert state_of(shared, topic) == TransactionState.COMPLETE_COMMIT.value
        assert worker.finish(commit=False) == 0, "an abort gives it an epoch of its own"
        assert worker.send(topic) == 0
        assert worker.finish(commit=True) == 0


@pytest.mark.parametrize(("version", "code"), [(9, INVALID_STATE), (10, INVALID_STATE), (11, ABORTABLE)])
def test_clients_that_know_it_hear_that_a_transaction_can_only_be_aborted(
    shared: Running, topic: str, version: int, code: int
) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        assert Worker(connection, topic).write(topic, version=version) == code


def set_epoch(running: Running, worker: Worker, epoch: int) -> None:
    """As if it had been used so often."""
    import msgspec

    coordinator = running.node.transactions.find(worker.name)
    known = coordinator.transactions.known
    known[worker.name] = msgspec.structs.replace(known[worker.name], epoch=epoch)
    worker.epoch = epoch
