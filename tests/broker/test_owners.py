"""What can't be had in an owner's name: messages that were never delivered, and locks without an end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from postroad.broker.subscriptions.queue import Queue
from postroad.errors import ApiError
from tests.broker.harness import Running, running_node
from tests.broker.test_queues import GROUP, acquire_as, configure, publish_together, settle_as
from tests.clients.share_session import Error, Fate
from tests.clients.wait import until

HOURS_12 = 12 * 3_600_000
DAY = 2 * HOURS_12


def queue_of(running: Running, topic_id: bytes) -> Queue:
    queue = running.node.subscriptions.queue(GROUP, topic_id, 0)
    assert queue is not None
    return queue


def test_message_that_nobody_received_is_not_settled_by_who_made_up_an_owner(
    start: Callable[..., Running],
) -> None:
    running = start()
    topic_id = running.create("jobs")
    configure(running, postroad_topics="jobs")
    publish_together(running, "jobs", 9)
    for offset in range(9):
        assert settle_as(running, topic_id, "nobody", offset) == Error.INVALID_RECORD_STATE
    assert queue_of(running, topic_id).core.start == 0
    assert acquire_as(running, topic_id, "somebody") == list(range(9))


def test_accept_of_what_was_received_before_a_seek_is_refused(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        topic_id = running.create("jobs")
        configure(running, share_record_lock_duration_ms=600_000)
        running.publish("jobs", b"a", b"b")
        assert acquire_as(running, topic_id, "gateway-1") == [0, 1]
    with running_node(tmp_path) as running:
        assert settle_as(running, topic_id, "gateway-1", 0) == Error.NONE
        queue = queue_of(running, topic_id)
        answers: list[ApiError | None] = []
        running.on_loop(lambda: queue.reset(0, answers.append))
        until(lambda: answers == [None], "the seek is written")
        assert settle_as(running, topic_id, "gateway-1", 1) == Error.INVALID_RECORD_STATE
        assert acquire_as(running, topic_id, "gateway-2") == [0, 1]


def test_no_request_locks_a_message_for_more_than_12_hours_or_delays_it_for_more_than_a_day(
    start: Callable[..., Running],
) -> None:
    running = start()
    topic_id = running.create("jobs")
    configure(running)
    running.publish("jobs", b"a")
    assert acquire_as(running, topic_id, "gateway-1", lock_ms=2**31 - 1) == [0]
    assert ms_to_deadline(running, topic_id) <= HOURS_12
    assert settle_as(running, topic_id, "gateway-1", 0, Fate.RELEASE, delay_ms=2**31 - 1) == Error.NONE
    assert queue_of(running, topic_id).core.delayed == 1
    assert ms_to_deadline(running, topic_id) <= DAY


def ms_to_deadline(running: Running, topic_id: bytes) -> int:
    deadline = queue_of(running, topic_id).core.next_deadline()
    assert deadline is not None
    return int(deadline - running.node.clock.now().ms)
