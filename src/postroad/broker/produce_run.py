"""A run of produce requests that repeat each other: read, staged and answered as one.

Producers that send message by message keep several requests in flight, which arrive together and
differ only in their records. They share one place in the order of answers, one look-up of the
partition, and one call-back when the last of them is committed. What may be appended, and when it is
acknowledged, is the same for both ways (`admission`). Whatever is out of the ordinary (another partition,
a batch that is refused or opens a transaction, acks=0) ends the run and goes the long way, `api/produce`. The
setting `kafka.short_ways` turns this one off; a message then takes three times the processor time (33 instead
of 11 µs, 64 requests in flight).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postroad.broker.admission import admit, waits_for_commit
from postroad.broker.cluster_view import WRONG_LEADER, ClusterView
from postroad.broker.connection import Answer, Connection
from postroad.broker.metrics.requests import ApiStats
from postroad.broker.partition import Partition
from postroad.errors import ApiError
from postroad.system.clock import stopwatch_ns
from postroad.wire import framing, produce
from postroad.wire.leader_hints import NodeEndpoint

if TYPE_CHECKING:
    from postroad.broker.node import Node


def stage_run(
    node: Node, connection: Connection, frames: list[memoryview], position: int, stats: ApiStats
) -> int:
    """Stage frames from `position` on that repeat the last produce; returns the first that doesn't."""
    repetition = connection.last_produce
    assert repetition is not None
    partition = node.partitions.find(repetition.topic, repetition.index)
    if partition is None:
        return position
    run = ProduceRun(node, connection, repetition, partition)
    run.began, run.took = stopwatch_ns(), stats.took
    run.requests = run.stage(frames, position, node.clock.now_ms())
    stats.requests += run.requests
    stats.short_way += run.requests
    end = position + run.requests
    if end > position:
        connection.park(run)
        node.turn.when_written(run)
    return end


class ProduceRun(Answer):
    __slots__ = ("_end", "_node", "_partition", "_repetition", "_staged")

    def __init__(
        self,
        node: Node,
        connection: Connection,
        repetition: produce.Repetition,
        partition: Partition,
    ) -> None:
        Answer.__init__(self, connection, 0, False)
        self._node = node
        self._repetition = repetition
        self._partition = partition
        self._staged: list[tuple[int, int, int]] = []  # correlation, base offset, append time
        self._end = 0  # acks=all waits until everything below this offset is committed

    def stage(self, frames: list[memoryview], position: int, now_ms: int) -> int:
        """How many of the frames could be staged."""
        repetition, partition, staged, last = self._repetition, self._partition, self._staged, 0
        acks, read, transactional_id = repetition.acks, repetition.read, repetition.transactional_id
        for frame in frames[position:] if position else frames:
            request = read(frame)
            if request is None:
                break
            correlation, records = request
            try:
                base, append_time, end = admit(partition, records, acks, now_ms, transactional_id)
            except ApiError:  # nothing has changed; the long way finds the same and answers it
                break
            staged.append((correlation, base, append_time))
            if end > last:  # a repeated batch ends before others
                last = end
        self._end = last
        return len(staged)

    def written(self) -> None:
        """The turn has written: answer, or wait for the commit."""
        partition = self._partition
        if partition.write_error is not None:
            self._finish(partition.write_error)
        elif waits_for_commit(partition, self._repetition.acks, self._end):
            deadline_ms = self._node.clock.monotonic_ms() + self._repetition.timeout_ms
            partition.when_committed(self._end, self._finish, deadline_ms)
        else:
            self._finish(None)

    def _finish(self, error: ApiError | None) -> None:
        if self.connection.closed:
            return
        if error is None:
            response, start = self._repetition.response, self._partition.log.start_offset
            answers = [response(correlation, base, time, start) for correlation, base, time in self._staged]
        else:
            answers = [self._refusal(correlation, error) for correlation, _, _ in self._staged]
        self.framed = b"".join(answers) if len(answers) > 1 else answers[0]
        self.connection.answered()

    def _refusal(self, correlation: int, error: ApiError) -> bytes:
        version = self._repetition.version
        answer = produce.PartitionAnswer(self._repetition.topic, self._repetition.index)
        answer.error, answer.message = error.code, str(error)
        endpoints: list[NodeEndpoint] = []
        if error.code in WRONG_LEADER:
            view = ClusterView(self._node.image, self._node.registration.me, self.connection.listener)
            answer.leader = view.leader_hint(answer.topic, answer.index, error.code)
            endpoints = view.endpoints([answer.leader] if answer.leader is not None else [])
        body = produce.encode([answer], version, endpoints=endpoints)
        return framing.response_head(len(body), correlation, version >= produce.FLEXIBLE_FROM) + body
