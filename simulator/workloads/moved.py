"""Partitions move while clients use them: an operator moves, cancels and drains.

Whatever there is may be moved, topics of other workloads and the nodes' own: what they are promised must hold
all the same. A topic of its own has two replicas, so that there is somewhere to go in a cluster of three.

V3: when all is well every move comes to its end, and a node that is drained holds nothing that another could;
the same of a node that is dead, which is drained when everybody else has done. The drain of a living one ends
when it is empty: with fewer nodes than replicas nobody could create a topic.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

from postroad.client import moves, topics
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.producer import Producer
from postroad.errors import PostroadError, TopicAlreadyExists
from postroad.wire.nodes import CancelDrain, DrainNode
from simulator.checkers import a2_whole, l1_acknowledged, l2_one_value, l3_once
from simulator.service import Service
from simulator.violation import Violation
from simulator.workloads.log_history import LogHistory, Position
from simulator.workloads.log_writer import lost_until, unseen_until, write
from simulator.workloads.topic_reader import read_all
from simulator.workloads.workload import Role, Stage, Workload

TOPIC: Final = "moved"
PARTITIONS: Final = 3
REPLICAS: Final = 2
FEWER: Final = 0.3  # of the moves of more replicas: to one node less, so that another one is new later
WRITE_S: Final = 0.5  # between two messages, in the mean
SIZE_MAX: Final = 200
PAUSE_S: Final = 3.0  # between two orders, in the mean
AT_ONCE: Final = 3  # partitions of one order, at most
LOOK_S: Final = 0.5
SETTLED_S: Final = 40.0  # when all is well everything has moved by then
FOR_EVER_S: Final = 1e6  # the operator has nothing more to do


class Moved(Workload):
    name = "moved"
    one_node = False
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._history = LogHistory(TOPIC, acks=-1, idempotent=True)

    def roles(self) -> Mapping[str, Role]:
        return {"operator": self._operate, "producer": self._produce}

    async def _produce(self, client: Client) -> None:
        random = self.stage.random
        await _create(client)
        async with Producer(client) as producer:
            while not self.stage.calm:
                part, size = random.randrange(PARTITIONS), random.randrange(SIZE_MAX)
                await write(self.stage, self._history, producer, part, size)
                await asyncio.sleep(random.expovariate(1 / WRITE_S))
        await asyncio.sleep(self.stage.seconds)

    async def _operate(self, client: Client) -> None:
        random = self.stage.random
        while not self.stage.calm:
            await asyncio.sleep(random.expovariate(1 / PAUSE_S))
            order = random.choices([self._move, self._cancel, self._drain], weights=[5, 2, 2])[0]
            try:
                await order(client)
            except PostroadError as error:
                self.stage.world.note("operator", "was refused", type(error).__name__)
        await self._settled(client, "moves do not come to their end")
        await _cancel_drains(client)
        await asyncio.sleep(FOR_EVER_S)

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
            where: random.sample(nodes, self._replicas(min(count, 3, len(nodes))))
            for where, count in random.sample(partitions, min(AT_ONCE, len(partitions)))
        }
        refused = await moves.reassign(client, wanted)
        if len(refused) < len(wanted):
            self.stage.world.sometimes("moved: partitions began to move")

    def _replicas(self, count: int) -> int:
        """As many as there are; now and then one more or one less, never less than two."""
        if self.stage.random.random() >= FEWER:
            return count
        return count - 1 if count > REPLICAS else min(count + 1, len(self.stage.services))

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
        else:
            chosen = self.stage.random.choice(self.stage.services).number
            await moves.nodes(client, DrainNode(chosen))
            self.stage.world.sometimes("moved: a node was drained")

    # --- the end

    async def finish(self, client: Client) -> None:
        await self._settled(client, "moves do not come to their end")
        await _cancel_drains(client)
        await _create(client)
        parts = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        async with Producer(client) as producer:
            for part in parts:  # it can be written again
                await write(self.stage, self._history, producer, part.partition, 10)
        for part, record in await read_all(client, parts):
            self._history.final[Position(part.partition, record.offset)] = record.value or b""

    def epilogue(self) -> Role:
        return self._drain_the_dead

    async def _drain_the_dead(self, client: Client) -> None:
        """A node dies for good while it has what others could take, and is drained."""
        await self._whole()
        dead = self._holder()
        dead.take_down()
        await moves.nodes(client, DrainNode(dead.number))
        await self._settled(client, f"node {dead.number} is dead, and its drain does not end")
        self.stage.world.sometimes("moved: a dead node was drained")
        await moves.nodes(client, CancelDrain(dead.number))
        dead.bring_back()
        await self._whole()

    def _holder(self) -> Service:
        """A node that has a replica of a topic that does not lie on all nodes."""
        held = self.stage.history.truth.topics[TOPIC].partitions[0].replicas
        return self.stage.services[self.stage.random.choice(held) - 1]

    async def _settled(self, client: Client, otherwise: str) -> None:
        ends_at = self.stage.world.now + SETTLED_S
        while left := await self._left(client):
            if self.stage.world.now > ends_at:
                self.stage.broken("V3", f"{otherwise}: {left}")
                return
            await asyncio.sleep(LOOK_S)

    async def _left(self, client: Client) -> list[str]:
        """What is still under way."""
        left = [f"{where} {each}" for where, each in (await moves.moving(client)).items()]
        drained = [node for node in await moves.nodes(client) if node.drained and node.replicas > node.stuck]
        return [*left, *(f"node {node.id} is drained and holds {node.replicas} replicas" for node in drained)]

    async def _whole(self) -> None:
        """Wait until all replicas are in sync. Where they never are it is told in the end (A2)."""
        for _ in range(int(SETTLED_S / LOOK_S)):
            if not any(a2_whole.check(self.stage.history.truth)):
                return
            await asyncio.sleep(LOOK_S)

    def check(self) -> Iterator[Violation]:
        yield from l1_acknowledged.check(self._history, lost_until(self.stage))
        yield from l2_one_value.check(self._history, unseen_until(self.stage))
        yield from l3_once.check(self._history)


async def _cancel_drains(client: Client) -> None:
    for node in await moves.nodes(client):
        if node.drained:
            await moves.nodes(client, CancelDrain(node.id))


async def _create(client: Client) -> None:
    with contextlib.suppress(TopicAlreadyExists):
        await topics.create(client, TOPIC, partitions=PARTITIONS, replicas=REPLICAS)
