"""Clients that others wrote, at work with a cluster while its nodes come and go.

Each client has a topic of its own, publishes numbered messages there and consumes them in a group, with the
settings that it has by default. What it tells its application is noted: which messages were acknowledged,
which came, and every error.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import (
    AcknowledgeType,
    Consumer,
    KafkaError,
    Message,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from kafka import KafkaConsumer, KafkaProducer

from .wait import until

PAUSE_S = 0.01  # between two messages: the load is there to be disturbed, not to be fast
JOIN_S = 120.0
CAUGHT_UP_S = 180.0  # a consumer whose coordinator died may wait for its session to end, 45 s, more than once


class Client:
    """One kind of client. `publish` and `consume` run in threads of their own, until their event is set."""

    def __init__(self, bootstrap: str) -> None:
        self.name = type(self).__name__.lower()
        self.topic = f"of-{self.name}"
        self.group = f"readers-of-{self.name}"
        self.bootstrap = bootstrap
        self.acknowledged: set[int] = set()
        self.received: list[int] = []
        self.errors: list[str] = []

    def publish(self, done: threading.Event) -> None:
        raise NotImplementedError

    def consume(self, done: threading.Event) -> None:
        raise NotImplementedError

    @property
    def missing(self) -> list[int]:
        """What was acknowledged and has not come."""
        return sorted(self.acknowledged - set(self.received))


class Confluent(Client):
    def publish(self, done: threading.Event) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        number = 0
        while not done.is_set():
            producer.produce(self.topic, str(number), on_delivery=self._delivered)
            number += 1
            producer.poll(PAUSE_S)
        assert producer.flush(JOIN_S) == 0, "messages were neither acknowledged nor refused"

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error:
            self.errors.append(f"produce: {error}")
        else:
            self.acknowledged.add(int(message.value()))

    def consume(self, done: threading.Event) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": self.group, "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([self.topic])
        while not done.is_set():
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error():
                self.errors.append(f"consume: {message.error()}")
            else:
                self.received.append(int(message.value()))
        consumer.close()


class Share(Confluent):
    """librdkafka's share consumer: accepts each message; what was accepted must not come again."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.accepted: set[tuple[int, int]] = set()  # by partition and offset: a number may be stored twice
        self.came_back: set[tuple[int, int]] = set()

    def consume(self, done: threading.Event) -> None:
        consumer = ShareConsumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group,
                "share.acknowledgement.mode": "explicit",
                "log_level": 3,
            }
        )
        consumer.subscribe([self.topic])
        while not done.is_set():
            messages = [message for message in consumer.poll(timeout=0.2) if not message.error()]
            for message in messages:
                self._take(message)
                consumer.acknowledge(message, AcknowledgeType.ACCEPT)
            if messages:
                self._note(messages, consumer.commit_sync(timeout=30))
        consumer.close()

    def _take(self, message: Message) -> None:
        self.received.append(int(message.value()))
        if (where := (message.partition(), message.offset())) in self.accepted:
            self.came_back.add(where)

    def _note(self, messages: Sequence[Message], outcomes: dict[TopicPartition, Any]) -> None:
        """What the node has confirmed; after a change of the leader locks are gone, and it says so."""
        failed = {(each.topic, each.partition) for each, error in outcomes.items() if error is not None}
        for message in messages:
            if (message.topic(), message.partition()) not in failed:
                self.accepted.add((message.partition(), message.offset()))


class AioKafka(Client):
    def publish(self, done: threading.Event) -> None:
        asyncio.run(self._publish(done))

    async def _publish(self, done: threading.Event) -> None:
        # By default acks is 1, which loses what no other node has copied when the leader dies.
        async with AIOKafkaProducer(bootstrap_servers=self.bootstrap, acks="all") as producer:
            number = 0
            while not done.is_set():
                try:
                    await producer.send_and_wait(self.topic, str(number).encode())
                    self.acknowledged.add(number)
                except Exception as error:
                    self.errors.append(f"produce: {error!r}")
                number += 1
                await asyncio.sleep(PAUSE_S)

    def consume(self, done: threading.Event) -> None:
        asyncio.run(self._consume(done))

    async def _consume(self, done: threading.Event) -> None:
        async with AIOKafkaConsumer(
            self.topic, bootstrap_servers=self.bootstrap, group_id=self.group, auto_offset_reset="earliest"
        ) as consumer:
            while not done.is_set():
                try:
                    for part in (await consumer.getmany(timeout_ms=200)).values():
                        self.received += (int(record.value) for record in part)
                except Exception as error:
                    self.errors.append(f"consume: {error!r}")


