"""Messages that are rejected, and an operator who sends their dead letters back (`client.redrive`).

Another subscription of the same topic accepts everything, and must not see what was sent back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Final

from postroad.client import subscriptions
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.producer import Delivery, Producer
from postroad.client.redrive import Redrive
from postroad.client.share_consumer import ShareConsumer
from postroad.client.share_message import AckType, ShareMessage
from postroad.errors import PostroadError, RequestRefused
from simulator.checkers import v1_redriven
from simulator.process import Process
from simulator.runtime import ClientRuntime
from simulator.violation import Violation
from simulator.workloads.log_history import Position
from simulator.workloads.log_writer import create_topic, lost_until
from simulator.workloads.redriven_history import Copy, RedrivenHistory, SentOut
from simulator.workloads.topic_reader import read_all
from simulator.workloads.workload import Role, Stage, Workload

TOPIC: Final = "redriven"
JOBS, OTHERS = "redriven-jobs", "redriven-others"
DEAD: Final = "redriven-jobs.dead"
PARTITIONS: Final = 2
CONFIGS: Final = {
    JOBS: {"postroad.dead.letters": "true", "share.delivery.count.limit": "0"},
    OTHERS: {"postroad.dead.letters": "false", "share.delivery.count.limit": "0"},
}
SHARED: Final = {
    "postroad.topics": TOPIC,
    "share.auto.offset.reset": "earliest",
    "share.record.lock.duration.ms": "1000",
}
DEATHS: Final = (0, 0, 0, 1, 1, 2)  # in how many lives a message is rejected
SEND_S: Final = 0.8
BURST_MAX: Final = 4
POLL_S: Final = 0.5
MEMBER_S: Final = (4.0, 15.0)
REDRIVE_S: Final = 2.0  # between two redrives, in the mean
KILLED: Final = 0.6  # the part of them that is killed, if it takes long enough
KILL_S: Final = 0.03  # after so long, in the mean: about as long as it takes to send letters back
RUN_S: Final = 20.0  # the longest that one may take
STEP_S: Final = 0.002
DRAIN_S: Final = 25.0


class Redriven(Workload):
    name = "redriven"
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._history = RedrivenHistory(TOPIC, JOBS)
        self._is_ready = False
        self._numbers = count(1)

    def roles(self) -> Mapping[str, Role]:
        return {
            "producer": self._produce,
            "jobs": partial(self._consume, JOBS),
            "others": partial(self._consume, OTHERS),
            "operator": self._operate,
        }

    async def _create(self, client: Client) -> None:
        if self._is_ready:
            return
        await create_topic(client, TOPIC, PARTITIONS, {})
        for name, configs in CONFIGS.items():
            await subscriptions.alter_config(client, name, {**SHARED, **configs})
        self._is_ready = True

    # --- roles

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
        random, number = self.stage.random, len(self._history.sent)
        message = SentOut(
            b"%d" % number,
            b"key-%d" % (number % 5),
            [("colour", b"blue %d" % random.randrange(100))],
            random.choice(DEATHS),
            self.stage.world.now,
        )
        self._history.sent[message.value] = message
        delivery = await producer.send(TOPIC, message.value, key=message.key, headers=message.headers)
        delivery.then(partial(self._delivered, delivery, message))

    def _delivered(self, delivery: Delivery, message: SentOut) -> None:
        try:
            message.is_acknowledged = delivery.result().offset >= 0
        except (PostroadError, asyncio.CancelledError):
            return

    async def _consume(self, group: str, client: Client) -> None:
        await self._create(client)
        stage, random = self.stage, self.stage.random
        ends_at = stage.world.now + random.uniform(*MEMBER_S)
        async with ShareConsumer(client, group, [TOPIC]) as consumer:
            while stage.world.now < ends_at:
                messages = await consumer.poll(10, 500)
                if group == OTHERS:
                    self._history.came_to_others += [
                        (each.value or b"", _position(each)) for each in messages
                    ]
                    await consumer.settle(messages)
                else:
                    await self._work(consumer, messages)
                await asyncio.sleep(random.expovariate(1 / POLL_S))

    async def _work(self, consumer: ShareConsumer, messages: Sequence[ShareMessage]) -> None:
        accepted: list[ShareMessage] = []
        rejected: list[ShareMessage] = []
        for message in messages:
            sent, position = self._history.sent[message.value or b""], _position(message)
            if position not in sent.lives:
                sent.lives.append(position)
            (rejected if sent.lives.index(position) < sent.deaths else accepted).append(message)
        refusals = await consumer.settle(accepted)
        refused = [each.message for each in refusals if isinstance(each.error, RequestRefused)]
        for message in accepted:
            if message not in refused:
                self._history.sent[message.value or b""].may_be_accepted = True
        await consumer.settle(rejected, AckType.REJECT)

    async def _operate(self, client: Client) -> None:
        """Redrives, one after the other; in the calm `finish` goes on with them."""
        await self._create(client)
        while not self.stage.calm:
            await asyncio.sleep(self.stage.random.expovariate(1 / REDRIVE_S))
            if await client.topic_now(DEAD) is not None:
                await self._redrive_apart()
        await asyncio.sleep(self.stage.seconds)

    async def _redrive_apart(self) -> None:
        """A redrive in a process of its own, which may be killed in the midst of it."""
        world, random = self.stage.world, self.stage.random
        process = Process(world, f"redrive-{next(self._numbers)}")
        ends_at = world.now + (random.expovariate(1 / KILL_S) if random.random() < KILLED else RUN_S)
        task = process.start(self._run(process))
        while not task.done() and world.now < ends_at:  # noqa: ASYNC110 - it runs on another loop
            await asyncio.sleep(STEP_S)
        if not task.done():
            world.sometimes("redriven: a redrive was killed")
        process.end()

    async def _run(self, process: Process) -> None:
        runtime = ClientRuntime(process, self.stage.services[0].machine.network)
        addresses = ",".join(service.address for service in self.stage.services)
        bootstrap = self.stage.conditions.bootstrap(addresses)
        client = Client(bootstrap, client_id=process.name, timeout_s=RUN_S / 2, runtime=runtime)
        try:
            async with client:
                await self._redrive(client)
        except PostroadError as error:
            self.stage.world.note(process.name, "gave up", type(error).__name__)

    async def _redrive(self, client: Client) -> int:
        """How many letters were sent back."""
        self._history.doubtful_runs += 1  # unless all goes well
        report = await Redrive(client, DEAD).run(lambda seen, total: None)
        if not report.failed:
            self._history.doubtful_runs -= 1
        if report.sent:
            self.stage.world.sometimes("redriven: letters were sent back")
        return report.sent

    # --- the end

    async def finish(self, client: Client) -> None:
        """Until nothing is left to do, neither in the topic nor among the letters."""
        ends_at = self.stage.world.now + DRAIN_S
        while await self._is_at_work(client):
            if self.stage.world.now > ends_at:
                self.stage.broken("A2", f"{JOBS}: its letters were not all sent back and done in the calm")
                break
            await asyncio.sleep(0.5)
        for part, record in await read_all(client, _parts(TOPIC, PARTITIONS)):
            position = Position(part.partition, record.offset)
            self._history.copies.append(Copy(position, record.value or b"", record.key, record.headers))
        dead = await client.topic_now(DEAD)
        if dead is not None:
            for _, record in await read_all(client, _parts(DEAD, len(dead.partitions))):
                self._history.letters[record.value or b""] += 1
        if any(len(message.lives) > 2 for message in self._history.sent.values()):
            self.stage.world.sometimes("redriven: a message died twice and came to its end")

    async def _is_at_work(self, client: Client) -> bool:
        found = await subscriptions.positions(client, JOBS)
        if len(found) < PARTITIONS or any(position.lag for position in found.values()):
            return True
        if await client.topic_now(DEAD) is None:
            return False
        return await self._redrive(client) > 0

    def check(self) -> Iterator[Violation]:
        yield from v1_redriven.check(self._history, lost_until(self.stage))


def _position(message: ShareMessage) -> Position:
    return Position(message.partition, message.offset)


def _parts(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]
