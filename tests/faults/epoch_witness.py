"""Which value was read where, in which leader epoch: no two at one offset in one epoch, whatever was lost."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, KafkaError, Message, Producer, TopicPartition

from postroad.testing import RunningCluster
from tests.clients.confluent import consumer

from .load import PARTITIONS, TOPIC


class EpochSender:
    """Sends numbers to all partitions. Not idempotent: where messages are lost its sequences would end."""

    def __init__(self, running: RunningCluster) -> None:
        self.acknowledged = 0
        self._producer = Producer({"bootstrap.servers": running.bootstrap, "acks": "all", "log_level": 2})

    def run(self, done: threading.Event) -> None:
        number = 0
        while not done.wait(0.005):
            for partition in range(PARTITIONS):
                self._producer.produce(
                    TOPIC, b"%d" % number, partition=partition, on_delivery=self._delivered
                )
                number += 1
            self._producer.poll(0)
        self._producer.flush(60)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self.acknowledged += error is None


class EpochPlace(NamedTuple):
    partition: int
    offset: int
    epoch: int


class EpochWitness:
    """Reads all partitions, and notes which value it saw where, in which leader epoch."""

    def __init__(self, running: RunningCluster) -> None:
        self.seen: dict[EpochPlace, bytes] = {}
        self.contradictions: list[tuple[EpochPlace, bytes, bytes]] = []
        self._bootstrap = running.bootstrap

    def run(self, done: threading.Event) -> None:
        with consumer(self._bootstrap) as source:
            source.assign([TopicPartition(TOPIC, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
            while not done.is_set():
                self._note(source.consume(500, 0.1), self.seen)

    def read_all(self) -> dict[EpochPlace, bytes]:
        """What there is now, held against what was seen before."""
        found: dict[EpochPlace, bytes] = {}
        with consumer(self._bootstrap) as source:
            ends = [source.get_watermark_offsets(TopicPartition(TOPIC, p)) for p in range(PARTITIONS)]
            source.assign([TopicPartition(TOPIC, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
            deadline = time.monotonic() + 60
            while len(found) < sum(high - low for low, high in ends) and time.monotonic() < deadline:
                self._note(source.consume(500, 0.5), found)
        for place, value in found.items():
            if self.seen.setdefault(place, value) != value:
                self.contradictions.append((place, self.seen[place], value))
        return found

    def has_read(self, messages: int, since_epoch: int = 0) -> bool:
        """Whether so many were read of each partition, written in this epoch or a later one."""
        counts = Counter(place.partition for place in list(self.seen) if place.epoch >= since_epoch)
        return all(counts[partition] >= messages for partition in range(PARTITIONS))

    def _note(self, messages: list[Message], seen: dict[EpochPlace, bytes]) -> None:
        for message in messages:
            if message.error():
                continue
            place = EpochPlace(message.partition(), message.offset(), message.leader_epoch())
            if seen.setdefault(place, message.value()) != message.value():
                self.contradictions.append((place, seen[place], message.value()))
