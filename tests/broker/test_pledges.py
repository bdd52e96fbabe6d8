"""Messages of a subscription that are accepted in a transaction: done if it commits, back if it does not."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from postroad.broker.partitions import TopicPartition
from postroad.broker.subscriptions.pledges import OFF, open_pledges
from postroad.broker.transactions.coordination import TransactionCoordination
from postroad.broker.transactions.participants import Ending
from postroad.queues.acknowledgement import PLEDGE
from postroad.queues.ledger import Ledger
from postroad.queues.update import Key
from postroad.transactions.transaction import TransactionState
from postroad.wire import share_requests
from postroad.wire.messages import share_acknowledge
from tests.broker.harness import Running, running_node
from tests.broker.test_own_epochs import Modern
from tests.broker.test_queues import GROUP, Owned, acquire_as, configure, refuse_writes_of_state
from tests.broker.test_transactions import INVALID_EPOCH, NOT_AVAILABLE, REFUSED, end_of, state_of
from tests.clients.share_session import Error, Fate
from tests.clients.wait import until
from tests.faults.raw import RawConnection
from tests.simulator.simulated_node import SimulatedNode

COMMIT, ABORT = True, False
ME = "gateway-1"
LOCK_MS = 600_000


def transacting_node(directory: Path) -> AbstractContextManager[Running]:
    return running_node(directory)


class Pledger(Modern):
    """A producer whose transactions also accept what its owner has received."""

    def accept(
        self,
        topic_id: bytes,
        *offsets: int,
        owner: str = ME,
        fate: int = PLEDGE,
        group: str = GROUP,
        call: RawConnection | None = None,
    ) -> int:
        answer = self.ask_accept(topic_id, *offsets, owner=owner, fate=fate, group=group, call=call)
        return int(answer.error_code or answer.responses[0].partitions[0].error_code)

    def ask_accept(
        self,
        topic_id: bytes,
        *offsets: int,
        owner: str = ME,
        fate: int = PLEDGE,
        group: str = GROUP,
        call: RawConnection | None = None,
    ) -> Any:
        batches = [share_acknowledge.AcknowledgementBatch(offset, offset, [fate]) for offset in offsets]
        part = share_acknowledge.AcknowledgePartition(0, batches)
        topics = [share_acknowledge.AcknowledgeTopic(topic_id, [part])]
        asked = share_acknowledge.ShareAcknowledgeRequest(group, "whoever", 7, topics=topics)
        mine = share_requests.InTransaction(self.id, self.epoch, self.name)
        api: Any = Owned(share_acknowledge, owner, transaction=mine)
        return (call or self.connection).call(api, 1, asked)


def begin(running: Running, *values: bytes, **configs: Any) -> bytes:
    """A topic with these messages, and a subscription; returns the topic's id."""
    topic_id = running.create("jobs")
    running.create("done")
    configure(running, postroad_topics="jobs", share_record_lock_duration_ms=LOCK_MS, **configs)
    running.publish("jobs", *(values or (b"a", b"b", b"c")))
    return topic_id


def ledger(running: Running, group: str = GROUP) -> Ledger:
    (found,) = running.node.subscriptions.ledgers(group)
    return found


def pledged(running: Running) -> dict[TopicPartition, dict[int, int]]:
    return running.on_loop(lambda: dict(open_pledges(running.node)))


def test_what_is_accepted_in_a_transaction_is_done_with_its_commit(start: Callable[..., Running]) -> None:
    running = start()
    topic_id = begin(running)
    assert acquire_as(running, topic_id, ME) == [0, 1, 2]
    with running.connect() as connection:
        worker = Pledger(connection, "w")
        assert worker.accept(topic_id, 0, 1) == Error.NONE
        assert state_of(running, "w") == TransactionState.ONGOING.value
        assert worker.send("done", b"result") == 0
        assert ledger(running).start == 0
        assert list(pledged(running)) == [(topic_id, 0)]
        assert worker.finish(COMMIT) == 0
        until(lambda: ledger(running).start == 2, "they are done")
        assert pledged(running) == {}
    until(lambda: end_of(running, "done") == 2, "a result and a marker")
    assert end_of(running, "jobs", isolation=0) == 3, "no marker where nothing was written"
    assert running.node.subscriptions.tally(GROUP).accepted == 2


