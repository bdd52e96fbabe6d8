"""A subscription that waits for transactions, over topics that several transactional producers write to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import count
from math import inf
from typing import Final

from postroad.client import offsets, subscriptions
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from postroad.client.producer import Producer
from postroad.client.share_consumer import ShareConsumer
from postroad.client.share_message import AckType
from postroad.client.transactions import TransactionalProducer
from postroad.errors import InvalidProducerEpoch, ProducerFenced, TryAgain
from simulator.checkers import s13_isolation
from simulator.violation import Violation
from simulator.workloads.isolated_history import IsolatedHistory
from simulator.workloads.log_history import Position
from simulator.workloads.log_writer import create_topic
from simulator.workloads.topic_reader import read_all
from simulator.workloads.transaction_history import NOWHERE, OUT_PARTITIONS, Attempt
from simulator.workloads.workload import Role, Stage, Workload

TOPIC: Final = "isolated"
GROUP: Final = "isolated-jobs"
STATE: Final = "__transaction_state"
NAMES: Final = ("isolated-a", "isolated-b")  # fewer than writers: they fence each other now and then
WRITERS: Final = 3
MEMBERS: Final = 2
CONFIG: Final = {
    "postroad.topics": TOPIC,
    "share.isolation.level": "read_committed",
    "share.auto.offset.reset": "earliest",
    "share.record.lock.duration.ms": "1000",
    "share.delivery.count.limit": "0",
}
MESSAGES_MAX: Final = 4
PAUSE_S: Final = 0.4
PLAIN_S: Final = 1.0
LIFE_S: Final = (3.0, 25.0)
NAP_S: Final = (0.2, 9.0)  # in the midst of a transaction: sometimes longer than its time-out
TIMEOUT_MS: Final = 5_000
CALL_S: Final = (0.4, 1.5, 8.0)
RELEASED: Final = 0.2  # of the messages, instead of being accepted
DRAIN_S: Final = 25.0

LEAVE, NAP, ABORT, COMMIT = "leave", "nap", "abort", "commit"
FATES: Final = (LEAVE, NAP, *(ABORT,) * 4, *(COMMIT,) * 5)


class Isolated(Workload):
    name = "isolated"
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._history = IsolatedHistory()
        self._numbers = count()
        self._is_ready = False

    def roles(self) -> Mapping[str, Role]:
        writers = {f"writer-{number}": self._write for number in range(1, WRITERS + 1)}
        members = {f"member-{number}": self._consume for number in range(1, MEMBERS + 1)}
        return {"plain": self._write_plainly, **writers, **members}

    @property
    def is_kept(self) -> bool:
        """No power cut has taken what was acknowledged: then nothing is promised of transactions."""
        return not self.stage.losses(TOPIC, STATE)

    async def _create(self, client: Client) -> None:
        if self._is_ready:
            return
        await create_topic(client, TOPIC, OUT_PARTITIONS, {})
        await subscriptions.alter_config(client, GROUP, CONFIG)
        self._is_ready = True

    # --- roles

    async def _write_plainly(self, client: Client) -> None:
        """Messages outside of transactions: they wait for those that are open before them."""
        stage, random = self.stage, self.stage.random
        await self._create(client)
        async with Producer(client) as producer:
            while not stage.calm:
                value = b"plain:%d" % next(self._numbers)
                await producer.send(TOPIC, value, partition=random.randrange(OUT_PARTITIONS))
                await asyncio.sleep(random.expovariate(1 / PLAIN_S))
        await asyncio.sleep(stage.seconds)

    async def _write(self, client: Client) -> None:
        stage, random = self.stage, self.stage.random
        await self._create(client)
        ends_at = stage.world.now + random.uniform(*LIFE_S)
        name, call_s = random.choice(NAMES), random.choice(CALL_S)
        producer = await TransactionalProducer.begin(client, name, timeout_ms=TIMEOUT_MS, call_s=call_s)
        while not stage.calm and stage.world.now < ends_at:
            if not await self._transact(producer):
                return
            await asyncio.sleep(random.expovariate(1 / PAUSE_S))
        if stage.calm:
            await asyncio.sleep(stage.seconds)

    async def _transact(self, producer: TransactionalProducer) -> bool:
        """One transaction; False: the writer has gone in the midst of it."""
        stage, random, history = self.stage, self.stage.random, self._history.transactions
        inputs = [Position(NOWHERE, next(self._numbers)) for _ in range(random.randrange(1, MESSAGES_MAX))]
        attempt, fate = history.begin(inputs, stage.world.now), random.choice(FATES)
        try:
            await self._fill(producer, attempt, fate)
            if fate == LEAVE:
                return False
            if fate != ABORT:
                attempt.asked = stage.world.now
                await producer.commit()
                attempt.committed = stage.world.now
                return True
        except (ProducerFenced, InvalidProducerEpoch):
            raise
        except TryAgain:
            if attempt.asked <= stage.world.now:
                raise
        await producer.abort()
        attempt.aborted = stage.world.now
        return True

    async def _fill(self, producer: TransactionalProducer, attempt: Attempt, fate: str) -> None:
        for partition, values in attempt.outputs():
            await producer.send(TopicPartition(TOPIC, partition), values)
            if fate == NAP:
                await asyncio.sleep(self.stage.random.uniform(*NAP_S))

    async def _consume(self, client: Client) -> None:
        stage, random = self.stage, self.stage.random
        await self._create(client)
        ends_at = stage.world.now + random.uniform(*LIFE_S)
        async with ShareConsumer(client, GROUP, [TOPIC]) as consumer:
            while stage.world.now < ends_at:
                messages = await consumer.poll(random.choice((1, 5, 20)), 500)
                for message in messages:
                    self._saw(message.value or b"")
                released = [each for each in messages if not stage.calm and random.random() < RELEASED]
                await consumer.settle(released, AckType.RELEASE)
                await consumer.settle([each for each in messages if each not in released])
                await asyncio.sleep(random.expovariate(1 / PAUSE_S))

    def _saw(self, value: bytes) -> None:
        """S13, as soon as it can be seen."""
        self._history.delivered[value] += 1
        for violation in s13_isolation.check_delivered(self._history, value):
            if self.is_kept:
                self.stage.broken(violation.invariant, violation.text)

    # --- the end

    async def finish(self, client: Client) -> None:
        """Until everything is stable and done."""
        ends_at = self.stage.world.now + DRAIN_S
        while left := await self._left(client):
            if self.stage.world.now > ends_at:
                self.stage.broken("A2", f"{GROUP}: not done in the calm: {left}")
                break
            await asyncio.sleep(0.5)
        found = await read_all(client, _parts(), READ_COMMITTED)
        self._history.found = [record.value or b"" for _, record in found]
        if any(attempt.aborted < inf for attempt in self._history.transactions.attempts.values()):
            self.stage.world.sometimes("isolated: a subscription passed over what was aborted")

    async def _left(self, client: Client) -> str:
        found = await subscriptions.positions(client, GROUP)
        behind = {str(part): position.lag for part, position in found.items() if position.lag}
        stable = await offsets.latest(client, _parts(), READ_COMMITTED)
        ends = await offsets.latest(client, _parts(), READ_UNCOMMITTED)
        unstable = {str(part): end - stable[part] for part, end in ends.items() if stable[part] != end}
        is_done = len(found) == OUT_PARTITIONS and not behind and not unstable
        return "" if is_done else f"{len(found)} partitions, behind {behind}, unstable {unstable}"

    def check(self) -> Iterator[Violation]:
        if self.is_kept:
            yield from s13_isolation.check(self._history)


def _parts() -> list[TopicPartition]:
    return [TopicPartition(TOPIC, number) for number in range(OUT_PARTITIONS)]
