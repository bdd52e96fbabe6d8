"""Stock clients at work on a node that is backed up, with a record of all that they were told.

Numbered messages, a consumer group that commits, workers of a queue that accept, and transactions over two
topics. `told` is what was confirmed by then, `tried` what may have taken effect.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    ShareConsumer,
    TopicPartition,
)

from tests.clients.confluent import consumer, reach
from tests.clients.share import ACCEPT, RELEASE, member
from tests.clients.wait import PATIENCE_S, until

ORDERS, JOBS, LEFT, RIGHT = "orders", "jobs", "left", "right"
PARTITIONS = 3
READERS, CREW, COPIERS, PAIRS = "readers", "crew", "copiers", "pairs"
COUNT_MAX = 200_000  # whatever goes wrong, the load ends
PAUSE_S = 0.001

Place = tuple[int, int]  # partition, offset


class Told(NamedTuple):
    """What clients knew at one moment."""

    sent: dict[str, dict[int, list[int]]]  # by topic and partition: numbers, in order, confirmed
    tried: dict[str, dict[int, list[int]]]
    committed: dict[int, int]  # by partition of ORDERS
    tried_commits: dict[int, int]
    accepted: set[Place]
    tried_accepts: set[Place]
    pairs: set[int]
    tried_pairs: set[int]


class Load:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._sent: dict[str, dict[int, list[int]]] = {ORDERS: defaultdict(list), JOBS: defaultdict(list)}
        self._tried: dict[str, dict[int, list[int]]] = {ORDERS: defaultdict(list), JOBS: defaultdict(list)}
        self._committed: dict[int, int] = {}
        self._tried_commits: dict[int, int] = {}
        self._accepted: set[Place] = set()
        self._tried_accepts: set[Place] = set()
        self._pairs: set[int] = set()
        self._tried_pairs: set[int] = set()
        self.failed: list[BaseException] = []

    def told(self) -> Told:
        with self._lock:
            return Told(
                {topic: {p: list(found) for p, found in each.items()} for topic, each in self._sent.items()},
                {topic: {p: list(found) for p, found in each.items()} for topic, each in self._tried.items()},
                dict(self._committed),
                dict(self._tried_commits),
                set(self._accepted),
                set(self._tried_accepts),
                set(self._pairs),
                set(self._tried_pairs),
            )

    @contextmanager
    def running(self) -> Iterator[None]:
        """All of it, until the block ends."""
        work = (self._produce, self._read, self._accept, self._transact)
        threads = [threading.Thread(target=self._guard, args=(each,), daemon=True) for each in work]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in threads:
                thread.join(PATIENCE_S)
            assert not any(thread.is_alive() for thread in threads), "the load did not end"

    def _guard(self, work: object) -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as error:
            if not self._ended.is_set():
                self.failed.append(error)
                raise

    def _produce(self) -> None:
        through = Producer({**reach(self._bootstrap), "enable.idempotence": True, "linger.ms": 2})

        def confirmed(error: KafkaError | None, message: Message) -> None:
            if error is None:
                with self._lock:
                    number = int(message.value().split()[0])
                    self._sent[message.topic()][message.partition()].append(number)

        for number in range(COUNT_MAX):
            if self._ended.is_set():
                break
            for topic in (ORDERS, JOBS):
                partition = number % PARTITIONS
                with self._lock:
                    self._tried[topic][partition].append(number)
                through.produce(
                    topic, b"%d " % number + b"x" * 200, partition=partition, on_delivery=confirmed
                )
            through.poll(PAUSE_S)
            time.sleep(PAUSE_S)
        through.flush(PATIENCE_S)

    def _read(self) -> None:
        with consumer(self._bootstrap, READERS) as source:
            source.subscribe([ORDERS])
            while not self._ended.is_set():
                positions: dict[int, int] = {}
                for message in source.consume(50, 0.05):
                    if message.error() is None:
                        positions[message.partition()] = message.offset() + 1
                if positions:
                    self._commit(source, positions)

    def _commit(self, source: Consumer, positions: Mapping[int, int]) -> None:
        with self._lock:
            self._tried_commits |= positions
        offsets = [TopicPartition(ORDERS, partition, offset) for partition, offset in positions.items()]
        try:
            source.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            return
        with self._lock:
            self._committed |= positions

    def _accept(self) -> None:
        with member(self._bootstrap, CREW, JOBS) as source:
            while not self._ended.is_set():
                self._accept_some(source)

    def _accept_some(self, source: ShareConsumer) -> None:
        messages = [message for message in source.poll(0.05) if message.error() is None]
        # Every seventh is released: it comes again, and its deliveries are counted.
        kept = [message for message in messages if message.offset() % 7 or message.delivery_count() > 1]
        places = {(message.partition(), message.offset()) for message in kept}
        with self._lock:
            self._tried_accepts |= places
        for message in messages:
            source.acknowledge(message, ACCEPT if message in kept else RELEASE)
        if messages and not any(source.commit_sync(5).values()):
            with self._lock:
                self._accepted |= places

    def _transact(self) -> None:
        through = Producer({**reach(self._bootstrap), "transactional.id": PAIRS})
        through.init_transactions(PATIENCE_S)
        with consumer(self._bootstrap, COPIERS) as reader:
            self._transact_as(through, reader.consumer_group_metadata())

    def _transact_as(self, through: Producer, group: object) -> None:
        """Each transaction has a message in both topics, and the group's offset behind its number."""
        for number in range(COUNT_MAX):
            if self._ended.is_set():
                break
            through.begin_transaction()
            through.produce(LEFT, b"%d" % number)
            through.produce(RIGHT, b"%d" % number)
            done = TopicPartition(ORDERS, 0, number + 1)
            through.send_offsets_to_transaction([done], group, PATIENCE_S)
            if number % 3 == 2:
                through.abort_transaction(PATIENCE_S)
                continue
            with self._lock:
                self._tried_pairs.add(number)
            through.commit_transaction(PATIENCE_S)
            with self._lock:
                self._pairs.add(number)


