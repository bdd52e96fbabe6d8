"""`postroad bench`: how fast a cluster is, seen from this machine with Postroad's own client.

A quick look, not a comparison: the client is Python and limits what is measured at high rates. Three
parts: produce as fast as it goes, read it all back, then one message at a time for the latency.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from postroad.cli import output
from postroad.cli.publish import ACKS
from postroad.cli.session import Failed, cluster_options, json_option, talk
from postroad.wire.compression import NAMES

if TYPE_CHECKING:
    from postroad.client import Client

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


@click.command()
@click.option("-n", "--messages", type=click.IntRange(min=1), default=100_000, show_default=True)
@click.option(
    "-s", "--size", type=click.IntRange(min=1), default=1000, show_default=True, help="Bytes of a message."
)
@click.option("-p", "--partitions", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("-z", "--compression", type=click.Choice(NAMES), default="none", show_default=True)
@click.option("--acks", type=click.Choice(["1", "all"]), default="all", show_default=True)
@click.option("--latency-messages", type=click.IntRange(min=1), default=1000, show_default=True)
@json_option
@cluster_options
def bench(
    messages: int,
    size: int,
    partitions: int,
    compression: str,
    acks: str,
    latency_messages: int,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Measure produce and consume rates and latency, on a topic that is deleted afterwards."""
    load = Load(messages, size, partitions, compression, ACKS[acks], latency_messages)

    async def work(client: Client) -> dict[str, float]:
        from postroad.client import topics

        topic = f"postroad-bench-{uuid.uuid4().hex[:8]}"
        await topics.create(client, topic, partitions=partitions)
        try:
            return {
                **await _produce(client, topic, load),
                **await _consume(client, topic, load),
                **await _latency(client, topic, load),
            }
        finally:
            await topics.delete(client, [topic])

    figures = talk(bootstrap, timeout_s, work)
    if as_json:
        output.write_json({**load._asdict(), **figures})
        return
    output.table(
        ("measured", "value"), [(name.replace("_", " "), round(value, 3)) for name, value in figures.items()]
    )


async def _produce(client: Client, topic: str, load: Load) -> dict[str, float]:
    from postroad.client import Producer

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


async def _consume(client: Client, topic: str, load: Load) -> dict[str, float]:
    from postroad.client import EARLIEST, Consumer, TopicPartition

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


async def _latency(client: Client, topic: str, load: Load) -> dict[str, float]:
    """Acknowledged: from send to the node's answer. End to end: from send to the consumer."""
    from postroad.client import LATEST, Consumer, Producer, TopicPartition

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


def _percentiles(what: str, seconds: list[float]) -> dict[str, Any]:
    ordered = sorted(seconds)
    return {
        f"{what}_p{percent}_ms": ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] * 1000
        for percent in (50, 99)
    }
