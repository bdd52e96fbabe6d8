"""kill -9 in the middle of load: what was acknowledged is there, once, in order; commits too."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from clients.confluent import QUICK_GROUP, consumer, read, send_values
from clients.wait import until
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from postroad.testing import Node, node
from postroad.wire.messages import init_producer_id

from .conftest import create_topic
from .raw import RawConnection

CRASHES = 20
LOAD_S = 1.0  # between two crashes; when in it the crash comes is drawn from a seed
PARTITIONS = 3
PRODUCERS = 2
TOPIC = "load"
GROUP = "bookmarks"
COME_BACK_QUICKLY = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100}


class Load:
    """An idempotent producer that numbers its messages in each partition and notes what was acknowledged."""

    def __init__(self, running: Node, name: str) -> None:
        self.name = name
        self.sent = [0] * PARTITIONS
        self.acknowledged: dict[tuple[int, int], int] = {}  # (partition, number) → offset
        self.refused: list[KafkaError] = []
        self._producer = Producer(
            {
                "bootstrap.servers": running.bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "message.timeout.ms": 120_000,
                "queue.buffering.max.messages": 2000,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                **COME_BACK_QUICKLY,
            }
        )

    def run(self, done: threading.Event) -> None:
        while not done.is_set():
            for partition in range(PARTITIONS):
                self._send(partition)
            self._producer.poll(0.002)
        assert self._producer.flush(60) == 0, "messages were neither acknowledged nor refused"

    def _send(self, partition: int) -> None:
        number = self.sent[partition]
        value = f"{self.name} {number}".encode()
        try:
            self._producer.produce(TOPIC, value, partition=partition, on_delivery=self._delivered)
            self.sent[partition] += 1
        except BufferError:
            self._producer.poll(0.05)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error:
            self.refused.append(error)
        else:
            self.acknowledged[message.partition(), int(message.value().split()[1])] = message.offset()


class Bookmarks:
    """Commits a rising offset again and again, and notes which commits were acknowledged."""

    def __init__(self, running: Node) -> None:
        self.bootstrap = running.bootstrap
        self.tried = self.acknowledged = 0

    def run(self, done: threading.Event) -> None:
        settings = {key.replace(".", "_"): value for key, value in COME_BACK_QUICKLY.items()}
        with consumer(self.bootstrap, GROUP, **settings) as source:
            while not done.is_set():
                self.tried += 1
                try:
                    source.commit(offsets=[TopicPartition(TOPIC, 0, self.tried)], asynchronous=False)
                    self.acknowledged = self.tried
                except KafkaException:
                    time.sleep(0.02)  # the node is down; the next commit tries a higher offset


@contextmanager
def running_threads(*jobs: Any) -> Iterator[None]:
    done = threading.Event()
    errors: list[BaseException] = []

    def guarded(job: Any) -> None:
        try:
            job.run(done)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join(90)
    assert not errors, errors[0]


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
        assert_all_there_once_in_order(running, producers)
        assert bookmarks.acknowledged <= committed(running) <= bookmarks.tried
        assert bookmarks.acknowledged > CRASHES, "the commits were hardly tried"


def committed(running: Node) -> int:
    with consumer(running.bootstrap, GROUP) as source:
        return max(0, source.committed([TopicPartition(TOPIC, 0)], timeout=20)[0].offset)


def assert_all_there_once_in_order(running: Node, producers: list[Load]) -> None:
    stored = {partition: values_of(running, partition) for partition in range(PARTITIONS)}
    for load in producers:
        assert not load.refused, load.refused[0]
        assert len(load.acknowledged) == sum(load.sent)
        assert min(load.sent) > 10 * CRASHES, "there was hardly any load"
        for (partition, number), offset in load.acknowledged.items():
            assert stored[partition][offset] == (load.name, number)
        for partition in range(PARTITIONS):
            numbers = [number for name, number in stored[partition] if name == load.name]
            assert numbers == list(range(load.sent[partition]))


def values_of(running: Node, partition: int) -> list[tuple[str, int]]:
    with consumer(running.bootstrap, check_crcs=True) as source:
        place = TopicPartition(TOPIC, partition, OFFSET_BEGINNING)
        low, high = source.get_watermark_offsets(place, timeout=20)
        assert low == 0
        source.assign([place])
        messages = read(source, high)
    assert [message.offset() for message in messages] == list(range(high))
    pairs = (message.value().decode().split() for message in messages)
    return [(name, int(number)) for name, number in pairs]


def test_subscribed_member_goes_on_after_a_crash(own_node: Node) -> None:
    create_topic(own_node, "followed", 2)
    settings = {key.replace(".", "_"): value for key, value in {**QUICK_GROUP, **COME_BACK_QUICKLY}.items()}
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


def read_through_errors(member: Any, count: int) -> list[Message]:
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
    cluster_id = admin.list_topics(timeout=10).cluster_id
    own_node.kill()
    own_node.start()
    admin = AdminClient({"bootstrap.servers": own_node.bootstrap})
    seen = admin.list_topics(timeout=10)
    assert seen.cluster_id == cluster_id
    assert len(seen.topics["kept"].partitions) == 3
    with consumer(own_node.bootstrap, "keepers") as source:
        (place,) = source.committed([TopicPartition("kept", 0)], timeout=10)
        assert (place.offset, place.metadata) == (4, "why")


def test_deleted_topic_stays_deleted_after_a_crash(own_node: Node) -> None:
    create_topic(own_node, "gone", 2)
    create_topic(own_node, "kept", 2)
    send_values(own_node.bootstrap, "gone", 10)
    admin = AdminClient({"bootstrap.servers": own_node.bootstrap})
    admin.delete_topics(["gone"])["gone"].result(10)
    own_node.kill()
    own_node.start()
    topics = admin.list_topics(timeout=20).topics
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
