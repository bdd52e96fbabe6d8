"""Load on a node, with a record of what it acknowledged, to be held against what is there after a fault."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.clients.confluent import consumer, reach, read
from tests.clients.wait import until

PARTITIONS = 3
TOPIC = "load"
GROUP = "bookmarks"
MESSAGE_TIMEOUT_MS = 120_000
COME_BACK_QUICKLY = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100}


class Reachable(Protocol):
    """A node, or a cluster of them."""

    @property
    def bootstrap(self) -> str: ...


class Load:
    """An idempotent producer that numbers its messages in each partition and notes what was acknowledged."""

    def __init__(self, running: Reachable, name: str, settings: Mapping[str, Any] | None = None) -> None:
        """`settings` of librdkafka go over those that make it come back quickly."""
        self.name = name
        self.sent = [0] * PARTITIONS
        self.acknowledged: dict[tuple[int, int], int] = {}  # (partition, number) → offset
        self.refused: list[KafkaError] = []
        self.producer = Producer(
            {
                **reach(running.bootstrap),
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "message.timeout.ms": MESSAGE_TIMEOUT_MS,
                "queue.buffering.max.messages": 2000,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                **COME_BACK_QUICKLY,
                **(settings or {}),
            }
        )

    def run(self, done: threading.Event) -> None:
        while not done.is_set():
            for partition in range(PARTITIONS):
                self._send(partition)
            self._pause()
        assert self.producer.flush(60) == 0, "messages were neither acknowledged nor refused"

    def wait_until_heard(self) -> None:
        """Return once a message that is sent from now on is acknowledged by the leader of each partition."""
        numbers = list(enumerate(self.sent))
        until(
            lambda: self.acknowledged.keys() >= set(numbers),
            "the producer is answered by every leader",
            MESSAGE_TIMEOUT_MS / 1000,
        )

    def _pause(self) -> None:
        """Between two messages to a partition."""
        self.producer.poll(0.002)

    def _send(self, partition: int) -> None:
        number = self.sent[partition]
        value = f"{self.name} {number}".encode()
        with suppress(BufferError):  # outside of it: callbacks don't bear an exception that is handled
            self.producer.produce(TOPIC, value, partition=partition, on_delivery=self._delivered)
            self.sent[partition] += 1
            return
        self.producer.poll(0.05)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error:
            self.refused.append(error)
        else:
            self.acknowledged[message.partition(), int(message.value().split()[1])] = message.offset()


class Bookmarks:
    """Commits a rising offset again and again, and notes which commits were acknowledged."""

    def __init__(self, running: Reachable) -> None:
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


def committed(running: Reachable) -> int:
    with consumer(running.bootstrap, GROUP) as source:
        return max(0, source.committed([TopicPartition(TOPIC, 0)], timeout=60)[0].offset)


def assert_all_there_once_in_order(running: Reachable, producers: list[Load], sent_min: int) -> None:
    """L1, L3, L6: every acknowledged message at its offset, every message once, each producer's in order."""
    stored = {partition: values_of(running, partition) for partition in range(PARTITIONS)}
    for load in producers:
        assert not load.refused, load.refused[0]
        assert len(load.acknowledged) == sum(load.sent)
        assert min(load.sent) > sent_min, "there was hardly any load"
        for (partition, number), offset in load.acknowledged.items():
            assert stored[partition][offset] == (load.name, number)
        for partition in range(PARTITIONS):
            numbers = [number for name, number in stored[partition] if name == load.name]
            assert numbers == list(range(load.sent[partition])), what_is_wrong(numbers, load.sent[partition])


def what_is_wrong(numbers: list[int], sent: int) -> str:
    count = Counter(numbers)
    doubled = [number for number, times in count.items() if times > 1]
    lost = [number for number in range(sent) if number not in count]
    return f"of {sent} messages {len(lost)} are lost {lost[:9]}, {len(doubled)} doubled {doubled[:9]}"


def values_of(running: Reachable, partition: int) -> list[tuple[str, int]]:
    with consumer(running.bootstrap, check_crcs=True) as source:
        place = TopicPartition(TOPIC, partition, OFFSET_BEGINNING)
        low, high = source.get_watermark_offsets(place, timeout=60)
        assert low == 0
        source.assign([place])
        messages = read(source, high)
    assert [message.offset() for message in messages] == list(range(high))
    pairs = (message.value().decode().split() for message in messages)
    return [(name, int(number)) for name, number in pairs]
