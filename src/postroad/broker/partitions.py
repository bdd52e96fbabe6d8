"""The partitions that this node leads, found by their topic's name or id, and all replicas that lie here.

Clients find what is led here. Whatever else there is of a topic stands there with the error that they are
told: another node leads it, its log is being opened, or its log could not be opened (its disk refuses: it is
offline, and opened again when its disk allows). Ledgers are found by replicas only.
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
        self._replicas: dict[bytes, dict[int, Partition]] = {}  # by topic id: all that are open, in any role
        self._ledgers: dict[bytes, dict[int, Partition]] = {}  # the same, by the ledgers' own ids

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
        """Those of a topic that this node leads, in order."""
        found = self._topics.get(topic, {})  # in the order in which their logs were opened
        return [partition for _, partition in sorted(found.items()) if isinstance(partition, Partition)]

    def replica(self, topic_id: bytes, index: int) -> Partition | None:
        """The replica that lies here and is open, whatever its role."""
        return self._replicas.get(topic_id, {}).get(index)

    def replicas_of(self, topic_id: bytes) -> list[Partition]:
        """The open replicas of a topic, in order."""
        return [partition for _, partition in sorted(self._replicas.get(topic_id, {}).items())]

    def led_log(self, log_id: bytes, index: int) -> Partition:
        """Messages by the topic's id, or a ledger by its own, to be copied. Raises what a replica is told."""
        ledger = self._ledgers.get(log_id, {}).get(index)
        if ledger is None:
            return self.lead(log_id, index)
        if ledger.refusal is not None:
            raise ledger.refusal.with_traceback(None)
        return ledger

    # --- what there is

    def expect(self, name: str, topic_id: bytes, index: int) -> None:
        """Mark the partition as opening: clients get a retriable error until it is open."""
        if index not in self._topics.get(topic_id, ()):
            self._tell(name, topic_id, index, NotLeaderOrFollower("The partition's log is being opened."))

    def lead_elsewhere(self, name: str, topic_id: bytes, index: int) -> None:
        """Another node leads the partition, or nobody does."""
        self._tell(name, topic_id, index, ELSEWHERE)

    def fail(self, name: str, topic_id: bytes, index: int, error: StorageFailed) -> None:
        """The partition is offline: its log can't be opened."""
        self._tell(name, topic_id, index, error)

    def put(self, partition: Partition) -> None:
        """The replica is open. Clients find it once it leads (`show`)."""
        self._replicas.setdefault(partition.topic_id, {})[partition.index] = partition
        if partition.ledger is not None:
            self.add_ledger(partition, partition.ledger)

    def show(self, partition: Partition) -> None:
        """Clients find the partition, if it leads, or are told that it does not."""
        shown = partition if partition.leads else ELSEWHERE
        self._tell(partition.topic, partition.topic_id, partition.index, shown)

    def hide(self, partition: Partition) -> None:
        """Clients are told that another node leads. Call it before those who wait for the partition are told:
        a request that is answered then must not find it, as if it were led alone."""
        self._tell(partition.topic, partition.topic_id, partition.index, ELSEWHERE)

    def add_ledger(self, partition: Partition, ledger: Partition) -> None:
        """The partition has a ledger from now on. It is not for clients."""
        partition.ledger = ledger
        self._ledgers.setdefault(ledger.topic_id, {})[ledger.index] = ledger

    def parent_of(self, partition: Partition) -> Partition:
        """The partition whose ledger this is, or which it is itself."""
        for replicas in self._replicas.values():
            found = replicas.get(partition.index)
            if found is not None and partition in found.with_ledger():
                return found
        return partition

    def drop(self, partition: Partition) -> None:
        """The replica is not open any more."""
        self._replicas.get(partition.topic_id, {}).pop(partition.index, None)
        if partition.ledger is not None:
            self._ledgers.get(partition.ledger.topic_id, {}).pop(partition.index, None)

    def remove(self, name: str, topic_id: bytes) -> list[Partition]:
        """The topic's partitions are found no more; the caller closes those that are open."""
        self._topics.pop(topic_id, None)
        self._topics.pop(name, None)
        removed = self._replicas.pop(topic_id, {})
        for partition in removed.values():
            if partition.ledger is not None:
                self._ledgers.pop(partition.ledger.topic_id, None)
        return list(removed.values())

    def offline(self) -> list[tuple[str, int]]:
        """(topic, index) of each partition whose log could not be opened."""
        return [
            (topic, index)
            for topic, partitions in self._topics.items()
            if isinstance(topic, str)
            for index, partition in partitions.items()
            if isinstance(partition, StorageFailed)
        ]

    @property
    def count(self) -> int:
        """How many replicas are open here, with their ledgers."""
        return sum(map(len, self._replicas.values())) + sum(map(len, self._ledgers.values()))

    def __iter__(self) -> Iterator[Partition]:
        """All replicas that are open, in any role."""
        for replicas in self._replicas.values():
            if len(replicas) > 1:
                yield from (partition for _, partition in sorted(replicas.items()))
            else:  # a node may have ten thousand of these, and is asked for all of them each half second
                yield from replicas.values()

    def _tell(self, name: str, topic_id: bytes, index: int, what: Partition | ApiError) -> None:
        there = self._topics.setdefault(name, {})
        self._topics[topic_id] = there
        there[index] = what
