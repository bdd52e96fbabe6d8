"""Replicas nearby that leaders have named (KIP-392): they are asked for a while, instead of the leaders."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from postroad.spark.router import TopicPartition

NEAR_S: Final = 60.0  # then the leader is asked again: another replica may be nearer by now

Gathered = dict[int, list[TopicPartition]]


class Nearby:
    def __init__(self) -> None:
        self._known: dict[TopicPartition, tuple[int, float]] = {}  # the node, and until when to ask it

    @property
    def nodes(self) -> set[int]:
        return {node for node, _ in self._known.values()}

    def note(self, topic_partition: TopicPartition, node: int) -> None:
        """A leader has named this node."""
        self._known[topic_partition] = node, time.monotonic() + NEAR_S

    def forget(self) -> None:
        """Something was wrong: leaders know better."""
        self._known.clear()

    def gather(
        self, wanted: Iterable[TopicPartition], by_leader: Callable[[list[TopicPartition]], Gathered]
    ) -> Gathered:
        """Partitions by the node to ask: the one nearby, else the leader."""
        now_s = time.monotonic()
        near: list[TopicPartition] = []
        far: list[TopicPartition] = []
        for topic_partition in wanted:
            is_near = now_s < self._known.get(topic_partition, (0, 0.0))[1]
            (near if is_near else far).append(topic_partition)
        gathered = by_leader(far)
        for topic_partition in near:
            gathered.setdefault(self._known[topic_partition][0], []).append(topic_partition)
        return gathered
