"""Partitions move while the other workloads use them: an operator moves, cancels and drains.

Whatever there is may be moved, topics of other workloads and the nodes' own: what they are promised must hold
all the same. When all is well every move comes to its end, and a node that is drained holds nothing that
another could.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from postroad.client import moves
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.errors import PostroadError
from postroad.wire.nodes import CancelDrain, DrainNode
from simulator.violation import Violation
from simulator.workloads.workload import Role, Workload

PAUSE_S: Final = 3.0  # between two orders, in the mean
AT_ONCE: Final = 3  # partitions of one order, at most
LOOK_S: Final = 0.5
SETTLED_S: Final = 40.0  # when all is well everything has moved by then


class Moved(Workload):
    name = "moved"
    one_node = False
    many_nodes = True
    is_drawn = False  # it changes what every other workload meets

    def roles(self) -> Mapping[str, Role]:
        return {"operator": self._operate}

    async def _operate(self, client: Client) -> None:
        random = self.stage.random
        while not self.stage.calm:
            await asyncio.sleep(random.expovariate(1 / PAUSE_S))
            order = random.choices([self._move, self._cancel, self._drain], weights=[5, 2, 2])[0]
            try:
                await order(client)
            except PostroadError as error:
                self.stage.world.note("operator", "was refused", type(error).__name__)
        await asyncio.sleep(self.stage.seconds)

    async def _move(self, client: Client) -> None:
        """Some partitions go to nodes that are drawn."""
        random = self.stage.random
        seen = await client.cluster()
        nodes = [service.number for service in self.stage.services]
        partitions = [
            (TopicPartition(name, each.number), len(each.replicas))
            for name, topic in sorted(seen.topics.items())
            for each in topic.partitions
        ]
        wanted = {
            where: random.sample(nodes, min(count, 3, len(nodes)))
            for where, count in random.sample(partitions, min(AT_ONCE, len(partitions)))
        }
        refused = await moves.reassign(client, wanted)
        if len(refused) < len(wanted):
            self.stage.world.sometimes("moved: partitions began to move")

    async def _cancel(self, client: Client) -> None:
        moving = await moves.moving(client)
        if moving:
            where = self.stage.random.choice(sorted(moving))
            if not await moves.reassign(client, {where: None}):
                self.stage.world.sometimes("moved: a move was cancelled")

    async def _drain(self, client: Client) -> None:
        """One node is drained at a time, so that there are others; then that is cancelled."""
        drained = [node.id for node in await moves.nodes(client) if node.drained]
        if drained:
            await moves.nodes(client, CancelDrain(drained[0]))
            self.stage.world.sometimes("moved: a drain was cancelled")
        elif len(self.stage.services) > 3:
            chosen = self.stage.random.choice(self.stage.services).number
            await moves.nodes(client, DrainNode(chosen))
            self.stage.world.sometimes("moved: a node was drained")

    # --- the end

    async def finish(self, client: Client) -> None:
        ends_at = self.stage.world.now + SETTLED_S
        while left := await self._left(client):
            if self.stage.world.now > ends_at:
                self.stage.broken("V3", f"moves do not come to their end: {left}")
                return
            await asyncio.sleep(LOOK_S)

    async def _left(self, client: Client) -> list[str]:
        """What is still under way."""
        left = [f"{where} {each}" for where, each in (await moves.moving(client)).items()]
        drained = [node for node in await moves.nodes(client) if node.drained and node.replicas > node.stuck]
        return [*left, *(f"node {node.id} is drained and holds {node.replicas} replicas" for node in drained)]

    def check(self) -> Iterator[Violation]:
        return iter(())  # all was checked while it ran
