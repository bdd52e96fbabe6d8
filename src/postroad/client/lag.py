"""How far a group is behind, in messages and in seconds.

Seconds are the age of the oldest message that the group has not handled: the record at its committed
offset is read and its timestamp compared with now. A group that is up to date has no age.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from postroad.client import groups, offsets
from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.metadata import TopicPartition

READ_BYTES: Final = 64 * 1024
PATIENCE_S: Final = 5.0  # an age that can't be read by then is left out


class Lag(NamedTuple):
    """`seconds` is None where there is none, or where it could not be read."""

    topic_partition: TopicPartition
    committed: int
    end: int
    messages: int
    seconds: float | None


async def measure(client: Client, group: str) -> list[Lag]:
    """For each partition that the group has committed, in order."""
    committed = await groups.committed(client, group)
    existing = (
        (await client.cluster({topic_partition.topic for topic_partition in committed})).topics
        if committed
        else {}
    )
    topic_partitions = sorted(
        topic_partition for topic_partition in committed if topic_partition.topic in existing
    )
    ends = await offsets.latest(client, topic_partitions)
    behind = {
        topic_partition: committed[topic_partition]
        for topic_partition in topic_partitions
        if committed[topic_partition] < ends[topic_partition]
    }
    times = await times_at(client, behind)
    now_ms = client.runtime.clock.now_ms()
    return [
        Lag(
            topic_partition,
            committed[topic_partition],
            ends[topic_partition],
            max(0, ends[topic_partition] - committed[topic_partition]),
            max(0.0, (now_ms - times[topic_partition]) / 1000) if topic_partition in times else None,
        )
        for topic_partition in topic_partitions
    ]


async def times_at(client: Client, positions: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The timestamp of the first record at or after each position."""
    times: dict[TopicPartition, int] = {}
    if not positions:
        return times
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    async with Consumer(client, reset=offsets.EARLIEST, partition_bytes=READ_BYTES) as consumer:
        while missing := {
            topic_partition: at for topic_partition, at in positions.items() if topic_partition not in times
        }:
            left_s = deadline - asyncio.get_running_loop().time()
            if left_s <= 0:
                break
            await consumer.assign(missing)
            for topic_partition, records, _ in await consumer.poll(left_s):
                times.setdefault(topic_partition, records[0].timestamp)
    return times
