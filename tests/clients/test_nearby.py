"""Consumers that name their rack read from the replica there (KIP-392): confluent-kafka on three nodes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPartition

from postroad.spark.cluster import Cluster as SparkCluster
from postroad.testing import RunningCluster, cluster
from postroad.testing.process import Setting
from postroad.wire import batch as batches
from postroad.wire.records import decode_records

TOPIC = "orders"
WITHIN_S = 60.0


@pytest.fixture(scope="module")
def running() -> Iterator[RunningCluster]:
    settings: dict[str, Setting] = {"topics.replicas": 3, "node.rack": "rack-{node}"}
    with cluster(nodes=3, settings=settings) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, replica_assignment=[[1, 2, 3]])])[TOPIC].result(60)
        yield started


class RackConsumer:
    """A consumer of the topic from its beginning, which knows which node it fetches from."""

    def __init__(self, running: RunningCluster, rack: str) -> None:
        self.source = 0
        self.values: list[str] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": running.bootstrap,
                "group.id": "nobody",
                "client.rack": rack,
                "statistics.interval.ms": 100,
                "stats_cb": self._note,
                "check.crcs": True,
            }
        )
        self._consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])

    def _note(self, text: str) -> None:
        partitions: dict[str, Any] = json.loads(text)["topics"].get(TOPIC, {}).get("partitions", {})
        self.source = partitions.get("0", {}).get("broker", 0)

    def read(self, count: int) -> list[str]:
        """Read on until so many have come in all. Each comes at the next offset."""
        deadline = time.monotonic() + WITHIN_S
        while len(self.values) < count:
            assert time.monotonic() < deadline, f"{len(self.values)} of {count}, from node {self.source}"
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                assert message.offset() == len(self.values), "a gap, or a step back"
                self.values.append(message.value().decode())
        return self.values

    def wait_for_source(self, node: int) -> None:
        deadline = time.monotonic() + WITHIN_S
        while self.source != node:
            assert time.monotonic() < deadline, f"it reads from node {self.source}"
            self._consumer.poll(0.05)

    def close(self) -> None:
        self._consumer.close()


def publish(running: RunningCluster, first: int, count: int) -> list[str]:
    producer = Producer({"bootstrap.servers": running.bootstrap, "linger.ms": 1})
    values = [f"message {number}" for number in range(first, first + count)]
    for value in values:
        producer.produce(TOPIC, value)
        producer.poll(0)
    assert producer.flush(60) == 0
    return values


def test_a_consumer_reads_from_its_rack_and_goes_on_when_that_node_dies(running: RunningCluster) -> None:
    wanted = publish(running, 0, 200)
    consumer, at_leader, elsewhere = (RackConsumer(running, rack) for rack in ("rack-3", "rack-1", "rack-9"))
    try:
        for each, node in ((consumer, 3), (at_leader, 1), (elsewhere, 1)):
            assert each.read(200) == wanted
            each.wait_for_source(node)
        wanted += publish(running, 200, 50)
        assert consumer.read(250) == wanted
        running.node(3).kill()
        wanted += publish(running, 250, 50)
        assert consumer.read(300) == wanted
        running.node(3).start()
        running.wait_until_whole()
        wanted += publish(running, 300, 50)
        assert consumer.read(350) == wanted
        assert at_leader.read(350) == elsewhere.read(350) == wanted
    finally:
        for each in (consumer, at_leader, elsewhere):
            each.close()


def test_what_is_committed_reaches_a_consumer_at_a_follower_at_once(running: RunningCluster) -> None:
    consumer = RackConsumer(running, "rack-2")
    try:
        found = len(publish(running, 0, 1)) + end_of(running) - 1
        consumer.read(found)
        consumer.wait_for_source(2)
        waits = []
        for number in range(20):
            publish(running, number, 1)
            began = time.monotonic()
            consumer.read(found + number + 1)
            waits.append(time.monotonic() - began)
        assert sorted(waits)[10] < 0.25, "as long as a follower's poll without news"
    finally:
        consumer.close()


def test_kafka_python_reads_all_of_it_in_its_rack(running: RunningCluster) -> None:
    publish(running, 0, 100)
    end = end_of(running)
    consumer = KafkaConsumer(
        bootstrap_servers=running.bootstrap, client_rack="rack-2", auto_offset_reset="earliest"
    )
    try:
        consumer.assign([KafkaPartition(TOPIC, 0)])
        consumer.seek_to_beginning()
        deadline = time.monotonic() + WITHIN_S
        offsets: list[int] = []
        while len(offsets) < end:
            assert time.monotonic() < deadline, f"{len(offsets)} of {end}"
            for records in consumer.poll(200).values():
                offsets += [record.offset for record in records]
        assert offsets == list(range(end))
    finally:
        consumer.close()


def test_executors_of_spark_read_in_their_rack_and_go_on_without_it(running: RunningCluster) -> None:
    publish(running, 0, 100)
    with SparkCluster(running.bootstrap, rack="rack-3") as source:
        assert read_by_spark(source) == end_of(running)
        assert source.near.nodes == {3}
        running.node(3).kill()
        publish(running, 100, 50)
        assert read_by_spark(source) == end_of(running)
    running.node(3).start()
    running.wait_until_whole()


def read_by_spark(source: SparkCluster) -> int:
    """Read from the first offset to the end, without a gap; returns how many messages came."""
    where = (TOPIC, 0)
    end, offset, records = source.latest([where])[where], 0, 0
    while offset < end:
        fetched = source.fetch(where, offset)
        for at, header in batches.walk(fetched.data):
            assert header.base_offset == records, "a gap, or a step back"
            records += len(decode_records(fetched.data[at : at + header.size]))
        offset = fetched.next_offset
    return records


def end_of(running: RunningCluster) -> int:
    consumer = Consumer({"bootstrap.servers": running.bootstrap, "group.id": "nobody"})
    try:
        end: int = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=60)[1]
        return end
    finally:
        consumer.close()