def test_what_is_accepted_in_a_transaction_comes_again_after_its_abort(start: Callable[..., Running]) -> None:
    running = start()
    topic_id = begin(running)
    assert acquire_as(running, topic_id, ME) == [0, 1, 2]
    with running.connect() as connection:
        worker = Pledger(connection, "w")
        assert worker.accept(topic_id, 0, 2) == Error.NONE
        assert worker.accept(topic_id, 0) == Error.INVALID_RECORD_STATE, "it is no longer held"
        assert worker.finish(ABORT) == 0
        assert acquire_as(running, topic_id, "gateway-2") == [0, 2]
        assert worker.accept(topic_id, 0) == Error.INVALID_RECORD_STATE, "it has somebody else"
        assert worker.accept(topic_id, 1) == Error.NONE
        assert worker.finish(COMMIT) == 0
    until(lambda: list(ledger(running).done) == [(1, 1)], "it is done")


@pytest.mark.parametrize("verdict", [COMMIT, ABORT])
def test_pledges_outlive_the_node_until_their_transaction_ends(tmp_path: Path, verdict: bool) -> None:
    with transacting_node(tmp_path) as running:
        topic_id = begin(running)
        assert acquire_as(running, topic_id, ME) == [0, 1, 2]
        with running.connect() as connection:
            first = Pledger(connection, "w")
            assert first.accept(topic_id, 0, 1) == Error.NONE
    with transacting_node(tmp_path) as running:
        assert acquire_as(running, topic_id, "gateway-2") == [2]
        with running.connect() as connection:
            first.connection = connection
            assert first.finish(verdict) == 0
        if verdict is COMMIT:
            until(lambda: ledger(running).start == 2, "they are done")
        else:
            assert acquire_as(running, topic_id, "gateway-3") == [0, 1]
    with transacting_node(tmp_path) as running:
        assert acquire_as(running, topic_id, "gateway-4") == ([2] if verdict is COMMIT else [0, 1, 2])
        assert pledged(running) == {}


@pytest.mark.parametrize("verdict", [COMMIT, ABORT])
def test_a_verdict_reaches_pledges_though_the_node_stops_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: bool
) -> None:
    with transacting_node(tmp_path) as running, monkeypatch.context() as patch:
        topic_id = begin(running)
        assert acquire_as(running, topic_id, ME) == [0, 1, 2]
        patch.setattr(Ending, "begin", lambda _: None)  # it stops before the verdict is brought to anybody
        with running.connect() as connection:
            worker = Pledger(connection, "w")
            assert worker.accept(topic_id, 0, 1) == Error.NONE
            assert worker.finish(verdict) == 0
        assert pledged(running)
    with transacting_node(tmp_path) as running:
        until(lambda: not pledged(running), "the verdict has come")
        assert acquire_as(running, topic_id, "gateway-2") == ([2] if verdict is COMMIT else [0, 1, 2])


def test_a_new_producer_releases_what_the_one_before_has_pledged(start: Callable[..., Running]) -> None:
    running = start()
    topic_id = begin(running)
    assert acquire_as(running, topic_id, ME) == [0, 1, 2]
    with running.connect() as connection, running.connect() as other:
        worker = Pledger(connection, "w")
        assert worker.accept(topic_id, 0) == Error.NONE
        following = Pledger(other, "w")
        assert acquire_as(running, topic_id, "gateway-2") == [0]
        assert worker.accept(topic_id, 1) == INVALID_EPOCH
        assert following.accept(topic_id, 1) == Error.NONE
        assert following.finish(COMMIT) == 0
    until(lambda: list(ledger(running).done) == [(1, 1)], "it is done")


