"""Subscriptions that wait for transactions: what they deliver, pass over, tell and keep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postroad.broker.subscriptions.partition_ledgers import LedgerPosition
from postroad.broker.subscriptions.queue import Queue
from postroad.queues.update import Key
from postroad.wire import peek
from postroad.wire.batch import TRANSACTIONAL
from postroad.wire.messages import produce
from postroad.wire.records import Record, encode_batch
from tests.broker.harness import Running, running_node
from tests.broker.test_queues import GROUP, configure
from tests.broker.test_transactions import Worker
from tests.clients.share_session import Error, Fate, Word, one, session
from tests.clients.wait import until
from tests.faults.raw import produce_request

COMMIT, ABORT = True, False


def begin(running: Running, isolation: str = "read_committed", **configs: Any) -> bytes:
    topic_id = running.create("jobs")
    configure(running, share_isolation_level=isolation, postroad_topics="jobs", **configs)
    return topic_id


def transact(running: Running, verdict: bool, *values: bytes, name: str = "worker") -> None:
    """One transaction that writes these values; its marker is below the watermark afterwards."""
    with running.connect() as connection:
        worker = Worker(connection, name)
        assert worker.add("jobs") == [0]
        assert [worker.write("jobs", value) for value in values] == [0] * len(values)
        assert worker.end(verdict) == 0
        partition = running.partition("jobs")
        until(lambda: worker.id not in partition.log.producer_states.open, "the marker is written")
        until(lambda: partition.stable_offset == partition.log.end_offset, "the marker is committed")


def key_of(running: Running) -> Key:
    return Key(GROUP, running.node.image.topics["jobs"].id, 0)


def queue_of(running: Running) -> Queue:
    queue = running.node.subscriptions.queue_in_use(key_of(running))
    assert queue is not None
    return queue


def position(running: Running) -> LedgerPosition:
    found = running.on_loop(lambda: running.node.subscriptions.leaders.position(key_of(running)))
    assert found is not None
    return found


def peeked(running: Running, count: int = 100) -> list[tuple[int, int, str]]:
    request = peek.PeekRequest(GROUP, running.node.image.topics["jobs"].id, 0, -1, count)
    answer = running.call(peek, 0, request)
    assert answer.error_code == 0, answer.error_message
    return [(each.first, each.last, each.state) for each in answer.ranges]


def taken(running: Running, count: int = 1) -> list[bytes | None]:
    """All that a new member gets, which must be so many."""
    found: list[bytes | None] = []
    with session(running.bootstrap, GROUP, "jobs") as member:
        while len(found) < count:
            found += [held.value for held in member.fetch_some().held]
        assert member.fetch().held == []
        return found


def test_an_open_transaction_holds_back_what_lies_behind_it(start: Callable[..., Running]) -> None:
    running = start()
    begin(running)
    running.publish("jobs", b"before")
    with running.connect() as connection, session(running.bootstrap, GROUP, "jobs") as member:
        worker = Worker(connection, "worker")
        assert worker.add("jobs") == [0]
        assert worker.write("jobs", b"open") == 0
        running.publish("jobs", b"behind")
        assert [held.value for held in member.fetch_some().held] == [b"before"]
        assert member.fetch().held == []
        assert position(running).lag == 1
        waits = member.begin_fetch(wait_ms=20_000)
        assert worker.end(COMMIT) == 0
        assert [held.value for held in waits().held] == [b"open", b"behind"], "woken by the marker"


def test_nothing_aborted_is_delivered_and_the_subscription_is_done_with_it(
    start: Callable[..., Running],
) -> None:
    running = start()
    begin(running)
    transact(running, ABORT, b"a", b"b")
    transact(running, COMMIT, b"c", b"d")
    transact(running, ABORT, b"e")
    running.publish("jobs", b"f")
    with session(running.bootstrap, GROUP, "jobs") as member:
        found: list[bytes | None] = []
        while len(found) < 3:
            fetched = member.fetch_some()
            found += [held.value for held in fetched.held]
            assert member.acknowledge(*(one(offset, Fate.ACCEPT) for offset in fetched.offsets)) == Error.NONE
        assert found == [b"c", b"d", b"f"]
        assert member.fetch().held == []
    end = running.partition("jobs").high_watermark
    assert position(running) == (end, 0, 0), "nothing is left to do"
    topic_id = running.node.image.topics["jobs"].id
    assert running.on_loop(lambda: running.node.subscriptions.done_below(topic_id, 0)) == end


def test_other_subscriptions_see_what_is_open_and_what_is_aborted(start: Callable[..., Running]) -> None:
    running = start()
    begin(running, "read_uncommitted")
    transact(running, ABORT, b"a")
    assert taken(running) == [b"a"]


def test_transactions_of_several_producers_are_told_apart(start: Callable[..., Running]) -> None:
    running = start()
    begin(running)
    with running.connect() as one_side, running.connect() as other_side:
        first, second = Worker(one_side, "first"), Worker(other_side, "second")
        for worker in (first, second):
            assert worker.add("jobs") == [0]
        for n in range(6):
            assert (first, second)[n % 2].write("jobs", b"%d" % n) == 0
        assert first.end(ABORT) == 0
        assert second.end(COMMIT) == 0
    partition = running.partition("jobs")
    until(lambda: partition.stable_offset == 8, "both have ended")
    assert taken(running, 3) == [b"1", b"3", b"5"]


def test_a_batch_with_order_and_headers_is_left_out_like_any_other(start: Callable[..., Running]) -> None:
    running = start()
    begin(running, postroad_order="key", postroad_fair_by="tenant")
    transact(running, ABORT, b"a", b"b")
    transact(running, COMMIT, b"c")
    assert taken(running) == [b"c"]


def test_an_aborted_message_makes_nobody_a_duplicate(start: Callable[..., Running]) -> None:
    """What is sent again after an abort carries the same id, and is the first that counts."""
    running = start()
    begin(running, postroad_deduplicate_ms=60_000)
    for verdict in (ABORT, COMMIT, COMMIT):
        with running.connect() as connection:
            worker = Worker(connection, "worker")
            assert worker.add("jobs") == [0]
            record = Record(0, running.began_ms, None, b"x", [("postroad-dedup-id", b"one")])
            request = produce_request("jobs", _in_transaction(record, worker))
            request.transactional_id = worker.name
            answer = connection.call(produce, 9, request)
            assert answer.responses[0].partition_responses[0].error_code == 0
            assert worker.end(verdict) == 0
    until(lambda: running.partition("jobs").stable_offset == 6, "all have ended")
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch_some().offsets == [2]
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch_some().offsets == [2]


def test_a_restart_forgets_nothing_of_transactions(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        begin(running)
        transact(running, ABORT, b"a")
        transact(running, COMMIT, b"b")
        with running.connect() as connection:
            worker = Worker(connection, "left")
            assert worker.add("jobs") == [0]
            assert worker.write("jobs", b"open") == 0
    with running_node(tmp_path) as running:
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert [held.value for held in member.fetch_some().held] == [b"b"]
            assert member.fetch().held == [], "one is open still"
        with running.connect() as connection:
            Worker(connection, "left")  # fences the one before: what it left open is aborted
        until(lambda: running.partition("jobs").stable_offset == 6, "it has ended")
        until(lambda: (2, 2, "available") in peeked(running), "the member before has let go of what it held")
        running.publish("jobs", b"c")
        assert taken(running, 2) == [b"b", b"c"]


def test_a_latest_start_holds_what_is_committed_later(start: Callable[..., Running]) -> None:
    running = start()
    running.create("jobs")
    running.publish("jobs", b"long ago")
    with running.connect() as connection:
        worker = Worker(connection, "worker")
        assert worker.add("jobs") == [0]
        assert worker.write("jobs", b"open") == 0
        given = {"share_isolation_level": "read_committed", "share_auto_offset_reset": "latest"}
        configure(running, **given, postroad_topics="jobs")
        assert worker.end(COMMIT) == 0
    assert taken(running) == [b"open"]


def test_a_peek_shows_neither_what_is_open_nor_what_was_aborted(start: Callable[..., Running]) -> None:
    running = start()
    begin(running)
    transact(running, ABORT, b"a", b"b")
    running.publish("jobs", b"c", b"d")
    with running.connect() as connection:
        worker = Worker(connection, "worker")
        assert worker.add("jobs") == [0]
        assert worker.write("jobs", b"open") == 0
        seen = peeked(running)
        assert [each for each in seen if each[2] != "done"] == [(3, 4, "available")]
        assert worker.end(ABORT) == 0
    until(lambda: running.partition("jobs").stable_offset == 7, "it has ended")
    assert [each for each in peeked(running) if each[2] != "done"] == [(3, 4, "available")]


@pytest.mark.parametrize("released", [True, False])
def test_a_change_to_read_committed_holds_for_what_is_delivered_from_then_on(
    start: Callable[..., Running], released: bool
) -> None:
    """What a consumer held before keeps its place, as with any other change."""
    running = start()
    begin(running, "read_uncommitted")
    transact(running, ABORT, b"a")
    with running.connect() as connection, session(running.bootstrap, GROUP, "jobs") as member:
        worker = Worker(connection, "worker")
        assert worker.add("jobs") == [0]
        assert worker.write("jobs", b"open") == 0
        assert member.fetch_some(1).offsets == [0]
        configure(running, share_isolation_level="read_committed")
        assert member.fetch().held == [], "the other one is open"
        fate = Fate.RELEASE if released else Fate.ACCEPT
        assert member.acknowledge(Word(0, 0, [fate])) == Error.NONE
        assert worker.end(ABORT) == 0
        until(lambda: running.partition("jobs").stable_offset == 4, "it has ended")
        running.publish("jobs", b"plain")
        expected = [b"a", b"plain"] if released else [b"plain"]
        found: list[bytes | None] = []
        while len(found) < len(expected):
            found += [held.value for held in member.fetch_some().held]
        assert found == expected
    running.on_loop(queue_of(running).core.check)


def _in_transaction(record: Record, worker: Worker) -> bytes:
    return bytes(
        encode_batch(
            [record],
            producer_id=worker.id,
            producer_epoch=worker.epoch,
            base_sequence=0,
            attributes=TRANSACTIONAL,
        )
    )
