"""L1 in a cluster, seen from inside: whoever may be elected has everything that was ever committed.

Clients see it only when that one is elected. Looked at whenever the store changes a partition, and from time
to time. Partitions of which a power cut may have taken something (`ClusterHistory.losses`) are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from postroad.broker.partition import Partition
from postroad.cluster.image import Topic
from simulator.cluster_history import ClusterHistory, Where
from simulator.service import Service
from simulator.violation import Violation


class InSync:
    def __init__(self, history: ClusterHistory, services: Sequence[Service]) -> None:
        self._history = history
        self._services = services
        self._committed: dict[Where, int] = {}  # the highest watermark that any node has had
        self._told: dict[Where, None] = {}

    def look(self, topics: Sequence[Topic] | None = None) -> Iterator[Violation]:
        """Those of all topics unless told."""
        for topic in list(self._history.truth.topics.values()) if topics is None else topics:
            for index in range(len(topic.partitions)):
                if len(topic.partitions[index].replicas) > 1:
                    yield from self._look(topic, index)

    def _look(self, topic: Topic, index: int) -> Iterator[Violation]:
        where, state = (topic.id, index), topic.partitions[index]
        if where in self._told or self._history.has_lost(*where):
            return
        replicas = self._replicas(topic, index)
        highest = max((each.high_watermark for _, each in replicas), default=0)
        committed = self._committed[where] = max(highest, self._committed.get(where, 0))
        for node, replica in replicas:
            end = replica.log.end_offset
            if node in (*state.isr, *state.elr) and end < committed:
                self._told[where] = None  # once is enough
                yield Violation(
                    "L1",
                    f"{topic.name}-{index}: node {node} may be elected and has {end} of {committed} "
                    f"committed messages: {state}",
                    self._history.world.now,
                )

    def _replicas(self, topic: Topic, index: int) -> list[tuple[int, Partition]]:
        found = []
        for service in self._services:
            if service.node is not None and service.serves:
                partition = service.node.partitions.replica(topic.id, index)
                if partition is not None:
                    found.append((service.number, partition))
        return found
