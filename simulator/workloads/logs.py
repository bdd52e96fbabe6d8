"""Topics as logs: producers that ask for each kind of acknowledgement, and readers that follow them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from postroad.client import topics
from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST
from postroad.client.producer import Delivery, Producer
from postroad.errors import PostroadError, TopicAlreadyExists
from postroad.wire.records import Record
from simulator.checkers import f1_found, l1_acknowledged, l2_one_value, l3_once
from simulator.violation import Violation
from simulator.workloads.log_history import LogHistory, Position, Told
from simulator.workloads.lookups import look_up
from simulator.workloads.topic_reader import read_all
from simulator.workloads.workload import Role, Stage, Workload

PARTITIONS: Final = 3
PAUSE_S: Final = 0.4  # between the bursts of a producer, in the mean; the same between two polls of a reader
BURST_MAX: Final = 8
ONE_PARTITION: Final = 0.5  # of the bursts: requests that repeat each other take a short way in the broker
SHORT_SEGMENTS: Final = ("log-plain", "log-leader")  # an index is written when its segment is full
SEGMENT_BYTES: Final = 3_000
NEVER: Final = -1.0
ON_ITS_WAY_S: Final = 15.0  # an answer takes no longer, cuts of the network included


class Logs(Workload):
    name = "logs"
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._histories = {
            "safe": LogHistory("log-safe", acks=-1, idempotent=True),
            "plain": LogHistory("log-plain", acks=-1, idempotent=False),
            "leader": LogHistory("log-leader", acks=1, idempotent=False),
            "careless": LogHistory("log-careless", acks=0, idempotent=False),
        }
        self._numbers = 0
        self._misled: list[Violation] = []  # seen when all was read in the end

    def roles(self) -> Mapping[str, Role]:
        producers = {name: partial(self._produce, name, found) for name, found in self._histories.items()}
        return {**producers, "reader": self._read}

    # --- roles

    async def _ensure(self, client: Client, topic: str) -> None:
        """The topic exists afterwards, with dense indexes, some on the disk: they are to meet faults."""
        config = {"index.interval.bytes": "200"}
        if topic in SHORT_SEGMENTS:
            config["segment.bytes"] = str(SEGMENT_BYTES)
        with contextlib.suppress(TopicAlreadyExists):
            await topics.create(client, topic, partitions=PARTITIONS, config=config)

    async def _produce(self, name: str, history: LogHistory, client: Client) -> None:
        stage, random = self.stage, self.stage.random
        await self._ensure(client, history.topic)
        self._numbers += 1
        producer_name = f"{name}-{self._numbers}"
        async with Producer(client, acks=history.acks, idempotent=history.idempotent) as producer:
            while not stage.calm:
                partition = random.randrange(PARTITIONS) if random.random() < ONE_PARTITION else None
                for _ in range(random.randrange(1, BURST_MAX)):
                    await self._send(producer, producer_name, history, partition)
                await asyncio.sleep(random.expovariate(1 / PAUSE_S))
            await asyncio.sleep(stage.seconds)

    async def _send(
        self, producer: Producer, producer_name: str, history: LogHistory, partition: int | None = None
    ) -> None:
        random = self.stage.random
        partition = random.randrange(PARTITIONS) if partition is None else partition
        value = b"%d.%s" % (len(history.sent), b"x" * random.randrange(200))
        history.sent[value] = self.stage.world.now
        history.in_doubt[value] = None
        delivery = await producer.send(history.topic, value, partition=partition)
        delivery.then(partial(self._delivered, delivery, producer_name, history, value))

    def _delivered(self, delivery: Delivery, producer: str, history: LogHistory, value: bytes) -> None:
        try:
            sent = delivery.result()
        except (PostroadError, asyncio.CancelledError):
            return
        if sent.offset < 0:
            return
        del history.in_doubt[value]
        position, told = Position(sent.partition, sent.offset), Told(value, history.sent[value])
        before, lost_until = history.acknowledged.get(position), self.lost_until(history)
        if before is not None and before.at > lost_until:
            self.stage.broken("L2", f"{history.topic}: two messages were acknowledged at {tuple(position)}")
        if not history.rises(producer, position, told.at, lost_until):
            self.stage.broken("L6", f"{history.topic}: {producer} was told {tuple(position)} too late")
        history.acknowledged[position] = told

    async def _read(self, client: Client) -> None:
        """Follows all topics for a while, each from some offset on; the next one begins anew."""
        histories = {history.topic: history for history in self._histories.values()}
        for topic in histories:
            await self._ensure(client, topic)
        ends_at = self.stage.world.now + self.stage.random.uniform(5, 40)
        parts = [TopicPartition(topic, n) for topic in histories for n in range(PARTITIONS)]
        following = {part: self._beginning(histories[part.topic], part.partition) for part in parts}
        async with Consumer(client, reset=EARLIEST, rack=self._rack()) as consumer:
            await consumer.assign(following)
            while self.stage.world.now < ends_at:
                for part, records, _ in await consumer.poll(1.0):
                    self._came(consumer)
                    self._follow(histories[part.topic], part, records, following)
                await asyncio.sleep(self.stage.random.expovariate(1 / PAUSE_S))

    def _rack(self) -> str:
        """Where a reader is."""
        return ""

    def _came(self, consumer: Consumer) -> None:
        """Records came to a reader."""

    def _beginning(self, history: LogHistory, partition: int) -> int:
        """The start, or in the midst of what is there; of what may be lost nobody knows where that is."""
        if self._may_be_lost(history):
            return 0
        return (
            self.stage.random.choice([0, *history.lasting(partition)])
            if self.stage.random.random() < 0.5
            else 0
        )

    def _follow(
        self,
        history: LogHistory,
        part: TopicPartition,
        records: Sequence[Record],
        following: dict[TopicPartition, int],
    ) -> None:
        """L5: neither a gap nor a step back."""
        for record in records:
            expected = following[part]
            if record.offset != expected and not self.stage.losses(history.topic):
                self.stage.broken("L5", f"{part}: {record.offset} came where {expected} was next")
            following[part] = record.offset + 1
            self._saw(history, Position(part.partition, record.offset), record.value or b"")

    def _saw(self, history: LogHistory, position: Position, value: bytes) -> None:
        told = history.seen.setdefault(position, Told(value, self.stage.world.now))
        if told.value != value:
            if told.at > self._unseen_until(history):
                self.stage.broken("L2", f"{history.topic}: {tuple(position)} has two values")
            history.seen[position] = Told(value, self.stage.world.now)

    # --- the end

    async def finish(self, client: Client) -> None:
        for history in self._histories.values():
            await self._read_all(client, history)

    async def _read_all(self, client: Client, history: LogHistory) -> None:
        parts = [TopicPartition(history.topic, n) for n in range(PARTITIONS)]
        async with Producer(client) as producer:
            for part in parts:  # it can be written again
                await self._send(producer, "probe", history, part.partition)
        records: dict[TopicPartition, list[Record]] = {part: [] for part in parts}
        for part, record in await read_all(client, parts):
            records[part].append(record)
            history.final[Position(part.partition, record.offset)] = record.value or b""
        found = await look_up(client, self.stage.random, records)
        self._misled += f1_found.check(found, records)

    def check(self) -> Iterator[Violation]:
        yield from self._misled
        for history in self._histories.values():
            lost_until = self.lost_until(history)
            yield from l1_acknowledged.check(history, lost_until)
            yield from l2_one_value.check(history, self._unseen_until(history))
            yield from l3_once.check(history)

    def lost_until(self, history: LogHistory) -> float:
        """The last power cut that may have taken what was acknowledged before it."""
        if self._may_be_lost(history):
            return self.stage.world.now
        cuts = self.stage.losses(history.topic) if history.acks == -1 else self.stage.power_cuts
        return cuts[-1] if cuts else NEVER

    def _may_be_lost(self, history: LogHistory) -> bool:
        """Whether only the leader has what it acknowledges: the next one may have less."""
        return self.stage.is_cluster and history.acks != -1

    def _unseen_until(self, history: LogHistory) -> float:
        """The same for what was read: consumers see what is as safe as acks=all. An answer may have been on
        its way when the power failed."""
        cuts = self.stage.losses(history.topic)
        return cuts[-1] + ON_ITS_WAY_S if cuts else NEVER
