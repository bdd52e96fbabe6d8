"""`postroad.retention=acknowledged`: messages go when everybody is done with them, and not before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.testing import Node, node

from .confluent import consumer, send_values
from .conftest import ELSEWHERE, Broker
from .share import REJECT, RELEASE, answer, configure, dead_letters, member, take, work
from .wait import until

pytestmark = pytest.mark.skipif(
    ELSEWHERE is not None, reason="needs a node that looks for old messages often"
)

CHECK_MS = 100
MESSAGES = 500


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    home: Path = tmp_path_factory.mktemp("node")
    with node(config={"storage.retention_check_ms": CHECK_MS}, directory=home) as started:
        yield started


@pytest.fixture
def admin(running: Node) -> AdminClient:
    return AdminClient({"bootstrap.servers": running.bootstrap})


@pytest.fixture
def topic(running: Node, admin: AdminClient, unused_name: str) -> str:
    config = {"postroad.retention": "acknowledged"}
    admin.create_topics([NewTopic(unused_name, 1, 1, config=config)])[unused_name].result(10)
    return unused_name


def subscribe(running: Node, admin: AdminClient, group: str, topic: str) -> None:
    configure(admin, Broker(running.bootstrap, ours=True), group, postroad_topics=topic)


def log_start(source: Consumer, topic: str) -> int:
    return int(source.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[0])


def test_messages_go_when_every_subscription_is_done_with_them(
    running: Node, admin: AdminClient, topic: str, group: str
) -> None:
    quick, slow = f"{group}-quick", f"{group}-slow"
    for subscription in (quick, slow):
        subscribe(running, admin, subscription, topic)
    send_values(running.bootstrap, topic, MESSAGES)
    with consumer(running.bootstrap) as watcher:
        with member(running.bootstrap, quick, topic) as source:
            work(source, MESSAGES)
        with member(running.bootstrap, slow, topic) as source:
            held = take(source)
            answer(source, held[:100])
            until(lambda: log_start(watcher, topic) == 100, "what both are done with is gone")
            answer(source, held[100:], RELEASE)
            work(source, MESSAGES - 100)
        until(lambda: log_start(watcher, topic) == MESSAGES, "everything is gone")


def test_messages_in_between_keep_the_later_ones(
    running: Node, admin: AdminClient, topic: str, group: str
) -> None:
    subscribe(running, admin, group, topic)
    send_values(running.bootstrap, topic, 10)
    with consumer(running.bootstrap) as watcher, member(running.bootstrap, group, topic) as source:
        held = take(source, 10)
        answer(source, held[:3] + held[4:])
        until(lambda: log_start(watcher, topic) == 3, "what lies before the held one is gone")
        answer(source, held[3:4])
        until(lambda: log_start(watcher, topic) == 10, "all is gone")


def test_topic_without_subscriptions_keeps_everything(running: Node, topic: str) -> None:
    send_values(running.bootstrap, topic, 10)
    with consumer(running.bootstrap) as watcher:
        assert not _starts_later(watcher, topic)


def test_dead_letter_is_safe_before_its_message_goes(
    running: Node, admin: AdminClient, topic: str, group: str
) -> None:
    subscribe(running, admin, group, topic)
    send_values(running.bootstrap, topic, 50)
    with consumer(running.bootstrap) as watcher, member(running.bootstrap, group, topic) as source:
        answer(source, take(source, 50), REJECT)
        until(lambda: log_start(watcher, topic) == 50, "all is gone")
        assert len(dead_letters(running.bootstrap, group, 50)) == 50


def test_commits_of_consumer_groups_hold_messages_back_where_they_shall(
    running: Node, admin: AdminClient, unused_name: str, group: str
) -> None:
    topic = f"{unused_name}-with-groups"
    config = {"postroad.retention": "acknowledged", "postroad.retention.groups": "true"}
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(10)
    subscribe(running, admin, group, topic)
    send_values(running.bootstrap, topic, 20)
    with consumer(running.bootstrap, f"{group}-log") as reader:
        reader.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
        with member(running.bootstrap, group, topic) as source:
            work(source, 20)
        until(lambda: log_start(reader, topic) == 5, "what both are done with is gone")
        assert not _starts_later(reader, topic, 5)
        reader.commit(offsets=[TopicPartition(topic, 0, 20)], asynchronous=False)
        until(lambda: log_start(reader, topic) == 20, "all is gone")


def test_topic_without_subscriptions_keeps_what_consumer_groups_have_committed(
    running: Node, admin: AdminClient, unused_name: str, group: str
) -> None:
    config = {"postroad.retention": "acknowledged", "postroad.retention.groups": "true"}
    admin.create_topics([NewTopic(unused_name, 1, 1, config=config)])[unused_name].result(10)
    send_values(running.bootstrap, unused_name, 10)
    with consumer(running.bootstrap, group) as reader:
        reader.commit(offsets=[TopicPartition(unused_name, 0, 10)], asynchronous=False)
        assert not _starts_later(reader, unused_name)


def test_subscription_that_is_deleted_holds_nothing_back(
    running: Node, admin: AdminClient, topic: str, group: str
) -> None:
    stays, goes = f"{group}-stays", f"{group}-goes"
    for subscription in (stays, goes):
        subscribe(running, admin, subscription, topic)
    send_values(running.bootstrap, topic, 20)
    with consumer(running.bootstrap) as watcher:
        with member(running.bootstrap, stays, topic) as source:
            work(source, 20)
        assert not _starts_later(watcher, topic)
        admin.delete_consumer_groups([goes])[goes].result(10)
        until(lambda: log_start(watcher, topic) == 20, "all is gone")


def _starts_later(source: Consumer, topic: str, start: int = 0) -> bool:
    """Whether the log's start moves past `start` within a few looks of the node."""
    time.sleep(4 * CHECK_MS / 1000)
    return log_start(source, topic) > start
