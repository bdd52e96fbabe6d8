"""Fills the topics of the queues: idempotent, acks=all, with values that nobody sends twice."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from postroad.client.client import Client
from postroad.client.producer import Delivery, Producer
from postroad.errors import PostroadError
from postroad.wire import header_names
from simulator.clock import EPOCH_MS
from simulator.workloads.queue_history import Headers, Position
from simulator.workloads.queue_plan import TENANT_HEADER
from simulator.workloads.queue_topic import QueueTopic, SentMessage
from simulator.workloads.workload import Stage

PAUSE_S: Final = 0.25  # between the bursts, in the mean
BURST_MAX: Final = 5
KEYS: Final = 4  # for each partition: few, so that messages of one key wait for each other


class QueueProducer:
    def __init__(self, stage: Stage, topics: list[QueueTopic]) -> None:
        self._stage = stage
        self._random = stage.random
        self._topics = topics
        self.may_send = False

    async def live(self, client: Client) -> None:
        stage, random = self._stage, self._random
        async with Producer(client) as producer:
            while not stage.calm:
                if self.may_send:
                    for _ in range(random.randrange(1, BURST_MAX)):
                        await self._send(producer, random.choice(self._topics))
                await asyncio.sleep(random.expovariate(1 / PAUSE_S))
            await asyncio.sleep(stage.seconds)

    async def _send(self, producer: Producer, topic: QueueTopic) -> None:
        random = self._random
        partition = random.randrange(topic.partitions)
        key = (
            b"%d-%d" % (partition, random.randrange(KEYS)) if topic.keyed and random.random() < 0.9 else None
        )
        value = b"%s.%d.%s" % (topic.name.encode(), len(topic.sent), b"x" * random.randrange(100))
        message = SentMessage(value, key, self._headers(topic), self._stage.world.now)
        topic.sent[value] = message
        delivery = await producer.send(
            topic.name, value, key=key, headers=message.headers, partition=partition
        )
        delivery.then(partial(self._delivered, delivery, message))

    def _headers(self, topic: QueueTopic) -> Headers:
        random = self._random
        headers: list[tuple[str, bytes | None]] = [("colour", b"blue %d" % random.randrange(100))]
        headers.append((TENANT_HEADER, b"%d" % random.randrange(3)))
        if topic.delayed and random.random() < 0.5:
            ms = int(random.expovariate(1 / 3_000)) + 1
            now_ms = EPOCH_MS + int(self._stage.world.now * 1000)
            asked = random.choice((header_names.DELAY_MS, header_names.DELIVER_AT, header_names.EXPIRES_AT))
            headers.append((asked, b"%d" % (ms if asked == header_names.DELAY_MS else now_ms + ms)))
        return headers

    def _delivered(self, delivery: Delivery, message: SentMessage) -> None:
        try:
            sent = delivery.result()
        except (PostroadError, asyncio.CancelledError):
            return
        if sent.offset >= 0:
            message.position = Position(sent.topic, sent.partition, sent.offset)
            message.acknowledged_at = self._stage.world.now
