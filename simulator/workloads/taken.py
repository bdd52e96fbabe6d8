"""Workers that take messages from a queue, write what comes of them and accept them, in one transaction.

Some abort, leave, or sleep longer than their time-out; ids are fewer than workers, so they fence each other.
Locks end in the midst of it. A straggler repeats the verdict of a transaction while the next one is open, as
a coordinator does that was not answered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from postroad.client import offsets, subscriptions
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from postroad.client.producer import Producer
from postroad.client.share_consumer import ShareConsumer
from postroad.client.share_message import AckType, ShareMessage
from postroad.client.transactions import TransactionalProducer
from postroad.errors import (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidRecordState,
    PostroadError,
    ProducerFenced,
    TryAgain,
)
from postroad.wire import peer
from simulator.checkers import s14_taken
from simulator.violation import Violation
from simulator.workloads.log_history import Position
from simulator.workloads.log_writer import create_topic
from simulator.workloads.taken_history import TakenHistory
from simulator.workloads.topic_reader import read_all
from simulator.workloads.transaction_history import OUT_PARTITIONS, Attempt
from simulator.workloads.workload import Role, Stage, Workload

SOURCE: Final = "taken-jobs"
TARGET: Final = "taken-results"
GROUP: Final = "taken-workers"
NAMES: Final = ("taken-a", "taken-b")  # fewer than workers: they fence each other now and then
LATE: Final = "taken-late"
PARTITIONS: Final = 2
WORKERS: Final = 3
CONFIG: Final = {
    "postroad.topics": SOURCE,
    "share.auto.offset.reset": "earliest",
    "share.record.lock.duration.ms": "2000",
    "share.delivery.count.limit": "0",
}
SEND_S: Final = 0.7
BURST_MAX: Final = 5
POLL_MS: Final = 400
PAUSE_S: Final = 0.3
LIFE_S: Final = (3.0, 25.0)
NAP_S: Final = (0.2, 9.0)  # in the midst of a transaction: sometimes longer than its time-out
TIMEOUT_MS: Final = 5_000
CALL_S: Final = (0.4, 1.5, 8.0)
LATE_S: Final = 1.0
DRAIN_S: Final = 30.0

LEAVE, NAP, ABORT, RELEASE, COMMIT = "leave", "nap", "abort", "release", "commit"
FATES: Final = (LEAVE, NAP, NAP, RELEASE, *(ABORT,) * 3, *(COMMIT,) * 5)
GONE: Final = (ProducerFenced, InvalidProducerEpoch, InvalidProducerIdMapping)


class Taken(Workload):
    name = "taken"
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._history = TakenHistory()
        self._numbers = count()
        self._is_ready = False

    def roles(self) -> Mapping[str, Role]:
        workers = {f"worker-{number}": self._work for number in range(1, WORKERS + 1)}
        return {"producer": self._produce, **workers, "straggler": self._straggle}

    @property
    def is_kept(self) -> bool:
        """No power cut has taken what was acknowledged: then nothing is promised of transactions."""
        return not self.stage.losses()

    async def _ensure(self, client: Client) -> None:
        if self._is_ready:
            return
        await create_topic(client, SOURCE, PARTITIONS, {})
        await create_topic(client, TARGET, OUT_PARTITIONS, {})
        await subscriptions.alter_config(client, GROUP, CONFIG)
        self._is_ready = True

    # --- roles

    async def _produce(self, client: Client) -> None:
        stage, random = self.stage, self.stage.random
        await self._ensure(client)
        async with Producer(client) as producer:
            while not stage.calm:
                for _ in range(random.randrange(1, BURST_MAX)):
                    value = b"%d" % next(self._numbers)
                    await producer.send(SOURCE, value, partition=random.randrange(PARTITIONS))
                await asyncio.sleep(random.expovariate(1 / SEND_S))
        await asyncio.sleep(stage.seconds)

    async def _work(self, client: Client) -> None:
        stage, random = self.stage, self.stage.random
        await self._ensure(client)
        ends_at = stage.world.now + random.uniform(*LIFE_S)
        name, call_s = random.choice(NAMES), random.choice(CALL_S)
        producer = await TransactionalProducer.begin(client, name, timeout_ms=TIMEOUT_MS, call_s=call_s)
        async with ShareConsumer(client, GROUP, [SOURCE]) as consumer:
            while stage.world.now < ends_at:
                messages = await consumer.poll(random.choice((1, 3, 10)), POLL_MS)
                fate = COMMIT if stage.calm else random.choice(FATES)
                if messages and not await self._answer(producer, consumer, messages, fate):
                    return
                await asyncio.sleep(random.expovariate(1 / PAUSE_S))

    async def _answer(
        self,
        producer: TransactionalProducer,
        consumer: ShareConsumer,
        messages: Sequence[ShareMessage],
        fate: str,
    ) -> bool:
        """One transaction; False: the worker has gone in the midst of it."""
        stage = self.stage
        if fate == RELEASE:
            await consumer.settle(messages, AckType.RELEASE)
            return True
        attempt = self._begin(messages)
        try:
            await self._fill(producer, consumer, messages, attempt, fate)
            if fate == LEAVE:
                stage.world.sometimes("taken: a worker left with messages pledged")
                return False
            if fate != ABORT:
                await self._commit(producer, attempt)
                return True
        except GONE:
            stage.world.sometimes("taken: a producer was fenced")
            raise
        except InvalidRecordState:
            stage.world.sometimes("taken: a lock had ended")
        except TryAgain:
            if attempt.asked <= stage.world.now:
                stage.world.sometimes("taken: nobody knew of a commit")
                raise
        await producer.abort()
        attempt.aborted = stage.world.now
        stage.world.sometimes("taken: one was aborted")
        return True

    def _begin(self, messages: Sequence[ShareMessage]) -> Attempt:
        inputs = [Position(message.partition, message.offset) for message in messages]
        return self._history.transactions.begin(inputs, self.stage.world.now)

    async def _fill(
        self,
        producer: TransactionalProducer,
        consumer: ShareConsumer,
        messages: Sequence[ShareMessage],
        attempt: Attempt,
        fate: str,
    ) -> None:
        """Answers first, or what is accepted first; it must not matter."""
        random = self.stage.random
        accepts_first = random.random() < 0.5
        if accepts_first:
            await self._accept(producer, consumer, messages)
        for partition, values in attempt.outputs():
            await producer.send(TopicPartition(TARGET, partition), values)
        if fate == NAP:
            await asyncio.sleep(random.uniform(*NAP_S))
        if not accepts_first:
            await self._accept(producer, consumer, messages)

    async def _accept(
        self, producer: TransactionalProducer, consumer: ShareConsumer, messages: Sequence[ShareMessage]
    ) -> None:
        half = self.stage.random.randrange(len(messages) + 1)
        await producer.acknowledge(consumer, messages[:half])
        await producer.acknowledge(consumer, messages[half:])
        self.stage.world.sometimes("taken: messages were pledged")

    async def _commit(self, producer: TransactionalProducer, attempt: Attempt) -> None:
        attempt.asked = self.stage.world.now
        await producer.commit()
        attempt.committed = self.stage.world.now
        self.stage.world.sometimes("taken: one was committed")

    async def _straggle(self, client: Client) -> None:
        """A commit, and its verdict once more while the next transaction is open, which is aborted."""
        stage, random = self.stage, self.stage.random
        await self._ensure(client)
        producer = await TransactionalProducer.begin(client, LATE, timeout_ms=TIMEOUT_MS)
        async with ShareConsumer(client, GROUP, [SOURCE]) as consumer:
            while not stage.calm:
                if messages := await consumer.poll(2, POLL_MS):
                    await self._answer(producer, consumer, messages, COMMIT)
                    if messages := await consumer.poll(2, POLL_MS):
                        await self._abort_late(client, producer, consumer, messages)
                await asyncio.sleep(random.expovariate(1 / LATE_S))
        await asyncio.sleep(stage.seconds)

    async def _abort_late(
        self,
        client: Client,
        producer: TransactionalProducer,
        consumer: ShareConsumer,
        messages: Sequence[ShareMessage],
    ) -> None:
        """The verdict of the transaction before has the epoch of this one."""
        attempt = self._begin(messages)
        try:
            await self._fill(producer, consumer, messages, attempt, ABORT)
            producer_id, epoch, _ = producer.take_part()
            await self._repeat_commit(client, messages, producer_id, epoch)
        except InvalidRecordState:
            self.stage.world.sometimes("taken: a lock had ended")
        await producer.abort()
        attempt.aborted = self.stage.world.now

    async def _repeat_commit(
        self, client: Client, messages: Sequence[ShareMessage], producer_id: int, epoch: int
    ) -> None:
        topic = await client.topic(SOURCE)
        for index in {message.partition for message in messages}:
            question = peer.EndPledges([(topic.id, index)], producer_id, epoch, commit=True)
            with contextlib.suppress(PostroadError):
                node = await client.leader(SOURCE, index)
                await client.call(peer, question, node=node, timeout_s=CALL_S[1], version=peer.MAX_VERSION)
        self.stage.world.sometimes("taken: a verdict came late")

    # --- the end

    async def finish(self, client: Client) -> None:
        """Until everything is stable and done."""
        ends_at = self.stage.world.now + DRAIN_S
        while left := await self._left(client):
            if self.stage.world.now > ends_at:
                self.stage.broken("A2", f"{GROUP}: not done in the calm: {left}")
                break
            await asyncio.sleep(0.5)
        history = self._history
        found = await read_all(client, _targets(), READ_COMMITTED)
        history.transactions.final = [record.value or b"" for _, record in found]
        history.inputs = [
            Position(part.partition, record.offset) for part, record in await read_all(client, _sources())
        ]

    async def _left(self, client: Client) -> str:
        found = await subscriptions.positions(client, GROUP)
        behind = {str(part): position.lag for part, position in found.items() if position.lag}
        stable = await offsets.latest(client, _targets(), READ_COMMITTED)
        ends = await offsets.latest(client, _targets(), READ_UNCOMMITTED)
        unstable = {str(part): end - stable[part] for part, end in ends.items() if stable[part] != end}
        is_done = len(found) == PARTITIONS and not behind and not unstable
        return "" if is_done else f"{len(found)} partitions, behind {behind}, unstable {unstable}"

    def check(self) -> Iterator[Violation]:
        if self.is_kept:
            yield from s14_taken.check(self._history)


def _sources() -> list[TopicPartition]:
    return [TopicPartition(SOURCE, number) for number in range(PARTITIONS)]


def _targets() -> list[TopicPartition]:
    return [TopicPartition(TARGET, number) for number in range(OUT_PARTITIONS)]
