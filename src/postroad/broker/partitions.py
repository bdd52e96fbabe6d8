"""The partitions that this node leads, found by their topic's name or id.

A partition whose log could not be opened (its disk refuses) is offline: it is remembered with the
error, so that clients are told the truth, and opened again when its disk allows (`topics`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from postroad.broker.partition import Partition
from postroad.errors import (
    ApiError,
    NotLeaderOrFollower,
    StorageFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)

TopicKey = str | bytes
TopicPartition = tuple[bytes, int]
"""A topic's id and a partition's index."""


ELSEWHERE: Final = NotLeaderOrFollower()


class Partitions:
    def __init__(self) -> None:
        # by index, under the topic's name and under its id: the same dict
        self._topics: dict[TopicKey, dict[int, Partition | ApiError]] = {}
        self.count = 0  # of all of them, online or not
        self.ledgers = 0  # of those that are online

    def find(self, topic: TopicKey, index: int) -> Partition | None:
        """The partition, if it is here and online."""
        found = self._topics.get(topic)
        if found is None:
            return None
        partition = found.get(index)
        return None if isinstance(partition, ApiError) else partition

    def lead(self, topic: TopicKey, index: int) -> Partition:
        """The partition, to work with. Raises what a client should be told if it is not there."""
        found = self._topics.get(topic)
        if found is None:
            raise UnknownTopicId() if isinstance(topic, bytes) else UnknownTopicOrPartition()
        partition = found.get(index)
        if partition is None:
            raise UnknownTopicOrPartition()
        if isinstance(partition, ApiError):
            raise partition.with_traceback(None)  # or each raise would make it longer
        return partition

    def of(self, topic: TopicKey) -> list[Partition]:
        """Those of a topic that are online, in order."""
        found = self._topics.get(topic, {})  # in the order in which their logs were opened
        return [partition for _, partition in sorted(found.items()) if isinstance(partition, Partition)]

    def expect(self, name: str, topic_id: bytes, index: int) -> None:
        """Mark the partition as opening: clients get a retriable error until it is open."""
        if index not in self._topics.get(topic_id, ()):
            self.put(name, topic_id, index, NotLeaderOrFollower("The partition's log is being opened."))

    def lead_elsewhere(self, name: str, topic_id: bytes, index: int) -> None:
        """Another node leads the partition, and this one has nothing of it."""
        self.put(name, topic_id, index, ELSEWHERE)

    def put(self, name: str, topic_id: bytes, index: int, partition: Partition | ApiError) -> None:
        there = self._topics.setdefault(name, {})
        self._topics[topic_id] = there
        self.count += index not in there
        there[index] = partition
        if isinstance(partition, Partition):
            self.ledgers += partition.ledger is not None

    def add_ledger(self, partition: Partition, ledger: Partition) -> None:
        """The partition has a ledger from now on. It is found nowhere but there: it is not for clients."""
        partition.ledger = ledger
        self.ledgers += 1

    def remove(self, name: str, topic_id: bytes) -> list[Partition]:
        """They are found no more; the caller closes them."""
        online = self.of(topic_id)
        self.count -= len(self._topics.pop(topic_id, ()))
        self.ledgers -= sum(partition.ledger is not None for partition in online)
        self._topics.pop(name, None)
        return online

    def offline(self) -> list[tuple[str, int]]:
        """(topic, index) of each partition whose log could not be opened."""
        return [
            (topic, index)
            for topic, partitions in self._topics.items()
            if isinstance(topic, str)
            for index, partition in partitions.items()
            if isinstance(partition, StorageFailed)
        ]

    def __iter__(self) -> Iterator[Partition]:
        for topic in self._topics:
            if isinstance(topic, str):
                yield from self.of(topic)
