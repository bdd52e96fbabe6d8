"""A group that commits before it processes: a message may be left out, and none is processed twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.fetcher import Fetched
from postroad.client.offsets import EARLIEST
from postroad.client.producer import Producer
from simulator.checkers import o1_processed_once
from simulator.conditions import GROUP_HEARTBEAT_MS, GROUP_SESSION_MS
from simulator.violation import Violation
from simulator.workloads.log_history import Position
from simulator.workloads.log_writer import create_topic
from simulator.workloads.processed import Processed
from simulator.workloads.workload import Role, Stage, Workload

TOPIC: Final = "at-most-once"
GROUP: Final = "at-most-once"
PARTITIONS: Final = 2
MEMBERS: Final = 2
SEND_S: Final = 0.8
BURST_MAX: Final = 5
POLL_S: Final = 0.4
PAUSE_S: Final = 0.5
LIFE_S: Final = (3.0, 20.0)  # how long a member stays; it goes without a word, as a process that dies
REBALANCE_MS: Final = 8_000


class AtMostOnce(Workload):
    name = "at-most-once"
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._processed: list[Processed] = []
        self._numbers = count()

    def roles(self) -> Mapping[str, Role]:
        members = {f"member-{number}": self._consume for number in range(1, MEMBERS + 1)}
        return {"producer": self._produce, **members}

    async def _produce(self, client: Client) -> None:
        stage, random = self.stage, self.stage.random
        await create_topic(client, TOPIC, PARTITIONS, {})
        async with Producer(client) as producer:
            while not stage.calm:
                for _ in range(random.randrange(1, BURST_MAX)):
                    value = b"%d" % next(self._numbers)
                    await producer.send(TOPIC, value, partition=random.randrange(PARTITIONS))
                await asyncio.sleep(random.expovariate(1 / SEND_S))
        await asyncio.sleep(stage.seconds)

    async def _consume(self, client: Client) -> None:
        await create_topic(client, TOPIC, PARTITIONS, {})
        stage, random = self.stage, self.stage.random
        ends_at = stage.world.now + random.uniform(*LIFE_S)
        consumer = Consumer(
            client,
            reset=EARLIEST,
            group=GROUP,
            auto_commit_ms=None,
            member={
                "session_timeout_ms": GROUP_SESSION_MS,
                "heartbeat_ms": GROUP_HEARTBEAT_MS,
                "rebalance_timeout_ms": REBALANCE_MS,
            },
        )
        async with consumer:
            await consumer.subscribe([TOPIC])
            while stage.world.now < ends_at:
                await self._step(consumer)
                await asyncio.sleep(random.expovariate(1 / PAUSE_S))

    async def _step(self, consumer: Consumer) -> None:
        """Poll, commit, and only then process. A commit of which nobody knows costs its messages."""
        fetched, asked = await consumer.poll(POLL_S), self.stage.world.now
        if not fetched:
            return
        self.stage.world.sometimes("at most once: messages came")
        if await consumer.commit():
            self._process(fetched, asked, consumer.committer.member_id)
        else:
            self.stage.world.sometimes("at most once: a commit was refused")

    def _process(self, fetched: Sequence[Fetched], asked: float, member: str) -> None:
        for part, records, _ in fetched:
            for record in records:
                position = Position(part.partition, record.offset)
                value, now = record.value or b"", self.stage.world.now
                self._processed.append(Processed(position, value, asked, now, member))

    async def finish(self, client: Client) -> None:
        """Members go on in the calm; what they did until now is all there is to check."""

    def check(self) -> Iterator[Violation]:
        yield from o1_processed_once.check(TOPIC, self._processed, self.stage.losses())