class KafkaPython(Client):
    def publish(self, done: threading.Event) -> None:
        producer = KafkaProducer(bootstrap_servers=self.bootstrap)
        number = 0
        while not done.is_set():
            try:
                producer.send(self.topic, str(number).encode()).get(JOIN_S)
                self.acknowledged.add(number)
            except Exception as error:
                self.errors.append(f"produce: {error!r}")
            number += 1
            time.sleep(PAUSE_S)
        producer.close()

    def consume(self, done: threading.Event) -> None:
        consumer = KafkaConsumer(
            self.topic, bootstrap_servers=self.bootstrap, group_id=self.group, auto_offset_reset="earliest"
        )
        while not done.is_set():
            try:
                # A poll that ends while the member joins again costs kafka-python its heartbeats.
                for part in consumer.poll(timeout_ms=2000).values():
                    self.received += (int(record.value) for record in part)
            except Exception as error:
                self.errors.append(f"consume: {error!r}")
        consumer.close()


class Kcat(Client):
    """Lines are acknowledged when kcat ends well: it waits for all of them."""

    def publish(self, done: threading.Event) -> None:
        command = ["kcat", "-b", self.bootstrap, "-P", "-t", self.topic]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as kcat:
            assert kcat.stdin is not None
            number = 0
            while not done.is_set() and kcat.poll() is None:
                kcat.stdin.write(f"{number}\n")
                kcat.stdin.flush()
                number += 1
                time.sleep(PAUSE_S)
            _, said = kcat.communicate(timeout=JOIN_S)
        if kcat.returncode or "Delivery failed" in said:  # that a node is away it may well say
            self.errors.append(f"produce: {said}")
        self.acknowledged.update(range(number))

    def consume(self, done: threading.Event) -> None:
        command = ["kcat", "-b", self.bootstrap, "-u", "-q", "-X", "auto.offset.reset=earliest"]
        command += ["-G", self.group, self.topic]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as kcat:
            reader = threading.Thread(target=self._read, args=(kcat.stdout,))
            reader.start()
            while not done.wait(0.05):
                if kcat.poll() is not None:
                    self.errors.append(f"consume: kcat ended with {kcat.returncode}")
                    break
            kcat.terminate()
            reader.join(JOIN_S)

    def _read(self, lines: Any) -> None:
        for line in lines:
            self.received.append(int(line))


@contextmanager
def at_work(clients: Sequence[Client]) -> Iterator[None]:
    """All of them publish and consume while the block runs; afterwards all that was acknowledged has come."""
    sent, read = threading.Event(), threading.Event()
    publishers = [_Thread(client.publish, sent) for client in clients]
    consumers = [_Thread(client.consume, read) for client in clients]
    try:
        for thread in consumers + publishers:
            thread.start()
        yield
        sent.set()
        for thread in publishers:
            thread.finish()
        for client in clients:
            with contextlib.suppress(AssertionError):  # said better by whoever looks at the clients
                until(lambda client=client: not client.missing, client.name, CAUGHT_UP_S)  # type: ignore[misc]
    finally:
        sent.set()
        read.set()
        for thread in consumers:
            thread.finish()


class _Thread(threading.Thread):
    def __init__(self, work: Any, done: threading.Event) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._done = done
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._work(self._done)
        except BaseException as error:
            self._error = error

    def finish(self) -> None:
        self.join(JOIN_S)
        assert not self.is_alive(), f"{self._work} does not end"
        if self._error is not None:
            raise self._error


def assert_undisturbed(client: Client, least: int) -> None:
    """The application saw no error, and got all that was acknowledged; there was load at all."""
    assert client.errors == [], f"{client.name}: {client.errors[:3]}"
    assert len(client.acknowledged) >= least, f"{client.name}: hardly anything was acknowledged"
    assert client.missing == [], f"{client.name}: {client.missing[:10]} of {len(client.acknowledged)}"
    if isinstance(client, Share):
        assert client.came_back == set(), "it was accepted"


def wait_for_progress(clients: Sequence[Client], messages: int) -> None:
    """Every client has received so many more messages."""
    before = {client: len(client.received) for client in clients}
    for client, count in before.items():
        until(
            lambda client=client, count=count: len(client.received) >= count + messages,  # type: ignore[misc]
            f"{client.name} goes on",
            CAUGHT_UP_S,
        )
