"""L11: a leader's watermark never falls, and stands still while too few replicas are in sync.

Looked at from time to time, from inside: no client sees who is in sync. What a leader learns of its
successor only after it went on for a while (a zombie) is counted here as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from postroad.broker.partition import Partition
from postroad.replication.leader import Leader
from postroad.replication.progress import FollowerProgress
from simulator.cluster_history import ClusterHistory
from simulator.service import Service
from simulator.violation import Violation


class Seen(NamedTuple):
    """A leader at the last look."""

    epoch: int
    revision: int
    has_enough: bool
    watermark: int
    end: int
    is_zombie: bool


class Watermarks:
    def __init__(self, history: ClusterHistory, services: Sequence[Service]) -> None:
        self._history = history
        self._services = services
        self._seen: dict[Partition, Seen] = {}

    def look(self) -> Iterator[Violation]:
        before, self._seen = self._seen, {}
        for service in self._services:
            if service.node is not None and service.serves:
                for partition in service.node.partitions:
                    yield from self._look(service.number, partition, before.get(partition))

    def _look(self, node: int, partition: Partition, before: Seen | None) -> Iterator[Violation]:
        leader = partition.leadership
        if leader is None:
            if before is not None and before.is_zombie:
                self._history.world.sometimes("cluster: a leader learned late of its successor")
            return
        truth = self._history.now(partition.topic_id, partition.index)
        is_zombie = truth is not None and truth.leader_epoch > partition.leader_epoch
        seen = Seen(
            partition.leader_epoch,
            leader.revision,
            len(leader.isr) >= leader.minimum,
            partition.high_watermark,
            partition.log.end_offset,
            is_zombie,
        )
        self._seen[partition] = seen
        self._note(leader, seen)
        if before is not None and is_zombie and seen.end > before.end:
            self._history.world.sometimes("cluster: a leader took messages after another was elected")
        if before is None or before.epoch != seen.epoch:
            return
        name, at = f"{partition.topic}-{partition.index} on node {node}", self._history.world.now
        if seen.watermark < before.watermark:
            yield Violation("L11", f"{name}: the watermark fell to {seen.watermark}", at)
        is_same = before.revision == seen.revision
        if is_same and not before.has_enough and not seen.has_enough and seen.watermark > before.watermark:
            yield Violation("L11", f"{name}: the watermark rose with too few in sync: {leader.isr}", at)

    def _note(self, leader: Leader, seen: Seen) -> None:
        """What must be reached for the checks below to be put to the test."""
        sometimes = self._history.world.sometimes
        if leader._in_doubt:
            sometimes("cluster: nobody knew of a change of the ISR")
        if not leader.reached_start():
            sometimes("cluster: a leader did not know yet how much was committed before")
            if any(is_below_start(leader, follower) for follower in leader._followers.values()):
                sometimes("cluster: a replica with all that was committed was kept out until it had the rest")
        if not seen.has_enough and seen.end > seen.watermark:
            sometimes("cluster: messages waited while too few were in sync")


def is_below_start(leader: Leader, follower: FollowerProgress) -> bool:
    """Whether it would join by the watermark alone, and has not reached the start of the leader epoch."""
    positions = list(zip(leader.logs, follower.positions, strict=True))
    return (
        not follower.is_counted
        and all(position.offset >= progress.watermark for progress, position in positions)
        and any(position.offset < progress.start_offset for progress, position in positions)
    )
