"""A queue goes on: while its state can't be written, and over what compaction took out of its log."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable

import pytest

from postroad.broker.subscriptions.stretch import Stretch
from postroad.queues.update import Key
from tests.broker.failing_disk import log_of, use_failing_disk
from tests.broker.harness import WAIT_S, Running
from tests.broker.test_queues import (
    GROUP,
    configure,
    publish_with_header,
    refuse_writes_of_state,
)
from tests.clients.share import answer, member, take
from tests.clients.share_session import Error, Fate, Session, one, session
from tests.clients.wait import until
from tests.simulator.simulated_node import SimulatedNode

STORAGE_ERROR = 56


@pytest.mark.parametrize("trouble", ["lock", "expiry"])
def test_state_that_can_not_be_written_is_tried_again_once_a_second(
    start: Callable[..., Running], trouble: str
) -> None:
    running = start(durability_flush="os")
    running.create("jobs")
    configure(running, share_record_lock_duration_ms=100, share_delivery_count_limit=1)
    disk = refuse_writes_of_state(running)
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch().held == []  # now there is a state
        began = time.monotonic()
        disk.fail("append", "", errno.ENOSPC)
        if trouble == "lock":
            running.publish("jobs", b"x")
            assert member.fetch_some().offsets == [0]
        else:
            publish_with_header(running, "jobs", "postroad-expires-at", int(time.time() * 1000) - 1)
        with session(running.bootstrap, GROUP, "jobs") as other:
            while disk.refusals < 2:
                assert other.fetch(wait_ms=100).held == []
                assert time.monotonic() - began < WAIT_S, "it is not tried again"
        assert disk.refusals <= 2 + (time.monotonic() - began)
        disk.heal()
        (ledger,) = running.node.subscriptions.ledgers(GROUP)
        until(lambda: ledger.start == 1, "it is dead, and nobody had to ask")


def test_subscription_goes_on_when_compaction_took_messages_that_were_held(
    start: Callable[..., Running],
) -> None:
    running = start()
    running.create("jobs", cleanup_policy="compact", segment_bytes=2000, min_cleanable_dirty_ratio=0.01)
    configure(running, share_record_lock_duration_ms=600_000, share_delivery_count_limit=0)
    partition = running.partition("jobs")
    with session(running.bootstrap, GROUP, "jobs") as other:
        with session(running.bootstrap, GROUP, "jobs") as holder:
            running.publish("jobs", *[b"old"] * 20)
            held: list[int] = []
            while len(held) < 20:
                held += holder.fetch_some().offsets
            running.publish("jobs", *[b"x" * 500] * 20)  # in the same key: the old ones will go
            later: list[int] = []
            while len(later) < 20:
                fetched = other.fetch_some()
                later += fetched.offsets
                assert other.acknowledge(*[one(offset, Fate.ACCEPT) for offset in fetched.offsets]) == 0
            running.run(running.node.housekeeping.compact(partition))
            found = partition.read(0, 1 << 20)
            assert found is not None
            assert Stretch(found.file.read(found.position, found.length)).first > 20
        running.publish("jobs", b"new")
        assert [held.value for held in other.fetch_some().held] == [b"new"]
        assert other.acknowledge(one(40, Fate.ACCEPT)) == Error.NONE
        (ledger,) = running.node.subscriptions.ledgers(GROUP)

        def nothing_is_left() -> bool:
            """The holder may be missed only now; what it held is passed over when somebody asks."""
            assert other.fetch(wait_ms=20).held == []
            return ledger.start == 41

        until(nothing_is_left, "nothing is left")


def test_delayed_message_goes_out_when_the_clock_says_so_though_it_was_set(
    simulate: Callable[..., SimulatedNode],
) -> None:
    running = simulate()
    running.create("jobs")
    configure(running)
    running.publish("jobs", b"x", postroad_delay_ms=600_000)
    with running.session(GROUP, "jobs") as member:
        assert member.fetch(wait_ms=10_000).held == []
        running.machine.set_clock(3600)
        assert member.fetch_some().offsets == [0]


def test_partition_that_can_not_be_read_keeps_nobody_from_the_others(start: Callable[..., Running]) -> None:
    running = start(durability_flush="os")
    disk = use_failing_disk(running)
    running.create("jobs", 2)
    configure(running, postroad_topics="jobs")
    for index in (0, 1):
        running.publish("jobs", b"%d" % index, partition=index)
    disk.fail("read", log_of(running, "jobs", 0), errno.EIO)
    with member(running.bootstrap, GROUP, "jobs") as worker:
        (message,) = take(worker, 1)
        assert message.value() == b"1"
        answer(worker, [message])
        disk.heal()
        assert [message.value() for message in take(worker, 1)] == [b"0"]


def test_partition_that_can_not_be_read_says_so_and_is_tried_again(start: Callable[..., Running]) -> None:
    running = start(durability_flush="os")
    disk = use_failing_disk(running)
    running.create("jobs")
    configure(running)
    with session(running.bootstrap, GROUP, "jobs") as worker:
        assert worker.fetch().held == []
        running.publish("jobs", b"x")
        began = time.monotonic()
        disk.fail("read", log_of(running, "jobs"), errno.EIO)
        for _ in range(5):
            assert worker.fetch(wait_ms=20).error == STORAGE_ERROR
        assert disk.refusals <= 1 + (time.monotonic() - began), "it is not read each time"
        disk.heal()
        until(lambda: worker.fetch(wait_ms=200).offsets == [0], "it is read again")


def test_partition_says_nothing_more_of_what_it_can_not_read_when_that_is_deleted(
    start: Callable[..., Running],
) -> None:
    running = start(durability_flush="os")
    disk = use_failing_disk(running)
    running.create("jobs")
    configure(running)
    with session(running.bootstrap, GROUP, "jobs") as worker:
        assert worker.fetch().held == []
        running.publish("jobs", b"x")
        disk.fail("read", log_of(running, "jobs"), errno.EIO)
        assert worker.fetch(wait_ms=20).error == STORAGE_ERROR
        running.on_loop(lambda: running.partition("jobs").log.delete_before(1, 1))
        until(lambda: worker.fetch(wait_ms=20).error == Error.NONE, "nothing is left that can't be read")


def test_request_of_a_session_that_was_opened_anew_takes_no_messages(
    simulate: Callable[..., SimulatedNode],
) -> None:
    """The client has another connection, and may never see what is sent on the old one."""
    running = simulate()
    topic_id = running.create("jobs")
    configure(running, postroad_topics="jobs")

    def waiting() -> int:
        queue = running.node.subscriptions.queue_in_use(Key(GROUP, topic_id, 0))
        return 0 if queue is None else len(queue.waiters)

    with running.session(GROUP, "jobs") as lost:
        assert lost.fetch().held == []
        unanswered = lost.begin_fetch(wait_ms=2_000)
        running.until(lambda: waiting() == 1)
        with running.connect() as connection:
            again = Session(connection, GROUP, "jobs", lost.member_id)
            assert again.fetch().held == []
            running.publish("jobs", b"x")
            assert again.fetch_some().offsets == [0]
            assert unanswered().held == []
