"""kill -9 in the middle of load: what was acknowledged is there, once, in order; commits too."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from postroad.testing import Node, node
from postroad.wire.messages import init_producer_id
from tests.clients.confluent import QUICK_GROUP, consumer, send_values
from tests.clients.wait import until

from .conftest import create_topic
from .load import (
    COME_BACK_QUICKLY,
    PARTITIONS,
    TOPIC,
    Bookmarks,
    Load,
    assert_all_there_once_in_order,
    committed,
    running_threads,
)
from .raw import RawConnection

CRASHES = 20
LOAD_S = 0.6  # between two crashes; when in it the crash comes is drawn from a seed
PRODUCERS = 2


@pytest.mark.slow
def test_twenty_crashes_lose_nothing_repeat_nothing_and_keep_the_order(tmp_path: Path) -> None:
    random_ = random.Random(9)
    with node(directory=tmp_path) as running:
        create_topic(running, TOPIC, PARTITIONS, **{"segment.bytes": 1_000_000})
        producers = [Load(running, f"producer-{number}") for number in range(PRODUCERS)]
        bookmarks = Bookmarks(running)
        with running_threads(*producers, bookmarks):
            for _ in range(CRASHES):
                time.sleep(LOAD_S * (0.5 + random_.random() / 2))
                running.kill()
                acknowledged_before = bookmarks.acknowledged
                running.start()
                assert committed(running) >= acknowledged_before
        assert_all_there_once_in_order(running, producers, sent_min=10 * CRASHES)
        assert bookmarks.acknowledged <= committed(running) <= bookmarks.tried
        assert bookmarks.acknowledged > CRASHES, "the commits were hardly tried"


def test_subscribed_member_goes_on_after_a_crash(own_node: Node) -> None:
    create_topic(own_node, "followed", 2)
    settings = {key.replace(".", "_"): value for key, value in {**QUICK_GROUP, **COME_BACK_QUICKLY}.items()}
    settings["session_timeout_ms"] = 30_000  # it is away for a moment, never for good
    with consumer(own_node.bootstrap, "followers", **settings) as member:
        member.subscribe(["followed"])
        for round_number in range(3):
            for partition in range(2):
                send_values(own_node.bootstrap, "followed", 50, partition)
            assert len(read_through_errors(member, 100)) == 100
            member.commit(asynchronous=False)
            if round_number < 2:
                own_node.kill()
                own_node.start()


def read_through_errors(member: Consumer, count: int) -> list[Message]:
    """While the node is away librdkafka reports errors; they are no messages and pass by."""
    seen: list[Message] = []

    def enough() -> bool:
        seen.extend(message for message in member.consume(count, 0.2) if not message.error())
        return len(seen) >= count

    until(enough, f"{count} messages")
    return seen


def test_topics_configs_and_groups_survive_a_crash(own_node: Node) -> None:
    create_topic(own_node, "kept", 3, **{"retention.ms": 123456})
    send_values(own_node.bootstrap, "kept", 5)
    with consumer(own_node.bootstrap, "keepers") as source:
        source.commit(offsets=[TopicPartition("kept", 0, 4, metadata="why")], asynchronous=False)
    admin = AdminClient({"bootstrap.servers": own_node.bootstrap})
    cluster_id = admin.list_topics(timeout=30).cluster_id
    own_node.kill()
    own_node.start()
    admin = AdminClient({"bootstrap.servers": own_node.bootstrap})
    seen = admin.list_topics(timeout=30)
    assert seen.cluster_id == cluster_id
    assert len(seen.topics["kept"].partitions) == 3
    with consumer(own_node.bootstrap, "keepers") as source:
        (place,) = source.committed([TopicPartition("kept", 0)], timeout=30)
        assert (place.offset, place.metadata) == (4, "why")


def test_deleted_topic_stays_deleted_after_a_crash(own_node: Node) -> None:
    create_topic(own_node, "gone", 2)
    create_topic(own_node, "kept", 2)
    send_values(own_node.bootstrap, "gone", 10)
    admin = AdminClient({"bootstrap.servers": own_node.bootstrap})
    admin.delete_topics(["gone"])["gone"].result(30)
    own_node.kill()
    own_node.start()
    topics = AdminClient({"bootstrap.servers": own_node.bootstrap}).list_topics(timeout=30).topics
    assert "gone" not in topics
    assert "kept" in topics


def test_producer_ids_are_never_given_twice(own_node: Node) -> None:
    given = [_new_producer_id(own_node) for _ in range(5)]
    own_node.kill()
    own_node.start()
    given += [_new_producer_id(own_node) for _ in range(5)]
    own_node.restart()
    given += [_new_producer_id(own_node) for _ in range(5)]
    assert len(set(given)) == 15


def _new_producer_id(running: Node) -> int:
    with RawConnection(running.bootstrap) as connection:
        asked = init_producer_id.InitProducerIdRequest(transaction_timeout_ms=1000)
        answer = connection.call(init_producer_id, 4, asked)
    assert answer.error_code == 0
    return int(answer.producer_id)