def test_a_transaction_that_takes_too_long_releases_its_pledges(
    simulate: Callable[..., SimulatedNode],
) -> None:
    running: Any = simulate()
    topic_id = begin(running)
    assert acquire_as(running, topic_id, ME) == [0, 1, 2]
    with running.connect() as connection:
        worker = Pledger(connection, "w", timeout_ms=5_000)
        assert worker.accept(topic_id, 0, 1) == Error.NONE
        running.run_for(4)
        assert pledged(running)
        running.run_for(2)
        assert not pledged(running)
        assert acquire_as(running, topic_id, "gateway-2") == [0, 1]


def test_pledges_that_no_coordinator_knows_are_released(simulate: Callable[..., SimulatedNode]) -> None:
    running: Any = simulate()
    topic_id = begin(running)
    assert acquire_as(running, topic_id, ME) == [0, 1, 2]
    with running.connect() as connection:
        worker = Pledger(connection, "w", timeout_ms=900_000)
        other = Pledger(connection, "other", timeout_ms=900_000)
        assert worker.accept(topic_id, 0, 1) == Error.NONE
        assert other.accept(topic_id, 2) == Error.NONE
        coordinator = running.node.transactions.find("w")
        running.on_loop(lambda: coordinator.transactions.known.pop("w"))  # as if its records were lost
        running.run_for(12)
        assert list(pledged(running)[topic_id, 0]) == [other.id]
        assert acquire_as(running, topic_id, "gateway-2") == [0, 1]


