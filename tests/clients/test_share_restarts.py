"""Subscriptions over restarts of the node: what is settled stays settled, all else is delivered again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, ShareConsumer
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.testing import Node, node

from .confluent import send_values
from .conftest import ELSEWHERE, Broker
from .share import (
    ACCEPT,
    REJECT,
    RELEASE,
    answer,
    assert_nothing_before,
    configure,
    dead_letters,
    deliveries,
    member,
    offsets,
    send_singly,
    take,
    work,
)
from .wait import until

pytestmark = pytest.mark.skipif(ELSEWHERE is not None, reason="restarts a node of its own")

GROUP, TOPIC = "workers", "jobs"
COME_BACK_QUICKLY = {"reconnect_backoff_ms": 10, "reconnect_backoff_max_ms": 100}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Node]:
    """A node with a topic of one partition and a subscription."""
    with node(directory=tmp_path) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(10)
        configure(admin, _broker(started), GROUP)
        yield started


def _broker(running: Node) -> Broker:
    return Broker(running.bootstrap, ours=True)


@pytest.mark.parametrize("crash", [False, True], ids=["stop", "kill"])
def test_s4_accepted_message_is_never_delivered_again(running: Node, crash: bool) -> None:
    send_values(running.bootstrap, TOPIC, 100)
    with member(running.bootstrap, GROUP, TOPIC) as source:
        held = take(source, 100)
        answer(source, [message for message in held if message.offset() % 3])
        if crash:
            running.kill()  # while the rest is held, and nothing told the node to write its state
            running.start()
    if not crash:
        running.restart()
    with member(running.bootstrap, GROUP, TOPIC) as source:
        again = work(source, 34)
        assert sorted(offsets(again)) == list(range(0, 100, 3))
        assert_nothing_before(_broker(running), source, TOPIC)


def test_delivery_counts_survive_a_crash(running: Node) -> None:
    send_singly(running.bootstrap, TOPIC, 1)
    with member(running.bootstrap, GROUP, TOPIC) as source:
        for _ in range(2):
            answer(source, take(source, 1), RELEASE)
    running.kill()
    running.start()
    with member(running.bootstrap, GROUP, TOPIC) as source:
        (message,) = take(source, 1)
        assert message.delivery_count() == 3
        answer(source, [message])


def test_rejected_message_does_not_come_back_after_a_crash_and_its_dead_letter_is_there(
    running: Node,
) -> None:
    send_values(running.bootstrap, TOPIC, 10)
    with member(running.bootstrap, GROUP, TOPIC) as source:
        answer(source, take(source, 10), REJECT)
    running.kill()
    running.start()
    with member(running.bootstrap, GROUP, TOPIC) as source:
        assert_nothing_before(_broker(running), source, TOPIC)
    assert {letter.value() for letter in dead_letters(running.bootstrap, GROUP, 10)} == {
        b"%d" % number for number in range(10)
    }


@pytest.mark.slow
@pytest.mark.parametrize("crash", [False, True], ids=["stop", "kill"])
def test_members_go_on_after_the_node_was_away(running: Node, crash: bool) -> None:
    with member(running.bootstrap, GROUP, TOPIC, **COME_BACK_QUICKLY) as source:
        for round_number in range(3):
            if crash and round_number:
                running.kill()
                running.start()
            elif round_number:
                running.restart()
            send_values(running.bootstrap, TOPIC, 50)
            _work_through_errors(source, range(50 * round_number, 50 * (round_number + 1)))


def _work_through_errors(source: ShareConsumer, wanted: range) -> None:
    """Accepts these offsets; no others may come. While the node is away polls and commits may fail."""
    accepted: set[int] = set()

    def done() -> bool:
        try:
            messages = [message for message in source.poll(0.2) if not message.error()]
            for message in messages:
                source.acknowledge(message, ACCEPT)
            assert set(offsets(messages)) <= set(wanted)
            refused = [error for error in source.commit_sync(10).values() if error is not None]
        except KafkaException:
            return False
        if not refused:
            accepted.update(offsets(messages))
        return accepted == set(wanted)

    until(done, f"all messages of {wanted}")


def test_messages_held_when_the_node_crashed_are_delivered_again_before_their_locks_would_have_ended(
    running: Node,
) -> None:
    send_singly(running.bootstrap, TOPIC, 5)
    with member(running.bootstrap, GROUP, TOPIC, **COME_BACK_QUICKLY) as before:
        take(before, 5)
        running.kill()
        running.start()
        with member(running.bootstrap, GROUP, TOPIC) as after:
            seen = work(after, 5, patience_s=20)  # the lock lasts 30 s
            assert sorted(offsets(seen)) == list(range(5))
            assert set(deliveries(seen)) <= {1, 2}