def read_all(bootstrap: str, topic: str, ends: Mapping[int, int]) -> dict[int, list[tuple[int, int]]]:
    """(offset, number) of all committed messages up to these ends, by partition."""
    found: dict[int, list[tuple[int, int]]] = {partition: [] for partition in ends}
    with consumer(bootstrap, isolation_level="read_committed", enable_partition_eof=True) as source:
        source.assign([TopicPartition(topic, partition, 0) for partition in ends])
        left = {partition for partition, end in ends.items() if end}

        def done() -> bool:
            for message in source.consume(500, 0.2):
                if message.error() is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    left.discard(message.partition())
                else:
                    number = int(message.value().split()[0])
                    found[message.partition()].append((message.offset(), number))
            return not left

        until(done, f"all of {topic} is read", PATIENCE_S, pause_s=0)
    return found


def ends_of(bootstrap: str, topic: str, partitions: int = PARTITIONS) -> dict[int, int]:
    with consumer(bootstrap) as source:
        return {
            partition: source.get_watermark_offsets(TopicPartition(topic, partition), PATIENCE_S)[1]
            for partition in range(partitions)
        }


def committed_of(bootstrap: str, group: str = READERS) -> dict[int, int]:
    with consumer(bootstrap, group) as source:
        wanted = [TopicPartition(ORDERS, partition) for partition in range(PARTITIONS)]
        return {each.partition: each.offset for each in source.committed(wanted, PATIENCE_S)}


def drain(bootstrap: str, count: int) -> dict[Place, int]:
    """What the queue still delivers, with the number of its delivery; accepted. `count` must come."""
    seen: dict[Place, int] = {}
    with member(bootstrap, CREW, JOBS) as source:

        def done() -> bool:
            messages = [message for message in source.poll(0.1) if message.error() is None]
            for message in messages:
                source.acknowledge(message, ACCEPT)
                seen[message.partition(), message.offset()] = message.delivery_count()
            if messages:
                assert not any(source.commit_sync(PATIENCE_S).values())
            return len(seen) >= count

        until(done, f"{count} messages of the queue have come", PATIENCE_S, pause_s=0)
    return seen
