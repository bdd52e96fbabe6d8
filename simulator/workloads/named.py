"""Publishing under a name (`client.publish_once`): clients repeat what they and others published."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from postroad.client import publish_once
from postroad.client.client import Client
from postroad.client.metadata import Topic, TopicPartition
from postroad.client.producer import Sent
from postroad.client.publish_once import Once
from postroad.errors import OutOfOrderSequence
from simulator.checkers import i1_names, l1_acknowledged, l3_once
from simulator.violation import Violation
from simulator.workloads.attempt import Attempt
from simulator.workloads.log_history import LogHistory, Position, Told
from simulator.workloads.log_writer import create_topic, lost_until
from simulator.workloads.topic_reader import read_all
from simulator.workloads.workload import Role, Stage, Workload

TOPIC: Final = "named"
PARTITIONS: Final = 2
PAUSE_S: Final = 0.4
AGAIN: Final = 0.6  # the part of the attempts that repeats a name
RECENT: Final = 6  # names that are repeated are among so many of the last
OTHER: Final = 0.1  # the part of the attempts with another content
MESSAGES_MAX: Final = 3


class Message(NamedTuple):
    """What `publish_once` takes. Without a partition it goes where its key or the name says."""

    value: bytes
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int | None = None
    partition: int | None = None


class Named(Workload):
    name = "named"
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._numbers = 0
        self._history = LogHistory(TOPIC, acks=-1, idempotent=False)  # I1 says how often a value may be there
        self._attempts: list[Attempt] = []

    def roles(self) -> Mapping[str, Role]:
        return {"publisher-1": self._publish, "publisher-2": self._publish}

    async def _publish(self, client: Client) -> None:
        stage, random = self.stage, self.stage.random
        await create_topic(client, TOPIC, PARTITIONS, {})
        topic = await client.topic(TOPIC)
        while not stage.calm:
            number = self._numbers
            if number and random.random() < AGAIN:
                number = max(0, number - random.randrange(1, RECENT))
            else:
                self._numbers += 1
            await self._attempt(client, topic, number, is_other=random.random() < OTHER)
            await asyncio.sleep(random.expovariate(1 / PAUSE_S))
        await asyncio.sleep(stage.seconds)

    async def _attempt(self, client: Client, topic: Topic, number: int, is_other: bool) -> None:
        """The number says what is published, so that a repetition is one."""
        name, content = b"name-%d" % number, b"other" if is_other else b"usual"
        values = [b"%s.%s.%d" % (name, content, index) for index in range(1 + number % MESSAGES_MAX)]
        asked = self.stage.world.now
        for value in values:
            self._history.sent.setdefault(value, asked)
        messages = [Message(value) for value in values]
        outcomes = await publish_once.publish(client, topic, messages, Once(name, content))
        sent = [outcome for outcome in outcomes if isinstance(outcome, Sent)]
        if any(isinstance(outcome, OutOfOrderSequence) for outcome in outcomes):
            self.stage.world.sometimes("named: another content was refused")
        if len(sent) < len(values):
            self._attempts.append(Attempt(name, content, asked))
            return
        self._attempts.append(Attempt(name, content, asked, self.stage.world.now))
        for value, where in zip(values, sent, strict=True):
            if where.offset >= 0:
                self._note(Position(where.partition, where.offset), value, asked)

    def _note(self, position: Position, value: bytes, asked: float) -> None:
        before = self._history.acknowledged.get(position)
        if before is None:
            self._history.acknowledged[position] = Told(value, asked)
        elif before.value == value:
            self.stage.world.sometimes("named: a repetition was answered with where it was stored first")
        elif before.at > lost_until(self.stage):
            self.stage.broken("L2", f"{TOPIC}: two messages were acknowledged at {tuple(position)}")
        else:
            self._history.acknowledged[position] = Told(value, asked)

    # --- the end

    async def finish(self, client: Client) -> None:
        parts = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        for part, record in await read_all(client, parts):
            self._history.final[Position(part.partition, record.offset)] = record.value or b""

    def check(self) -> Iterator[Violation]:
        lost = lost_until(self.stage)
        yield from l1_acknowledged.check(self._history, lost)
        yield from l3_once.check(self._history)
        yield from i1_names.check(self._history, self._attempts, self.stage.passed_ms, lost)