def test_a_pledge_whose_transaction_has_ended_meanwhile_is_refused(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator said that it may, and then that the transaction has ended: nobody would end it."""
    running = start()
    topic_id = begin(running)
    assert acquire_as(running, topic_id, ME) == [0, 1, 2]
    asked, go_on, join = threading.Event(), threading.Event(), TransactionCoordination.join

    async def answer_late(self: TransactionCoordination, *arguments: Any) -> None:
        await join(self, *arguments)
        asked.set()
        await asyncio.to_thread(go_on.wait, 20)

    codes: list[int] = []
    with running.connect() as connection, running.connect() as other:
        worker = Pledger(connection, "w")
        monkeypatch.setattr(TransactionCoordination, "join", answer_late)
        accepting = threading.Thread(target=lambda: codes.append(worker.accept(topic_id, 0, call=other)))
        accepting.start()
        assert asked.wait(10)
        assert worker.finish(COMMIT) == 0
        until(lambda: state_of(running, "w") == TransactionState.COMPLETE_COMMIT.value, "it has ended")
        go_on.set()
        accepting.join(10)
    assert codes == [INVALID_EPOCH]
    assert pledged(running) == {}


def test_an_end_of_an_old_client_ends_pledges_too(start: Callable[..., Running]) -> None:
    """EndTxn before version 5 does not raise the epoch: the pledges have the one of the verdict."""
    running = start()
    topic_id = begin(running)
    assert acquire_as(running, topic_id, ME) == [0, 1, 2]
    with running.connect() as connection:
        worker = Pledger(connection, "w")
        assert worker.accept(topic_id, 0, 1) == Error.NONE
        assert worker.end(COMMIT) == 0
        until(lambda: ledger(running).start == 2, "they are done")
        assert worker.accept(topic_id, 2) not in (Error.NONE, Error.INVALID_RECORD_STATE)
        assert pledged(running) == {}


def test_all_subscriptions_of_a_topic_hear_of_an_end(start: Callable[..., Running]) -> None:
    running = start()
    topic_id = begin(running)
    configure(running, "others", postroad_topics="jobs", share_record_lock_duration_ms=LOCK_MS)
    assert acquire_as(running, topic_id, ME) == [0, 1, 2]
    with running.connect() as connection:
        worker, bystander = Pledger(connection, "w"), Pledger(connection, "bystander")
        assert worker.accept(topic_id, 0) == Error.NONE
        assert bystander.accept(topic_id, 1) == Error.NONE
        assert worker.accept(topic_id, 0, group="others") == Error.INVALID_RECORD_STATE
        assert worker.finish(COMMIT) == 0
        until(lambda: ledger(running).start == 1, "it is done")
        assert list(pledged(running)[topic_id, 0]) == [bystander.id]
        assert ledger(running, "others").start == 0


def test_a_pledge_that_can_not_be_written_is_refused_and_the_lock_stays(
    start: Callable[..., Running],
) -> None:
    running = start(durability_flush="os")
    topic_id = begin(running)
    assert acquire_as(running, topic_id, ME) == [0, 1, 2]
    disk = refuse_writes_of_state(running)
    with running.connect() as connection:
        worker = Pledger(connection, "w")
        disk.fail("append", "", errno.ENOSPC)
        assert worker.accept(topic_id, 0) == NOT_AVAILABLE
        disk.heal()
        assert worker.accept(topic_id, 0) == Error.NONE, "it is held as before"
        assert worker.finish(COMMIT) == 0
        until(lambda: ledger(running).start == 1, "it is done")


@pytest.mark.parametrize("fate", list(Fate))
def test_nothing_but_pledges_is_part_of_a_transaction(shared: Running, topic: str, fate: Fate) -> None:
    topic_id = shared.create(topic)
    configure(shared, topic, postroad_topics=topic)
    with shared.connect() as connection:
        worker = Pledger(connection, topic)
        assert worker.accept(topic_id, 0, fate=fate, group=topic) == Error.INVALID_REQUEST


def test_a_pledge_needs_a_transaction(shared: Running, topic: str) -> None:
    """Nor is it taken for an accept by brokers that know no transactions of this kind."""
    topic_id = shared.create(topic)
    configure(shared, topic, postroad_topics=topic)
    part = share_acknowledge.AcknowledgePartition(0, [share_acknowledge.AcknowledgementBatch(0, 0, [PLEDGE])])
    topics = [share_acknowledge.AcknowledgeTopic(topic_id, [part])]
    asked = share_acknowledge.ShareAcknowledgeRequest(topic, "whoever", 7, topics=topics)
    answer = shared.call(Owned(share_acknowledge, ME), 1, asked)  # type: ignore[arg-type]
    assert answer.responses[0].partitions[0].error_code == Error.INVALID_REQUEST


def test_at_most_once_nothing_is_left_to_accept_in_a_transaction(shared: Running, topic: str) -> None:
    topic_id = shared.create(topic)
    configure(shared, topic, postroad_topics=topic, postroad_delivery="at-most-once")
    with shared.connect() as connection:
        worker = Pledger(connection, topic)
        answer = worker.ask_accept(topic_id, 0, group=topic)
        (refused,) = answer.responses[0].partitions
        assert refused.error_code == Error.INVALID_REQUEST
        assert "at most once" in refused.error_message


def test_without_transactions_the_error_names_the_setting(start: Callable[..., Running]) -> None:
    running = start(kafka_transactions="false")
    topic_id = begin(running)
    with running.connect() as connection:
        worker = Pledger(connection, "w")
        answer = worker.ask_accept(topic_id, 0)
        assert (answer.error_code, answer.error_message) == (REFUSED, OFF)


def test_an_unknown_producer_can_not_pledge(shared: Running, topic: str) -> None:
    topic_id = shared.create(topic)
    configure(shared, topic, postroad_topics=topic)
    with shared.connect() as connection:
        worker = Pledger(connection, topic)
        worker.name = topic + "-never-seen"
        assert worker.accept(topic_id, 0, group=topic) == 49
        worker.name = ""
        assert worker.accept(topic_id, 0, group=topic) == Error.INVALID_REQUEST


def test_a_key_waits_for_its_pledged_message_over_a_restart(tmp_path: Path) -> None:
    with transacting_node(tmp_path) as running:
        topic_id = begin(running, postroad_order="partition")
        assert acquire_as(running, topic_id, ME) == [0]
        with running.connect() as connection:
            worker = Pledger(connection, "w")
            assert worker.accept(topic_id, 0) == Error.NONE
    with transacting_node(tmp_path) as running:
        queue = running.on_loop(lambda: running.node.subscriptions.open_queue(Key(GROUP, topic_id, 0)))
        assert queue is not None
        with running.session(GROUP, "jobs") as member:
            assert member.fetch(wait_ms=50).held == []
            with running.connect() as connection:
                worker.connection = connection
                assert worker.finish(COMMIT) == 0
            assert until(lambda: member.fetch(wait_ms=500).offsets, "the next of the line") == [1]
