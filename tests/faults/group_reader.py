"""A member of a consumer group that reads and commits through faults, and notes what it must never see."""

from __future__ import annotations

import threading
import time

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from tests.clients.confluent import consumer

from .load import PARTITIONS, TOPIC, Reachable

GROUP = "readers"
SESSION = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 500}
BATCH = 500
POLL_S = 0.1
PAUSE_S = 0.02  # after a commit that was not answered


class GroupReader:
    """Reads the load's topic in order. What it commits it notes when the commit was answered."""

    def __init__(self, running: Reachable) -> None:
        self._bootstrap = running.bootstrap
        self.source: Consumer | None = None  # while it runs
        self.values: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        self.committed = dict.fromkeys(range(PARTITIONS), 0)  # answered
        self.tried = dict.fromkeys(range(PARTITIONS), 0)
        self.broken: list[str] = []  # promises
        self._next: dict[int, int] = {}  # since the last assignment

    def run(self, done: threading.Event) -> None:
        with consumer(self._bootstrap, GROUP, **SESSION) as source:
            self.source = source
            source.subscribe([TOPIC], on_assign=lambda *_: self._next.clear())
            while not done.is_set():
                messages = source.consume(BATCH, timeout=POLL_S)
                for message in messages:
                    self._note(message)
                if messages:
                    self._commit(source)

    def _note(self, message: Message) -> None:
        if message.error():
            self.broken.append(f"an error reached the application: {message.error()}")
            return
        partition, offset = message.partition(), message.offset()
        seen = self.values[partition]
        if offset != self._next.get(partition, offset):
            self.broken.append(f"{partition}: {offset} after {self._next[partition] - 1}")  # L2
        if not self.committed[partition] <= offset <= len(seen):
            self.broken.append(f"{partition}: {offset} with {self.committed[partition]} committed")  # L5
        if offset < len(seen) and seen[offset] != message.value():
            self.broken.append(f"{partition}: another message at {offset}")  # L3
        seen[offset:] = [message.value(), *seen[offset + 1 :]]
        self._next[partition] = offset + 1

    def _commit(self, source: Consumer) -> None:
        offsets = [TopicPartition(TOPIC, partition, after) for partition, after in self._next.items()]
        self.tried |= {
            partition: max(after, self.tried[partition]) for partition, after in self._next.items()
        }
        try:
            answered = source.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            time.sleep(PAUSE_S)  # the coordinator moves, or the group rebalances
            return
        for place in answered or []:
            if place.error is None:
                self.committed[place.partition] = max(place.offset, self.committed[place.partition])


def committed_offsets(running: Reachable) -> dict[int, int]:
    """What the cluster says that the group has committed."""
    asked = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
    with consumer(running.bootstrap, GROUP) as source:
        return {place.partition: max(0, place.offset) for place in source.committed(asked, timeout=60)}
