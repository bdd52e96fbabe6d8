"""A topic that is created, given more partitions, deleted and created again while it is in use."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from postroad.client import offsets
from postroad.client.client import Client
from postroad.client.fetcher import Fetcher
from postroad.client.metadata import Topic, TopicPartition
from postroad.client.producer import Delivery, Producer
from postroad.client.topics import NODE_DEFAULT
from postroad.errors import PostroadError, by_code
from postroad.wire.messages import create_partitions, create_topics, delete_topics
from simulator.checkers import l1_acknowledged, l2_one_value, l3_once, t1_changes, t2_incarnations
from simulator.violation import Violation
from simulator.workloads.log_history import Position, Told
from simulator.workloads.log_writer import lost_until, saw, unseen_until
from simulator.workloads.recreated_history import Change, ChangeKind, Look, RecreatedHistory
from simulator.workloads.workload import Role, Stage, Workload

TOPIC: Final = "recreated"
CONFIG: Final = {"segment.bytes": "1500", "retention.ms": "-1"}
PARTITIONS_MAX: Final = 4
CHANGE_S: Final = 3.0  # between two changes, in the mean
CHANGE_MS: Final = 10_000  # the longest that a node may wait until others know of it
SEND_S: Final = 0.5
BURST_MAX: Final = 6
SIZE_MAX: Final = 150
READER_S: Final = 0.3  # between two looks at what is there
READ_S: Final = 5.0  # for each answer
PRODUCER_S: Final = 6.0  # then another one begins, which knows nothing of the topic


class Recreated(Workload):
    name = "recreated"
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._history = RecreatedHistory(TOPIC)
        self._last_id = b""  # of the topic that is there in the end

    def roles(self) -> Mapping[str, Role]:
        return {"operator": self._operate, "producer": self._produce, "reader": self._read}

    # --- the operator

    async def _operate(self, client: Client) -> None:
        while True:
            await asyncio.sleep(self.stage.random.expovariate(1 / CHANGE_S))
            topic = await self._look(client)
            if topic is None:
                await self._create(client)
            elif not self.stage.calm:
                await self._change(client, len(topic.partitions))

    async def _look(self, client: Client) -> Topic | None:
        asked, known = self.stage.world.now, self._told_until()
        topic = await client.topic_now(TOPIC)
        topic_id, partitions = (None, 0) if topic is None else (topic.id, len(topic.partitions))
        known = min(known, self._told_until(), asked)
        self._history.looks.append(Look(asked, self.stage.world.now, topic_id, partitions, known))
        return topic

    def _told_until(self) -> float:
        """A node of several answers with what the store has told it; a change is answered by one of them."""
        return self.stage.told_until() if self.stage.is_cluster else self.stage.world.now

    async def _create(self, client: Client) -> None:
        count = self.stage.random.randint(1, 2)
        configs = [create_topics.CreatableTopicConfig(name=key, value=value) for key, value in CONFIG.items()]
        topic = create_topics.CreatableTopic(
            name=TOPIC, num_partitions=count, replication_factor=NODE_DEFAULT, configs=configs
        )
        request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=CHANGE_MS)
        change = self._begin(ChangeKind.CREATE, count)
        await self._ask_once(client, create_topics, request, "topics")
        self._end(change)

    async def _change(self, client: Client, count: int) -> None:
        if count < PARTITIONS_MAX and self.stage.random.random() < 0.4:
            topic = create_partitions.CreatePartitionsTopic(name=TOPIC, count=count + 1)
            grow = create_partitions.CreatePartitionsRequest(topics=[topic], timeout_ms=CHANGE_MS)
            change = self._begin(ChangeKind.GROW, count + 1)
            await self._ask_once(client, create_partitions, grow, "results")
        else:
            state = delete_topics.DeleteTopicState(name=TOPIC)
            delete = delete_topics.DeleteTopicsRequest(
                topic_names=[TOPIC], topics=[state], timeout_ms=CHANGE_MS
            )
            change = self._begin(ChangeKind.DELETE, 0)
            await self._ask_once(client, delete_topics, delete, "responses")
        self._end(change)

    async def _ask_once(self, client: Client, api: Any, request: Any, results: str) -> None:
        """One request and no second one, as the client would send.

        A request that was not answered may lie at a node that is held up, and be carried out when a later one
        of the same kind has long been answered, and undone. So what is answered is known for certain only if
        nothing was sent before.
        """
        answer = await client.call(api, request, node=await client.controller())
        (result,) = getattr(answer, results)
        if result.error_code:
            raise by_code(result.error_code, result.error_message)
        client.forget()

    def _begin(self, kind: ChangeKind, partitions: int) -> Change:
        change = Change(kind, self.stage.world.now, partitions)
        self._history.changes.append(change)
        return change

    def _end(self, change: Change) -> None:
        change.told = self.stage.world.now
        self.stage.world.sometimes(f"recreated: {change.kind} was answered")

    # --- who uses it

    async def _produce(self, client: Client) -> None:
        stage, random = self.stage, self.stage.random
        ends_at = stage.world.now + random.expovariate(1 / PRODUCER_S)
        topic = await client.topic_now(TOPIC)
        async with Producer(client) as producer:
            while topic is not None and not stage.calm and stage.world.now < ends_at:
                for _ in range(random.randrange(1, BURST_MAX)):
                    if (
                        client.known_topic(TOPIC) is not None
                    ):  # or the send would create it: the operator's part
                        await self._send(producer, random.randrange(len(topic.partitions)))
                await asyncio.sleep(random.expovariate(1 / SEND_S))
                topic = await client.topic_now(TOPIC)

    async def _send(self, producer: Producer, partition: int) -> Delivery:
        sent, now = self._history.sent, self.stage.world.now
        value = b"%d.%s" % (len(sent), b"x" * self.stage.random.randrange(SIZE_MAX))
        sent[value] = now
        delivery = await producer.send(TOPIC, value, partition=partition)
        delivery.then(partial(self._delivered, delivery, value))
        return delivery

    def _delivered(self, delivery: Delivery, value: bytes) -> None:
        try:
            sent = delivery.result()
        except (PostroadError, asyncio.CancelledError):
            return
        if sent.offset < 0:
            return
        incarnation, position = (
            self._history.incarnation(sent.topic_id),
            Position(sent.partition, sent.offset),
        )
        before = incarnation.acknowledged.get(position)
        if before is not None and before.at > lost_until(self.stage):
            self.stage.broken("L2", f"{TOPIC}: two messages were acknowledged at {tuple(position)}")
        incarnation.acknowledged[position] = Told(value, self._history.sent[value])

    async def _read(self, client: Client) -> None:
        """Everything that is there, and what has come after a while; it counts where the topic is the same
        before and after."""
        random = self.stage.random
        await asyncio.sleep(random.uniform(0.5, 3.0))
        topic = await self._look(client)
        if topic is None:
            return
        found: dict[Position, bytes] = {}
        with contextlib.suppress(PostroadError):  # it may be gone by now
            found |= await self._read_all(client, topic)
            await asyncio.sleep(random.expovariate(1 / READER_S))
            found |= await self._read_all(client, topic)
        after = await self._look(client)
        if after is None or after.id != topic.id:
            self.stage.world.sometimes("recreated: a topic was deleted while somebody read it")
            return
        for position, value in found.items():
            saw(self.stage, self._history.incarnation(topic.id), position, value)

    async def _read_all(self, client: Client, topic: Topic) -> dict[Position, bytes]:
        """By the topic's id: a node that the store can't reach still tells of the topic before, and by name
        its leader would answer with messages of the one that is there now."""
        client.forget()
        parts = [TopicPartition(TOPIC, part.number) for part in topic.partitions]
        starts = await offsets.earliest(client, parts)
        ends = await offsets.latest(client, parts)
        self._history.first_offsets += [(topic.id, part.partition, at) for part, at in starts.items()]
        found: dict[Position, bytes] = {}
        fetcher = Fetcher(client, reset=None)
        try:
            fetcher.seek(starts, {TOPIC: topic.id})
            while any(fetcher.positions[part] < end for part, end in ends.items()):
                for part, records, _ in await fetcher.next(READ_S):
                    found |= {Position(part.partition, each.offset): each.value or b"" for each in records}
        finally:
            await fetcher.close()
        return found

    # --- the end

    async def finish(self, client: Client) -> None:
        topic = await self._look(client)
        while topic is None:  # the operator creates it, for it is calm
            await asyncio.sleep(0.5)
            topic = await self._look(client)
        client.forget()
        async with Producer(client) as producer:  # it can be written
            for part in topic.partitions:
                await (await self._send(producer, part.number))
        self._last_id = topic.id
        incarnation = self._history.incarnation(topic.id)
        incarnation.final = await self._read_all(client, topic)
        if len(self._history.incarnations) > 1 and len(incarnation.acknowledged) > len(topic.partitions):
            self.stage.world.sometimes("recreated: messages of a topic made anew outlived all faults")

    def check(self) -> Iterator[Violation]:
        states = self.stage.history.states
        self._history.created = {topic_id: stated[0].at for (topic_id, n), stated in states.items() if n == 0}
        yield from t1_changes.check(self._history)
        yield from t2_incarnations.check(self._history)
        incarnation = self._history.incarnation(self._last_id)
        yield from l1_acknowledged.check(incarnation, lost_until(self.stage))
        yield from l2_one_value.check(incarnation, unseen_until(self.stage))
        yield from l3_once.check(incarnation)
