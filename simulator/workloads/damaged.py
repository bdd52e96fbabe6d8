"""A topic in whose files bits are flipped (the fault `flip`): what is damaged is not served, that is all.

Every message is a batch of its own, so a bit costs one message at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from postroad.client import offsets
from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST, LATEST
from postroad.client.producer import Producer
from postroad.cluster.ids import id_text
from postroad.errors import CorruptMessage
from postroad.log.segment import LOG_SUFFIX
from simulator.checkers import d1_damage, l2_one_value, l3_once
from simulator.violation import Violation
from simulator.workloads.log_history import LogHistory, Position
from simulator.workloads.log_writer import create_topic, lost_until, saw, unseen_until, write
from simulator.workloads.workload import Role, Stage, Workload

TOPIC: Final = "damaged"
PARTITIONS: Final = 2
CONFIG: Final = {"segment.bytes": "1500", "retention.ms": "-1", "index.interval.bytes": "400"}
PAUSE_S: Final = 0.7
SIZE_MAX: Final = 150


class Damaged(Workload):
    name = "damaged"
    fragile: ClassVar = (TOPIC,)

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._history = LogHistory(TOPIC, acks=-1, idempotent=True)
        self._unreadable: dict[Position, None] = {}  # in the end
        self._topic_id = ""

    def roles(self) -> Mapping[str, Role]:
        return {"producer": self._produce, "reader": self._read}

    async def _produce(self, client: Client) -> None:
        await create_topic(client, TOPIC, PARTITIONS, CONFIG)
        random = self.stage.random
        async with Producer(client) as producer:
            while not self.stage.calm:
                for _ in range(random.randrange(1, 4)):
                    partition, size = random.randrange(PARTITIONS), random.randrange(SIZE_MAX)
                    await write(self.stage, self._history, producer, partition, size)
                await asyncio.sleep(random.expovariate(1 / PAUSE_S))
        await asyncio.sleep(self.stage.seconds)

    async def _read(self, client: Client) -> None:
        """One partition from its beginning to its end, past what is damaged; then a pause."""
        await asyncio.sleep(self.stage.random.uniform(2, 6))
        await create_topic(client, TOPIC, PARTITIONS, CONFIG)
        part = TopicPartition(TOPIC, self.stage.random.randrange(PARTITIONS))
        for position, value in (await self._read_all(client, part)).items():
            if value is not None:
                saw(self.stage, self._history, position, value)

    async def _read_all(self, client: Client, part: TopicPartition) -> dict[Position, bytes | None]:
        """Every message up to the present end; None for each offset that is answered with CORRUPT_MESSAGE."""
        end = (await offsets.find(client, {part: LATEST}))[part].offset
        found: dict[Position, bytes | None] = {}
        async with Consumer(client, reset=None) as consumer:
            await consumer.assign({part: EARLIEST})
            while (at := consumer.positions[part]) < end:
                try:
                    fetched = await consumer.poll(1.0)
                except CorruptMessage:
                    self.stage.world.sometimes("damaged: a reader met a damaged batch")
                    found[Position(part.partition, at)] = None
                    consumer.rewind(part, at + 1)
                    continue
                for _, records, _ in fetched:
                    for record in records:
                        found[Position(part.partition, record.offset)] = record.value or b""
        return found

    async def finish(self, client: Client) -> None:
        self._topic_id = id_text((await client.topic(TOPIC)).id)
        async with Producer(client) as producer:
            for partition in range(PARTITIONS):  # it can be written again
                await write(self.stage, self._history, producer, partition, 10)
        for partition in range(PARTITIONS):
            for position, value in (await self._read_all(client, TopicPartition(TOPIC, partition))).items():
                if value is None:
                    self._unreadable[position] = None
                else:
                    self._history.final[position] = value

    def check(self) -> Iterator[Violation]:
        flips = [self._flips_in(partition) for partition in range(PARTITIONS)]
        yield from d1_damage.check(self._history, list(self._unreadable), flips, lost_until(self.stage))
        readable = LogHistory(TOPIC, acks=-1, idempotent=True)
        readable.final = self._history.final
        readable.sent = self._history.sent
        readable.seen = {p: told for p, told in self._history.seen.items() if p not in self._unreadable}
        yield from l2_one_value.check(readable, unseen_until(self.stage))
        yield from l3_once.check(readable)

    def _flips_in(self, partition: int) -> int:
        """Bits of its messages that are wrong: those of other files cost nothing."""
        directory = f"{self._topic_id}-{partition}"
        return sum(
            flip.path.endswith(LOG_SUFFIX) and flip.path.split("/")[-2] == directory
            for flip in self.stage.flips
        )
