"""Bytes that other clients write are read by ours, and the other way round, with every compression."""

from __future__ import annotations

import asyncio
from typing import Any

import confluent_kafka
import pytest

from postroad.client import EARLIEST, Client, Consumer, Producer, TopicPartition
from postroad.testing import Node
from postroad.wire.compression import NAMES

from .conftest import TopicMaker

MESSAGES = [(b"key %d" % n, b"value %d " % n * 30, [("h", b"%d" % n), ("null", None)]) for n in range(500)]
PATIENCE_S = 30.0


@pytest.mark.parametrize("compression", NAMES)
async def test_librdkafka_reads_what_we_write(
    client: Client, new_topic: TopicMaker, postroad_session: Node, compression: str
) -> None:
    topic = await new_topic()
    async with Producer(client, compression=compression) as producer:
        for key, value, headers in MESSAGES:
            await producer.send(topic, value, key=key, headers=headers)

    def read() -> list[tuple[bytes, bytes, list[tuple[str, bytes | None]]]]:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": postroad_session.bootstrap, "group.id": topic, "check.crcs": True}
        )
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        found = consumer.consume(len(MESSAGES), PATIENCE_S)
        consumer.close()
        return [(message.key(), message.value(), message.headers()) for message in found]

    assert await asyncio.to_thread(read) == MESSAGES


@pytest.mark.parametrize("compression", NAMES)
async def test_we_read_what_librdkafka_writes(
    client: Client, new_topic: TopicMaker, postroad_session: Node, compression: str
) -> None:
    topic = await new_topic()

    def write() -> int:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": postroad_session.bootstrap,
                "compression.type": compression,
                "linger.ms": 20,
            }
        )
        for key, value, headers in MESSAGES:
            producer.produce(topic, value, key, headers=headers)
        return int(producer.flush(PATIENCE_S))

    assert await asyncio.to_thread(write) == 0
    found: list[Any] = []
    async with Consumer(client) as consumer:
        await consumer.assign({TopicPartition(topic, 0): EARLIEST})
        while len(found) < len(MESSAGES):
            fetched = await consumer.poll(PATIENCE_S)
            assert fetched
            found += [(r.key, r.value, r.headers) for part in fetched for r in part.records]
    assert found == MESSAGES


async def test_keys_go_to_the_same_partitions_as_librdkafkas_murmur2(
    client: Client, new_topic: TopicMaker, postroad_session: Node
) -> None:
    topic = await new_topic(partitions=7)
    theirs: dict[bytes, int] = {}

    def write() -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": postroad_session.bootstrap, "partitioner": "murmur2_random"}
        )
        for key, _, _ in MESSAGES[:50]:
            producer.produce(
                topic, b"", key, on_delivery=lambda _, m: theirs.update({m.key(): m.partition()})
            )
        producer.flush(PATIENCE_S)

    await asyncio.to_thread(write)
    async with Producer(client) as producer:
        sent = {key: await producer.send(topic, b"", key=key) for key, _, _ in MESSAGES[:50]}
        assert {key: (await delivery).partition for key, delivery in sent.items()} == theirs
