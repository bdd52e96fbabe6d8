"""Leaderships that this node hands over while it lives: to preferred leaders, when partitions move away, when
it is drained, and when it stops.

A leader that lives is replaced only by its own commit, after it has stopped serving (`cluster.leadership`),
so nobody ever serves beside its successor.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from postroad.broker.partition import Partition
from postroad.cluster import leadership
from postroad.cluster.leadership import Move
from postroad.errors import ApiError, CoordinationError

if TYPE_CHECKING:
    from postroad.broker.node import Node

LOOK_S: Final = 1.0
BACK_S: Final = 10.0  # a node that is back leads again after so long: it may die again at once
MOVES_MAX: Final = 50  # in one round: each is a short stall for its clients
STOP_S: Final = 10.0  # a stop waits no longer for others to take over
FENCE_RETRY_S: Final = 0.5

log = logging.getLogger(__name__)


class Handover:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._me = node.settings.node.id
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

    async def move(self, moves: Sequence[Move]) -> None:
        """Stop leading these, and let the named nodes lead. Raises nothing of the store's."""
        if not moves:
            return
        partitions = self._node.partitions
        found = {move: partitions.replica(move.topic_id, move.index) for move in moves}
        leaving = [p for move, p in found.items() if p is not None and p.leader_epoch == move.leader_epoch]
        for partition in leaving:
            self._node.roles.stop_leading(partition)
        done = True
        for decision in leadership.resign(self._node.image, self._me, moves):
            try:
                done &= await self._node.topics.commit(decision, urgent=True) is not None
            except (ApiError, CoordinationError) as error:
                log.warning("leaderships could not be handed over: %s", error)
                done = False
        if not done:
            await self.lead_again(leaving)

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
                await self.move(leadership.drain_moves(self._node.image, self._me))
                for decision in leadership.leave_isrs(self._node.image, self._me):
                    await self._node.topics.commit(decision, urgent=True)
