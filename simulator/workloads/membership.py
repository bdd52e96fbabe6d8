"""Nodes on one store: who is in the cluster, and whether all of them know the same.

An operator creates and deletes topics, each time through another node. Now and then somebody starts a second
process under a node's id. The checks hold for any number of nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from postroad.broker.node import Node
from postroad.client import metadata
from postroad.client.client import Client
from postroad.client.metadata import Address, Cluster
from postroad.errors import PostroadError, by_code
from postroad.wire.messages import create_topics, delete_topics
from postroad.wire.messages import metadata as metadata_api
from simulator.checkers.m1_registered import LOOK_S, Registrations
from simulator.checkers.m3_images import Images
from simulator.service import KAFKA_PORT
from simulator.violation import Violation
from simulator.workloads.twin import Twin
from simulator.workloads.workload import Role, Stage, Workload

PAUSE_S: Final = 2.0  # between two changes, in the mean
CALL_S: Final = 10.0
TOPICS_KEPT: Final = 5  # more are deleted again
TWIN_PAUSE_S: Final = 12.0  # between two mistakes, in the mean
TWIN_S: Final = 25.0  # a mistake is noticed by then
SEEN_S: Final = 5.0  # within it all nodes know of a change, when all is well


class Membership(Workload):
    name = "membership"
    one_node = False
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        store = stage.services[0].machine.store
        self._there: dict[str, None] = {}  # topics whose creation was acknowledged, and no deletion was tried
        self._gone: dict[str, None] = {}  # topics whose deletion was acknowledged
        self._numbers = 0
        self._twin: Twin | None = None
        self._twins = 0
        self._cluster_id: str | None = None
        self._registrations = Registrations(stage.world, store, stage.services, self._twin_nodes)
        self._images = Images(store, stage.services)
        stage.world.after(LOOK_S, self._look)

    def roles(self) -> Mapping[str, Role]:
        return {"operator": self._operate, "onlooker": self._ask_around, "twin": self._start_twins}

    def _look(self) -> None:
        self.stage.violations.extend(self._registrations.look())
        self.stage.violations.extend(self._images.look())
        self.stage.world.after(LOOK_S, self._look)

    def _twin_nodes(self) -> Sequence[Node]:
        return [self._twin.node] if self._twin is not None and self._twin.node is not None else []

    # --- topics, through any node

    async def _operate(self, client: Client) -> None:
        random = self.stage.random
        while not self.stage.calm:
            await asyncio.sleep(random.expovariate(1 / PAUSE_S))
            node = random.choice(self.stage.services).number
            try:
                if len(self._there) > random.randrange(TOPICS_KEPT):
                    await self._delete(client, node, random.choice(list(self._there)))
                else:
                    await self._create(client, node)
            except PostroadError as error:
                self.stage.world.note("operator", "was refused", type(error).__name__)
        await asyncio.sleep(self.stage.seconds)

    async def _create(self, client: Client, node: int) -> str:
        self._numbers += 1
        name = f"member-{self._numbers}"
        topic = create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=int(CALL_S * 1000))
        answer = await client.call(create_topics, request, node=node)
        _raise(answer.topics[0])
        self._there[name] = None
        return name

    async def _delete(self, client: Client, node: int, name: str) -> None:
        del self._there[name]  # it may be gone from now on
        state = delete_topics.DeleteTopicState(name=name)
        request = delete_topics.DeleteTopicsRequest(
            topic_names=[name], topics=[state], timeout_ms=int(CALL_S * 1000)
        )
        answer = await client.call(delete_topics, request, node=node)
        _raise(answer.responses[0])
        self._gone[name] = None

    # --- Metadata, of any node

    async def _ask_around(self, client: Client) -> None:
        random = self.stage.random
        while True:
            await asyncio.sleep(random.expovariate(1 / PAUSE_S))
            node = random.choice(self.stage.services).number
            try:
                self._check_answer(node, await _metadata(client, node))
            except PostroadError as error:
                self.stage.world.note("onlooker", "got no answer", type(error).__name__)

    def _check_answer(self, node: int, told: Cluster) -> None:
        """There is one cluster for all time, and nobody in it but its nodes."""
        self._cluster_id = self._cluster_id or told.id
        if told.id != self._cluster_id:
            self.stage.broken("M3", f"node {node} is in cluster {told.id}, not {self._cluster_id}")
        known = [service.number for service in self.stage.services]
        strange = [number for number in told.nodes if number not in known]
        if strange:
            self.stage.broken("M3", f"node {node} tells of nodes {strange}")

    # --- mistakes

    async def _start_twins(self, _: Client) -> None:
        stage, world = self.stage, self.stage.world
        while not stage.calm:
            await asyncio.sleep(stage.random.expovariate(1 / TWIN_PAUSE_S))
            ends_at = world.now + stage.random.uniform(1.0, TWIN_S)
            if not stage.calm:
                self._twins += 1
                self._twin = Twin(stage.random.choice(stage.services), stage.conditions, self._twins)
                self._twin.start()
            while self._twin is not None:
                if stage.calm or world.now > ends_at:
                    self._twin.end()
                    self._twin = None
                await asyncio.sleep(LOOK_S)
        await asyncio.sleep(stage.seconds)

    # --- the end

    async def finish(self, client: Client) -> None:
        for service in self.stage.services:
            name = await self._create_at_last(client, service.number)
            await self._seen_by_all(client, name)
        await asyncio.sleep(SEEN_S)
        self.stage.violations.extend(self._images.check_at_rest())
        for service in self.stage.services:
            told = await _metadata(client, service.number)
            self._check_answer(service.number, told)
            self._check_view(service.number, told)

    async def _create_at_last(self, client: Client, node: int) -> str:
        """All is well: one attempt is enough."""
        async with asyncio.timeout(SEEN_S):
            return await self._create(client, node)

    async def _seen_by_all(self, client: Client, name: str) -> None:
        ends_at = self.stage.world.now + SEEN_S
        for service in self.stage.services:
            while name not in (await _metadata(client, service.number)).topics:
                if self.stage.world.now > ends_at:
                    self.stage.broken("M4", f"node {service.number} does not see {name} within {SEEN_S:g} s")
                    break
                await asyncio.sleep(0.1)

    def _check_view(self, node: int, told: Cluster) -> None:
        expected = {
            service.number: Address(service.machine.host, KAFKA_PORT) for service in self.stage.services
        }
        if told.nodes != expected:
            self.stage.broken("M3", f"node {node} tells of {told.nodes}, there are {expected}")
        for name in self._there:
            if name not in told.topics:
                self.stage.broken("M4", f"node {node}: topic {name} was created, and is not there")
        for name in self._gone:
            if name in told.topics:
                self.stage.broken("M4", f"node {node}: topic {name} was deleted, and is there")

    def check(self) -> Iterator[Violation]:
        return iter(())  # all was checked while it ran


async def _metadata(client: Client, node: int) -> Cluster:
    request = metadata_api.MetadataRequest(topics=None, allow_auto_topic_creation=False)
    return metadata.read(await client.call(metadata_api, request, node=node))


def _raise(result: Any) -> None:
    if result.error_code:
        raise by_code(result.error_code, result.error_message)
