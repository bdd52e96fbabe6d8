"""aiokafka: what is produced comes back as it was. It never sends flexible versions of a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.errors import (
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
)

from .confluent import EVERY_COMPRESSION
from .conftest import Broker, TopicMaker
from .wait import PATIENCE_S


@asynccontextmanager
async def reading(
    broker: Broker, *places: TopicPartition, **settings: Any
) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer without a group, at the start of the given partitions."""
    defaults = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    async with AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, **(defaults | settings)) as source:
        source.assign(places)
        yield source


async def take(source: AIOKafkaConsumer, count: int) -> list[ConsumerRecord]:
    async def collect() -> list[ConsumerRecord]:
        records: list[ConsumerRecord] = []
        while len(records) < count:
            for part in (await source.getmany(timeout_ms=200, max_records=count - len(records))).values():
                records += part
        return records

    return await asyncio.wait_for(collect(), PATIENCE_S)


@pytest.mark.parametrize("compression", EVERY_COMPRESSION)
async def test_key_value_headers_and_timestamp_survive(broker: Broker, topic: str, compression: str) -> None:
    now = int(time.time() * 1000)
    sent = [
        (f"key-{n % 5}".encode(), f"value-{n}".encode() * 20, [("number", str(n).encode())], now - 500 + n)
        for n in range(100)
    ]
    codec = None if compression == "none" else compression
    settings = {"bootstrap_servers": broker.bootstrap, "compression_type": codec, "linger_ms": 20}
    async with AIOKafkaProducer(**settings) as through:
        answers = [
            await through.send(topic, value, key=key, headers=headers, partition=0, timestamp_ms=stamp)
            for key, value, headers, stamp in sent
        ]
        assert [(await answer).offset for answer in answers] == list(range(100))
    async with reading(broker, TopicPartition(topic, 0), check_crcs=True) as source:
        records = await take(source, 100)
    assert [record.offset for record in records] == list(range(100))
    seen = [(record.key, record.value, list(record.headers), record.timestamp) for record in records]
    assert seen == sent


async def test_null_and_empty_keys_and_values_are_told_apart(broker: Broker, topic: str) -> None:
    pairs = [(None, b"v"), (b"", b"v"), (b"k", None), (b"k", b""), (b"", b"")]
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as through:
        for key, value in pairs:
            await through.send_and_wait(topic, value, key=key)
    async with reading(broker, TopicPartition(topic, 0)) as source:
        assert [(record.key, record.value) for record in await take(source, len(pairs))] == pairs


@pytest.mark.parametrize("acks", [0, 1, "all"])
async def test_every_kind_of_acks_stores_the_message(broker: Broker, topic: str, acks: int | str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, acks=acks) as through:
        await through.send_and_wait(topic, b"stored")
    async with reading(broker, TopicPartition(topic, 0)) as source:
        assert (await take(source, 1))[0].value == b"stored"


async def test_batch_built_by_hand_is_stored_as_one(broker: Broker, topic: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True) as through:
        batch = through.create_batch()
        for number in range(10):
            batch.append(key=None, value=str(number).encode(), timestamp=None)
        batch.close()
        answer = await (await through.send_batch(batch, topic, partition=0))
        assert answer.offset == 0
    async with reading(broker, TopicPartition(topic, 0)) as source:
        assert [int(record.value) for record in await take(source, 10)] == list(range(10))


async def test_consumer_reads_from_beginning_end_offset_and_time(broker: Broker, topic: str) -> None:
    base, place = int(time.time() * 1000) - 3_600_000, TopicPartition(topic, 0)
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, acks="all") as through:
        for number in range(20):
            await through.send_and_wait(topic, str(number).encode(), timestamp_ms=base + number * 1000)
    async with reading(broker, place) as source:
        assert (await source.beginning_offsets([place]), await source.end_offsets([place])) == (
            {place: 0},
            {place: 20},
        )
        source.seek(place, 13)
        assert (await take(source, 1))[0].offset == 13
        await source.seek_to_beginning(place)
        assert (await take(source, 1))[0].offset == 0
        found = (await source.offsets_for_times({place: base + 4500}))[place]
        assert (found.offset, found.timestamp) == (5, base + 5000)
        assert (await source.offsets_for_times({place: base + 999_999}))[place] is None
        await source.seek_to_end(place)
        assert await source.position(place) == 20
        assert source.highwater(place) == 20


async def test_offset_out_of_range_is_raised_where_no_reset_is_wanted(broker: Broker, topic: str) -> None:
    place = TopicPartition(topic, 0)
    async with reading(broker, place, auto_offset_reset="none") as source:
        source.seek(place, 500)
        with pytest.raises(OffsetOutOfRangeError):
            await asyncio.wait_for(source.getone(), PATIENCE_S)


async def test_message_above_the_topics_limit_is_refused_and_the_next_one_is_not(
    broker: Broker, topic: str
) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, max_request_size=10_000_000) as through:
        with pytest.raises(MessageSizeTooLargeError):
            await through.send_and_wait(topic, b"x" * 2_000_000)
        assert (await through.send_and_wait(topic, b"small")).offset == 0


async def test_many_partitions_are_read_at_once(broker: Broker, new_topic: TopicMaker) -> None:
    topic = new_topic(partitions=12)
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=5) as through:
        answers = [await through.send(topic, str(n).encode(), partition=n % 12) for n in range(600)]
        await asyncio.gather(*answers)
    places = [TopicPartition(topic, partition) for partition in range(12)]
    async with reading(broker, *places) as source:
        seen: dict[int, list[int]] = {partition: [] for partition in range(12)}
        for record in await take(source, 600):
            seen[record.partition].append(int(record.value))
    assert seen == {partition: list(range(partition, 600, 12)) for partition in range(12)}


async def test_waiting_consumer_gets_a_message_as_soon_as_it_is_there(broker: Broker, topic: str) -> None:
    place = TopicPartition(topic, 0)
    async with (
        reading(broker, place, fetch_max_wait_ms=20_000) as source,
        AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as through,
    ):
        await source.seek_to_end(place)
        waiting = asyncio.create_task(source.getone())
        await asyncio.sleep(0.3)  # the fetch is parked at the broker by now
        started = time.monotonic()
        await through.send_and_wait(topic, b"wake up")
        assert (await asyncio.wait_for(waiting, PATIENCE_S)).value == b"wake up"
        assert time.monotonic() - started < 5


async def test_topic_is_created_by_the_first_message(broker: Broker, unused_name: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as through:
        assert (await through.send_and_wait(unused_name, b"first")).offset == 0
