"""Leaderships that this node hands over while it lives: to preferred leaders, when partitions move away, when
its disk is full, when it is drained, and when it stops.

A leader that lives is replaced only by its own commit, after it has stopped serving (`cluster.leadership`),
so nobody ever serves beside its successor. Before that it takes nothing more from clients and waits until
what it has taken is committed: a batch that is refused then is stored nowhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from postroad.broker.partition import Partition
from postroad.cluster import leadership
from postroad.cluster.decision import Decision
from postroad.cluster.keys import DRAINING
from postroad.cluster.leadership import Move
from postroad.cluster.partition_rules import Standing
from postroad.errors import ApiError, CoordinationError, RequestTimedOut

if TYPE_CHECKING:
    from postroad.broker.node import Node

LOOK_S: Final = 1.0
BACK_S: Final = 10.0  # a node that is back leads again after so long: it may die again at once
MOVES_MAX: Final = 50  # in one round: each is a short stall for its clients
FULL_S: Final = 10.0  # between two hand-overs of a partition: where all disks are full they would go round
STOP_S: Final = 10.0  # a stop waits no longer for others to take over
GATHER_S: Final = 0.02  # a disk that is full refuses all partitions at once
FENCE_RETRY_S: Final = 0.5
FOLLOW_S: Final = 1.0  # until a commit has come round
COMMIT_S: Final = 0.5  # a follower that lags for longer holds up no move: some outcomes are unknown then

log = logging.getLogger(__name__)


class Handover:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._me = node.settings.node.id
        self._moving: Counter[tuple[bytes, int]] = Counter()  # partitions that are being handed over
        self._moved = asyncio.Event()
        self._leaving: dict[tuple[bytes, int], None] = {}  # partitions of others that there is no room for
        self._left_full_s: dict[
            tuple[bytes, int], float
        ] = {}  # by partition: when it was left for want of room
        self._ready_since: dict[int, float] = {}  # by preferred leader: when it was first seen in sync

    async def run(self) -> None:
        """For as long as the node lives: what it should not lead is led by others, and preferred leaders that
        are in sync again lead again."""
        while True:
            await asyncio.sleep(LOOK_S)
            if len(self._node.image.nodes) <= 1:
                continue
            try:
                await self.move(leadership.leaving_moves(self._node.image, self._me)[:MOVES_MAX])
                await self.move(self._due())
            except Exception:  # leaders stay where they are, and it is tried again
                log.exception("leaderships could not be handed over")

    def _due(self) -> list[Move]:
        """Moves to nodes that could have led for a while."""
        now_s = self._node.loop.time()
        moves = leadership.preferred_moves(self._node.image, self._me)
        targets = {move.to for move in moves}
        self._ready_since = {node: self._ready_since.get(node, now_s) for node in sorted(targets)}
        return [move for move in moves if now_s - self._ready_since[move.to] >= BACK_S]

    async def leave_full(self, partitions: Sequence[Partition]) -> None:
        """The disk has no room for what is sent to these: others lead them, where another one is in sync.

        The node leaves their ISRs, or everybody would wait for what it can't write; it joins again when it
        has caught up.
        """
        now_s = self._node.loop.time()
        where = {
            (partition.topic_id, partition.index): now_s
            for partition in partitions
            if now_s - self._left_full_s.get((partition.topic_id, partition.index), -FULL_S) >= FULL_S
        }
        if not where:
            return
        self._left_full_s = where | {at: s for at, s in self._left_full_s.items() if now_s - s < FULL_S}
        moves = [
            m for m in leadership.drain_moves(self._node.image, self._me) if (m.topic_id, m.index) in where
        ]
        if moves:
            log.warning("the disk is full: %d partitions are handed over", len(moves))
            await self.move(moves, Standing.LEAVES)

    def leave_soon(self, partition: Partition) -> None:
        """The disk has no room for what the partition's leader sends: nobody should wait for this node."""
        begins = not self._leaving
        messages = self._node.partitions.parent_of(partition)
        self._leaving[messages.topic_id, messages.index] = None
        if begins:
            self._node.tasks.start(self._leave_isrs(), "leave-isrs")

    async def _leave_isrs(self) -> None:
        """What is refused is decided anew when the next write fails."""
        await asyncio.sleep(GATHER_S)
        leaving, self._leaving = self._leaving, {}
        with contextlib.suppress(ApiError, CoordinationError):
            for decision in leadership.leave_isrs(self._node.image, self._me, leaving):
                await self._node.topics.commit(decision, urgent=True)

    async def move(self, moves: Sequence[Move], standing: Standing = Standing.STAYS) -> None:
        """Stop leading these, and let the named nodes lead. Raises nothing of the store's."""
        where = Counter((move.topic_id, move.index) for move in moves)
        self._moving += where
        try:
            await self._move(moves, standing)
        finally:
            self._moving -= where
            self._moved.set()
            self._moved = asyncio.Event()

    def is_moving(self, topic_id: bytes, index: int) -> bool:
        """Whether the partition is not led here any more, and the image does not say yet who leads it."""
        return (topic_id, index) in self._moving

    async def finish(self, timeout_s: float) -> None:
        """Wait until the image says who leads what is being handed over; bounded."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._moving:
                    await self._moved.wait()

    async def _move(self, moves: Sequence[Move], standing: Standing) -> None:
        if not moves:
            return
        partitions = self._node.partitions
        found = [(partitions.replica(move.topic_id, move.index), move.leader_epoch) for move in moves]
        leaving = [(p, epoch) for p, epoch in found if p is not None and p.leader_epoch == epoch]
        if standing is Standing.STAYS:
            await self._commit_all([partition for partition, _ in leaving])
        leaving = [(partition, epoch) for partition, epoch in leaving if partition.leader_epoch == epoch]
        for partition, _ in leaving:
            self._node.roles.stop_leading(partition)
        done = True
        for decision in leadership.resign(self._node.image, self._me, moves, standing):
            done &= await self._commit(decision)
        if not done:
            await self.lead_again([partition for partition, _ in leaving])

    async def _commit_all(self, partitions: Sequence[Partition]) -> None:
        """Take nothing more from clients, and wait until what they sent is committed; bounded."""
        waiting = [self._committed(partition) for partition in partitions if partition.leads]
        if waiting:
            await asyncio.wait(waiting, timeout=COMMIT_S)

    def _committed(self, partition: Partition) -> asyncio.Future[None]:
        committed = self._node.loop.create_future()
        partition.is_leaving = True
        partition.when_committed(
            partition.log.end_offset, lambda _: None if committed.done() else committed.set_result(None)
        )
        return committed

    async def _commit(self, decision: Decision) -> bool:
        """Whether it is done; the image shows it then, unless that takes long."""
        try:
            revision = await self._node.topics.commit(decision, urgent=True)
        except (ApiError, CoordinationError) as error:
            log.warning("leaderships could not be handed over: %s", error)
            return False
        if revision is None:
            return False
        with contextlib.suppress(ApiError):
            await self._node.topics.reach(revision, FOLLOW_S)
        return True

    async def lead_again(self, partitions: Sequence[Partition]) -> None:
        """Some were not handed over, or nobody knows. Once nothing that was sent can arrive any more, the
        image says who leads."""
        while True:
            try:
                await self._node.topics.fence_off()
                break
            except (ApiError, CoordinationError):
                await asyncio.sleep(FENCE_RETRY_S)
        for partition in partitions:
            self._node.roles.assume(partition)

    async def leave(self) -> None:
        """The node stops: others lead what they can, and nobody waits for this one. Bounded."""
        if len(self._node.image.nodes) <= 1:
            return
        with contextlib.suppress(TimeoutError, ApiError, CoordinationError):
            async with asyncio.timeout(STOP_S):
                await self._node.registration.drain()
                while not self._is_draining():  # or what is decided on the image would be refused
                    await self._next_image()
                while moves := leadership.drain_moves(self._node.image, self._me):
                    await self.move(moves)
                while decisions := leadership.leave_isrs(self._node.image, self._me):
                    for decision in decisions:
                        await self._node.topics.commit(decision, urgent=True)
                    await self._next_image()

    def _is_draining(self) -> bool:
        entry = self._node.image.nodes.get(self._me)
        return entry is None or entry.state == DRAINING

    async def _next_image(self) -> None:
        with contextlib.suppress(RequestTimedOut):
            await self._node.topics.reach(self._node.image.revision + 1, FOLLOW_S)
