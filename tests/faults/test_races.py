"""Clients that create, use and delete one topic at the same time get clear answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import TopicPartition

from postroad.testing import Node
from postroad.wire.messages import create_topics, delete_topics
from tests.clients.confluent import read_from, send_values
from tests.clients.wait import until

from .conftest import create_topic
from .raw import Closed, RawConnection, batch_of, fetch_at, metadata_of, send_batch

RACE_S = 2.0
NAME = "contested"
# none, unknown topic, leader not available, not leader, exists already, storage (the partition is closing)
FAIR = {0, 3, 5, 6, 36, 56}

Step = Callable[[RawConnection], int]


def create(connection: RawConnection) -> int:
    topic = create_topics.CreatableTopic(name=NAME, num_partitions=2, replication_factor=1)
    request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=20_000)
    return connection.call(create_topics, 7, request).topics[0].error_code


def delete(connection: RawConnection) -> int:
    state = delete_topics.DeleteTopicState(name=NAME)
    request = delete_topics.DeleteTopicsRequest(topics=[state], timeout_ms=20_000)
    return connection.call(delete_topics, 6, request).responses[0].error_code


def ask(connection: RawConnection) -> int:
    return metadata_of(connection, NAME, create=True).topics[0].error_code


def publish(connection: RawConnection) -> int:
    return send_batch(connection, NAME, bytes(batch_of(b"value"))).error_code


def fetch(connection: RawConnection) -> int:
    return fetch_at(connection, NAME, 0).error_code


def test_topic_is_created_used_and_deleted_by_many_at_once(own_node: Node) -> None:
    answers: dict[str, set[int]] = {}
    ended: list[str] = []
    deadline = time.monotonic() + RACE_S

    def repeat(step: Step) -> None:
        seen = answers.setdefault(step.__name__, set())
        with RawConnection(own_node.bootstrap) as connection, suppress(Closed):
            while time.monotonic() < deadline:
                seen.add(step(connection))
            ended.append(step.__name__)

    steps: list[Step] = [create, delete, ask, publish, fetch]
    threads = [threading.Thread(target=repeat, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == sorted(step.__name__ for step in steps), (
        f"someone was cut off; answers: {answers}"
    )
    assert set().union(*answers.values()) <= FAIR, answers
    assert "Traceback" not in own_node.log_file.read_text()
    assert_name_is_usable(own_node)


def assert_name_is_usable(running: Node) -> None:
    with RawConnection(running.bootstrap) as connection:
        until(lambda: delete(connection) == 3, "the topic is gone")
    create_topic(running, NAME)
    send_values(running.bootstrap, NAME, 3)
    messages = read_from(running.bootstrap, TopicPartition(NAME, 0, 0), 3)
    assert [message.value() for message in messages] == [b"0", b"1", b"2"]
