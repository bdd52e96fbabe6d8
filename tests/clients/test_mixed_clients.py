"""Every client reads what every other client wrote, in every compression."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from confluent_kafka import OFFSET_BEGINNING
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import TopicPartition as PythonPartition

from . import confluent, python_kafka
from .confluent import EVERY_COMPRESSION
from .conftest import Broker
from .test_aiokafka_messages import reading, take

Seen = list[tuple[int, bytes | None, bytes | None]]
EACH = 40


@pytest.mark.parametrize("compression", EVERY_COMPRESSION)
async def test_all_read_what_all_wrote(broker: Broker, topic: str, compression: str) -> None:
    codec = None if compression == "none" else compression
    messages = [(f"key-{n}".encode(), b"value %d " % n * 30) for n in range(EACH)]
    through = confluent.producer(broker.bootstrap, compression_type=compression, linger_ms=20)
    confluent.send_all(
        through, topic, ({"key": key, "value": value, "partition": 0} for key, value in messages)
    )
    with python_kafka.producer(broker.bootstrap, compression_type=codec, linger_ms=20) as blocking:
        for key, value in messages:
            blocking.send(topic, value, key=key, partition=0)
    settings = {"bootstrap_servers": broker.bootstrap, "compression_type": codec, "linger_ms": 20}
    async with AIOKafkaProducer(**settings) as waiting:
        for key, value in messages:
            await waiting.send(topic, value, key=key, partition=0)

    wanted: Seen = [(offset, *messages[offset % EACH]) for offset in range(3 * EACH)]
    assert with_confluent(broker, topic) == wanted
    assert with_kafka_python(broker, topic) == wanted
    assert await with_aiokafka(broker, topic) == wanted


def with_confluent(broker: Broker, topic: str) -> Seen:
    start = ConfluentPartition(topic, 0, OFFSET_BEGINNING)
    seen = confluent.read_from(broker.bootstrap, start, 3 * EACH, check_crcs=True)
    return [(message.offset(), message.key(), message.value()) for message in seen]


def with_kafka_python(broker: Broker, topic: str) -> Seen:
    with python_kafka.consumer(broker.bootstrap) as source:
        source.assign([PythonPartition(topic, 0)])
        return [(seen.offset, seen.key, seen.value) for seen in python_kafka.read(source, 3 * EACH)]


async def with_aiokafka(broker: Broker, topic: str) -> Seen:
    async with reading(broker, TopicPartition(topic, 0)) as source:
        return [(seen.offset, seen.key, seen.value) for seen in await take(source, 3 * EACH)]
