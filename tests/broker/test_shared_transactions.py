"""Several producers in one transaction, as the wire sees them: who may write, and who may end it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import pytest

from postroad.broker.transactions.participants import MARKERS_A_TURN, Ending
from postroad.errors import (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTransactionState,
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
)
from postroad.transactions.transaction import Producer, TransactionState
from postroad.wire import shared_transactions as codec
from postroad.wire.messages import find_coordinator
from tests.broker.harness import Running
from tests.broker.test_own_epochs import Modern, features_of
from tests.broker.test_transactions import READ_COMMITTED, committed_offset, end_of, state_of
from tests.clients.wait import until
from tests.faults.raw import RawConnection

TASKS = 3 * MARKERS_A_TURN


class Task(Modern):
    """One of the producers in a transaction."""

    def __init__(self, connection: RawConnection, name: str, run: str = "run", batch: int = 0) -> None:
        self.connection = connection
        self.name = name
        connection.call(find_coordinator, 4, find_coordinator.FindCoordinatorRequest("", 1, [name]))
        answer = connection.call(codec, 0, codec.Enter(name, run, batch, 60_000))
        self.error, self.is_done = answer.error_code, answer.is_done
        self.id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequence = 0

    @property
    def who(self) -> tuple[int, int]:
        return self.id, self.epoch

    def finish_run(self, kept: Sequence[tuple[int, int]] | None, run: str = "run", batch: int = 0) -> int:
        order = codec.Finish(self.name, run, batch, None if kept is None else list(kept))
        return int(self.connection.call(codec, 0, order).error_code)


def test_what_is_kept_appears_and_the_rest_never(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        kept, failed = Task(connection, topic), Task(connection, topic)
        assert [kept.send(topic, b"a"), failed.send(topic, b"b"), kept.send(topic, b"c")] == [0, 0, 0]
        assert end_of(shared, topic) == 0
        assert kept.finish_run([kept.who]) == 0
        until(lambda: end_of(shared, topic) == 5, "three messages and two markers")
        assert aborted(shared, topic) == [failed.id]
        assert kept.finish_run([kept.who]) == 0, "its answer was lost"
        assert Task(connection, topic, "again").is_done
        for late in (kept, failed):
            assert late.send(topic) == InvalidProducerEpoch.code


def test_the_end_of_a_large_job_holds_up_nobody_for_long(shared: Running, topic: str) -> None:
    """Each task has a marker in each partition; others get their turn after some of them."""
    shared.create(topic)
    log, loop, ends = shared.partition(topic).log, shared.node.loop, [0]

    def look() -> None:
        ends.append(log.end_offset)
        if ends[-1] < 1 + TASKS:
            loop.call_soon(look)

    with shared.connect() as connection:
        tasks = [Task(connection, topic) for _ in range(TASKS)]
        assert tasks[0].send(topic) == 0
        shared.on_loop(look)
        assert tasks[0].finish_run([task.who for task in tasks]) == 0
        until(lambda: end_of(shared, topic) == 1 + TASKS, "a message and the markers")
    until(lambda: ends[-1] == 1 + TASKS, "all of it was looked at")
    assert max(after - before for before, after in pairwise(ends)) <= MARKERS_A_TURN


def aborted(running: Running, topic: str) -> list[int]:
    log = running.partition(topic).log
    return [each.producer_id for each in log.aborted(0, log.end_offset)]


def test_nobody_who_has_not_entered_writes_or_ends_it(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        task, stranger = Task(connection, topic), Task(connection, topic + "-other")
        assert task.send(topic) == 0
        stranger.name = topic
        assert stranger.send(topic) == InvalidProducerIdMapping.code
        known = shared.node.transactions.find(topic).transactions.known[topic]
        stranger.id, stranger.epoch = known.producer_id, known.epoch
        assert stranger.send(topic) == InvalidProducerEpoch.code
        assert stranger.ask_end(stranger.ending(commit=True))[0] == ProducerFenced.code
        assert task.ask_end(task.ending(commit=True))[0] == InvalidTransactionState.code
        assert task.finish_run([(task.id, task.epoch), (1, 0)]) == InvalidTransactionState.code
        assert task.finish_run([task.who], run="another") == ProducerFenced.code
        assert state_of(shared, topic) == TransactionState.ONGOING.value
        assert task.finish_run(None) == 0


def test_offsets_of_a_task_count_with_what_it_wrote(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        kept, failed = Task(connection, topic), Task(connection, topic)
        assert kept.send_offset(f"{topic}-kept", topic, 5) == 0
        assert failed.send_offset(f"{topic}-failed", topic, 5) == 0
        assert kept.finish_run([kept.who]) == 0
        until(lambda: committed_offset(shared, f"{topic}-kept", topic, stable=True) == (0, 5), "it counts")
        until(
            lambda: committed_offset(shared, f"{topic}-failed", topic, stable=True) == (0, -1), "it doesn't"
        )


def test_its_producers_are_known_as_those_of_an_open_transaction(shared: Running, topic: str) -> None:
    """Else they would be taken for hanging ones and be aborted (`broker.transactions.hanging`)."""
    shared.create(topic)
    with shared.connect() as connection:
        tasks = [Task(connection, topic) for _ in range(3)]
        assert [task.send(topic) for task in tasks] == [0, 0, 0]
        where = shared.partition(topic).topic_id, 0
        coordinators = list(shared.node.transactions._topic.states)
        ids = [task.id for task in tasks]
        assert sorted(shared.node.transactions.transactions_at(coordinators, ids, where)) == sorted(ids)
        assert tasks[0].finish_run(None) == 0


def test_a_run_that_begins_waits_until_the_one_before_has_ended(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    running.create("t")
    held: list[Ending] = []
    begin = Ending.begin
    monkeypatch.setattr(Ending, "begin", lambda ending: held.append(ending))
    with running.connect() as connection, running.connect() as other:
        tasks = [Task(connection, "job") for _ in range(2)]
        assert [task.send("t") for task in tasks] == [0, 0]
        assert tasks[0].finish_run([tasks[0].who]) == 0
        answered = other.begin(codec, 0, codec.Enter("job", "next", 1, 60_000))
        until(lambda: len(held) == 2, "a verdict for each producer")
        running.on_loop(partial(begin, held[0]))
        assert running.node.transactions.find("job").transactions.known["job"].is_shared
        running.on_loop(partial(begin, held[1]))
        monkeypatch.setattr(Ending, "begin", begin)
        following = answered()
        assert Producer(following.producer_id, following.producer_epoch) == (tasks[0].id, tasks[0].epoch + 1)


@pytest.mark.parametrize("committed", [True, False])
def test_a_node_that_stopped_behind_a_verdict_brings_it_to_its_end_when_it_is_back(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    running = start()
    running.create("t")
    with monkeypatch.context() as patch, running.connect() as connection:
        patch.setattr(Ending, "begin", lambda ending: None)
        tasks = [Task(connection, "job") for _ in range(3)]
        assert [task.send("t") for task in tasks] == [0, 0, 0]
        assert tasks[0].finish_run([task.who for task in tasks[:2]] if committed else None) == 0
        running.stop()
    running.start()
    until(lambda: end_of(running, "t", READ_COMMITTED) == 6, "three messages and three markers")
    ids = [task.id for task in tasks]
    assert sorted(aborted(running, "t")) == sorted(ids[2:] if committed else ids)
    with running.connect() as connection:
        assert Task(connection, "job", "again").is_done == committed


def test_a_request_that_waited_too_long_behind_the_run_before_is_told_so(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the run before aborted, and its markers don't come to an end."""
    monkeypatch.setattr("postroad.broker.transactions.coordinator.WAIT_S", 0.2)
    running = start()
    running.create("t")
    with monkeypatch.context() as patch, running.connect() as connection:
        patch.setattr(Ending, "begin", lambda ending: None)
        assert Task(connection, "job").send("t") == 0
        late = Task(connection, "job", "next")
        assert late.error == 51


def test_where_transactions_are_off_there_are_none(start: Callable[..., Running]) -> None:
    running = start(kafka_transactions="false")
    assert features_of(running) == {}
    with running.connect() as connection:
        assert Task(connection, "job").error == TransactionalIdAuthorizationFailed.code
