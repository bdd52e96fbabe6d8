"""A topic gets more partitions under load: its queue has them, on all nodes, and keys keep their order."""

from __future__ import annotations

import threading
import time
from collections import defaultdict

from click.testing import CliRunner
from confluent_kafka import KafkaError, Message, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient

from postroad.cli import main
from postroad.testing import RunningCluster, cluster

from .share import ACCEPT, configure_group, member
from .wait import until

TOPIC, GROUP = "jobs", "workers"
KEYS = 60
MEMBERS = 3
PATIENCE_S = 60.0


class KeyedLoad:
    """Numbered messages under a few keys; the client hears soon of new partitions."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: dict[int, int] = {}  # number → partition
        self.refused: list[KafkaError] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "topic.metadata.refresh.interval.ms": 200,
            }
        )

    def run(self, done: threading.Event) -> None:
        number = 0
        while not done.is_set():
            key = f"key {number % KEYS}"
            self._producer.produce(TOPIC, str(number), key, on_delivery=self._delivered)
            self._producer.poll(0.002)
            number += 1
        assert self._producer.flush(60) == 0

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error:
            self.refused.append(error)
        else:
            self.acknowledged[int(message.value())] = message.partition()


class Worker:
    """Accepts all that it gets, and notes it in order."""

    def __init__(self, source: ShareConsumer) -> None:
        self.got: list[tuple[int, int, bytes, int]] = []  # partition, offset, key, number
        self._source = source

    def run(self, done: threading.Event) -> None:
        while not done.is_set():
            for message in self._source.poll(0.2):
                assert message.error() is None, message.error()
                self._source.acknowledge(message, ACCEPT)
                where = message.partition(), message.offset()
                self.got.append((*where, message.key(), int(message.value())))
        self._source.commit_sync()


def test_a_queue_has_new_partitions_under_load_and_every_node_serves_it() -> None:
    with cluster(nodes=3, settings={"topics.replicas": 3}) as running:
        call(running, "topic", "create", TOPIC, "--partitions", "1")
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        configure_group(admin, GROUP, share_auto_offset_reset="earliest", share_heartbeat_interval_ms=100)
        load = KeyedLoad(running.bootstrap)
        sources = [member(running.bootstrap, GROUP, TOPIC) for _ in range(MEMBERS)]
        opened = [source.__enter__() for source in sources]
        workers = [Worker(source) for source in opened]
        filling, working = threading.Event(), threading.Event()
        threads = [threading.Thread(target=load.run, args=(filling,))]
        threads += [threading.Thread(target=worker.run, args=(working,)) for worker in workers]
        for thread in threads:
            thread.start()
        try:
            until(lambda: count(workers) > 100, "the queue is served", PATIENCE_S)
            call(running, "topic", "alter", TOPIC, "--partitions", "6")
            until(lambda: len(set(load.acknowledged.values())) == 6, "all partitions are used", PATIENCE_S)
            time.sleep(1.0)
            filling.set()
            threads[0].join(90)
            until(lambda: count(workers) >= len(load.acknowledged), "all were accepted", PATIENCE_S)
        finally:
            filling.set()
            working.set()
            for thread in threads:
                thread.join(90)
            for source in sources:
                source.__exit__(None, None, None)
        assert load.refused == []
        got = [each for worker in workers for each in worker.got]
        assert sorted(number for *_, number in got) == sorted(load.acknowledged), "each once"
        leaders = {running.leader(TOPIC, index).id for index in range(6)}
        assert leaders == {1, 2, 3}
        assert_keys_keep_their_order(got)


def count(workers: list[Worker]) -> int:
    return sum(len(worker.got) for worker in workers)


def assert_keys_keep_their_order(got: list[tuple[int, int, bytes, int]]) -> None:
    """In each partition a key's messages lie in the order in which they were sent, and none comes back to a
    partition that its key has left."""
    numbers: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for partition, _, key, number in sorted(got):
        numbers[partition, key].append(number)
    assert all(each == sorted(each) for each in numbers.values())
    places: dict[bytes, set[int]] = defaultdict(set)
    for partition, _, key, _ in got:
        places[key].add(partition)
    assert all(len(each) <= 2 for each in places.values()), "where it was first, and where it is now"


def call(running: RunningCluster, *arguments: str) -> None:
    done = CliRunner().invoke(main, [*arguments, "-b", running.bootstrap])
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
