"""Messages with ids, some of them sent again, and a subscription that leaves duplicates out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from postroad.client import subscriptions
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.producer import Producer
from postroad.client.share_consumer import ShareConsumer
from postroad.wire import header_names
from simulator.checkers import x1_duplicates
from simulator.violation import Violation
from simulator.workloads.identified import Identified
from simulator.workloads.log_history import Position
from simulator.workloads.log_writer import create_topic, lost_until, timestamp_ms
from simulator.workloads.topic_reader import read_all
from simulator.workloads.workload import Role, Stage, Workload

TOPIC: Final = "repeated"
GROUP: Final = "repeated"
PARTITIONS: Final = 2
WINDOW_MS: Final = 3_000
CONFIGS: Final = {
    "postroad.topics": TOPIC,
    "share.auto.offset.reset": "earliest",
    "share.record.lock.duration.ms": "1000",
    "share.delivery.count.limit": "0",
    "postroad.deduplicate.ms": str(WINDOW_MS),
}
SEND_S: Final = 0.5
BURST_MAX: Final = 5
AGAIN: Final = 0.5  # the part of the messages that repeats an id
RECENT: Final = 8  # ids that are repeated are among so many of the last
SETTLED: Final = 0.9  # the part of the polls that is accepted; the rest comes again when its locks end
MEMBER_S: Final = (3.0, 15.0)  # how long a member stays
DRAIN_S: Final = 25.0


class Repeated(Workload):
    name = "repeated"
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._ids = 0
        self._sent: dict[bytes, float] = {}  # by value: when it was handed over
        self._delivered: set[tuple[Position, bytes]] = set()
        self._found: list[Identified] = []
        self._is_ready = False

    def roles(self) -> Mapping[str, Role]:
        return {"producer": self._produce, "member-1": self._consume, "member-2": self._consume}

    async def _create(self, client: Client) -> None:
        await create_topic(client, TOPIC, PARTITIONS, {})
        if not self._is_ready:
            await subscriptions.alter_config(client, GROUP, CONFIGS)
            self._is_ready = True

    async def _produce(self, client: Client) -> None:
        stage, random = self.stage, self.stage.random
        await self._create(client)
        async with Producer(client) as producer:
            while not stage.calm:
                for _ in range(random.randrange(1, BURST_MAX)):
                    await self._send(producer)
                await asyncio.sleep(random.expovariate(1 / SEND_S))
        await asyncio.sleep(stage.seconds)

    async def _send(self, producer: Producer) -> None:
        random, now = self.stage.random, self.stage.world.now
        number = self._ids
        if number and random.random() < AGAIN:
            number = max(0, number - random.randrange(1, RECENT))
        else:
            self._ids += 1
        value = b"%d" % len(self._sent)
        self._sent[value] = now
        headers: list[tuple[str, bytes | None]] = [(header_names.DEDUP_ID, b"id-%d" % number)]
        partition = number % PARTITIONS
        await producer.send(TOPIC, value, headers=headers, partition=partition, timestamp=timestamp_ms(now))

    async def _consume(self, client: Client) -> None:
        await self._create(client)
        stage, random = self.stage, self.stage.random
        ends_at = stage.world.now + random.uniform(*MEMBER_S)
        async with ShareConsumer(client, GROUP, [TOPIC]) as consumer:
            while stage.world.now < ends_at:
                messages = await consumer.poll(20, 500)
                for message in messages:
                    position = Position(message.partition, message.offset)
                    self._delivered.add((position, message.value or b""))
                if random.random() < SETTLED:
                    await consumer.settle(messages)
                await asyncio.sleep(random.expovariate(1 / SEND_S))

    # --- the end

    async def finish(self, client: Client) -> None:
        parts = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        ends_at = self.stage.world.now + DRAIN_S
        while self.stage.world.now < ends_at:
            lags = [found.lag for found in (await subscriptions.positions(client, GROUP)).values()]
            if len(lags) == PARTITIONS and not any(lags):
                break
            await asyncio.sleep(0.5)
        else:
            self.stage.broken("A2", f"{GROUP}: not everything was delivered in the calm: {lags}")
        for part, record in await read_all(client, parts):
            position, value = Position(part.partition, record.offset), record.value or b""
            message = Identified(
                position,
                record.timestamp,
                dict(record.headers)[header_names.DEDUP_ID] or b"",
                value,
                (position, value) in self._delivered,
                self._sent[value] <= lost_until(self.stage),
            )
            self._found.append(message)
            if not message.is_delivered:
                self.stage.world.sometimes("repeated: a duplicate was left out")

    def check(self) -> Iterator[Violation]:
        yield from x1_duplicates.check(TOPIC, self._found, WINDOW_MS)
