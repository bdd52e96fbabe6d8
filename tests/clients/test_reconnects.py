"""An idempotent producer whose connections are cut again and again writes every message once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from . import confluent, python_kafka
from .conftest import Broker
from .proxy import CuttingProxy, cutting_proxy

MESSAGES = 600
CUT_EVERY = 10  # Produce requests


@pytest.fixture
def proxy(broker: Broker) -> Iterator[CuttingProxy]:
    with cutting_proxy(broker.host, broker.port, CUT_EVERY) as running:
        yield running


def assert_once_and_in_order(broker: Broker, topic: str, proxy: CuttingProxy) -> None:
    assert proxy.cuts["swallowed"] >= 3, proxy.cuts
    assert proxy.cuts["torn"] >= 3, proxy.cuts
    assert values_in(broker, topic) == list(range(MESSAGES))


def values_in(broker: Broker, topic: str) -> list[int]:
    with confluent.consumer(broker.bootstrap) as source:
        source.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        _, end = source.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
        return [int(message.value()) for message in confluent.read(source, end)]


def send_with_confluent(proxy: CuttingProxy, topic: str, idempotent: bool) -> None:
    through = confluent.producer(
        proxy.bootstrap,
        enable_idempotence=idempotent,
        batch_num_messages=5,
        linger_ms=1,
        reconnect_backoff_ms=10,
        reconnect_backoff_max_ms=50,
        retry_backoff_ms=10,
        retry_backoff_max_ms=20,
        max_in_flight_requests_per_connection=5,
    )
    confluent.send_all(through, topic, ({"value": str(n).encode(), "partition": 0} for n in range(MESSAGES)))


def test_the_same_cuts_repeat_messages_without_idempotence(
    broker: Broker, topic: str, proxy: CuttingProxy
) -> None:
    """Shows that the proxy does what the promises below need."""
    send_with_confluent(proxy, topic, idempotent=False)
    values = values_in(broker, topic)
    assert set(values) == set(range(MESSAGES))
    assert len(values) > MESSAGES


def test_confluent_writes_once_and_in_order(broker: Broker, topic: str, proxy: CuttingProxy) -> None:
    send_with_confluent(proxy, topic, idempotent=True)
    assert_once_and_in_order(broker, topic, proxy)


async def test_aiokafka_writes_once_and_in_order(broker: Broker, topic: str, proxy: CuttingProxy) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=proxy.bootstrap,
        enable_idempotence=True,
        max_batch_size=150,
        linger_ms=0,
        retry_backoff_ms=10,
    ) as through:
        answers = [await through.send(topic, str(n).encode(), partition=0) for n in range(MESSAGES)]
        offsets = [answer.offset for answer in await asyncio.gather(*answers)]
    assert offsets == list(range(MESSAGES))
    assert_once_and_in_order(broker, topic, proxy)


def test_kafka_python_writes_once_and_in_order(broker: Broker, topic: str, proxy: CuttingProxy) -> None:
    with python_kafka.producer(
        proxy.bootstrap,
        enable_idempotence=True,
        batch_size=150,
        linger_ms=0,
        retry_backoff_ms=10,
        reconnect_backoff_ms=10,
        reconnect_backoff_max_ms=50,
    ) as through:
        answers = [through.send(topic, str(n).encode(), partition=0) for n in range(MESSAGES)]
        assert [answer.get(30).offset for answer in answers] == list(range(MESSAGES))
    assert_once_and_in_order(broker, topic, proxy)
