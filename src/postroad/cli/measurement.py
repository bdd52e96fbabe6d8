"""The three measurements of `postroad bench`: produce, consume, one message at a time."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Final, NamedTuple

from postroad.cli import output
from postroad.cli.session import Failed
from postroad.client import EARLIEST, LATEST, Client, Consumer, Producer, TopicPartition

MB: Final = 1_000_000
LATENCY_RATE: Final = 500  # messages a second: low, so that nothing queues
PROGRESS_EVERY: Final = 1000
QUIET_S: Final = 10.0  # nothing more comes: something was lost


class Load(NamedTuple):
    messages: int
    size: int
    partitions: int
    compression: str
    acks: int
    latency_messages: int


async def produce(client: Client, topic: str, load: Load) -> dict[str, float]:
    values = [os.urandom(load.size // 2) + bytes(load.size - load.size // 2) for _ in range(100)]
    started = time.perf_counter()
    with output.progress(load.messages, "produce") as advance:
        async with Producer(client, acks=load.acks, compression=load.compression) as producer:
            for number in range(load.messages):
                await producer.send(topic, values[number % 100])
                if number % PROGRESS_EVERY == 0:
                    advance(number)
                    await asyncio.sleep(0)
    return _rates("produce", load, time.perf_counter() - started)


async def consume(client: Client, topic: str, load: Load) -> dict[str, float]:
    received = 0
    started = time.perf_counter()
    with output.progress(load.messages, "consume") as advance:
        async with Consumer(client, reset=EARLIEST) as consumer:
            await consumer.assign({TopicPartition(topic, n): EARLIEST for n in range(load.partitions)})
            while received < load.messages:
                fetched = await consumer.poll(QUIET_S)
                if not fetched:
                    raise Failed(f"{load.messages - received} of {load.messages} messages did not come back")
                received += sum(len(records) for _, records, _ in fetched)
                advance(received)
    return _rates("consume", load, time.perf_counter() - started)


async def latency(client: Client, topic: str, load: Load) -> dict[str, float]:
    """Acknowledged: from send to the node's answer. End to end: from send to the consumer."""
    sent_at: list[float] = []
    acknowledged: list[float] = []
    arrived: list[float] = []
    filler = bytes(max(0, load.size - 8))

    async def read(consumer: Consumer) -> None:
        while len(arrived) < load.latency_messages:
            for _, records, _ in await consumer.poll(QUIET_S):
                now = time.perf_counter()
                numbers = (int.from_bytes((record.value or b"")[:8], "big") for record in records)
                arrived.extend(now - sent_at[number] for number in numbers)

    async with Consumer(client) as consumer, Producer(client, acks=load.acks) as producer:
        await consumer.assign({TopicPartition(topic, n): LATEST for n in range(load.partitions)})
        reading = asyncio.create_task(read(consumer), name="bench reader")
        with output.progress(load.latency_messages, "latency") as advance:
            for number in range(load.latency_messages):
                sent_at.append(time.perf_counter())
                await (await producer.send(topic, number.to_bytes(8, "big") + filler))
                acknowledged.append(time.perf_counter() - sent_at[-1])
                advance(number)
                await asyncio.sleep(max(0.0, 1 / LATENCY_RATE - acknowledged[-1]))
        await asyncio.wait_for(reading, QUIET_S)
    return {**_percentiles("acknowledged", acknowledged), **_percentiles("end_to_end", arrived)}


def _rates(what: str, load: Load, seconds: float) -> dict[str, float]:
    return {
        f"{what}_messages_per_s": round(load.messages / seconds),
        f"{what}_mb_per_s": load.messages * load.size / seconds / MB,
    }


def _percentiles(what: str, seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        f"{what}_p{percent}_ms": ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] * 1000
        for percent in (50, 99)
    }
