"""Reads partitions from their beginnings to the ends that they have now."""

from __future__ import annotations

from collections.abc import Sequence

from postroad.client import offsets
from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST, READ_UNCOMMITTED
from postroad.wire.records import Record


async def read_all(
    client: Client, parts: Sequence[TopicPartition], isolation: int = READ_UNCOMMITTED
) -> list[tuple[TopicPartition, Record]]:
    """Every record that is there, in the order of each partition."""
    ends = await offsets.latest(client, list(parts), isolation)
    found: list[tuple[TopicPartition, Record]] = []
    async with Consumer(client, reset=None, isolation=isolation) as consumer:
        await consumer.assign(dict.fromkeys(parts, EARLIEST))
        while any(consumer.positions[part] < end for part, end in ends.items()):
            for part, records, _ in await consumer.poll(5.0):
                found += [(part, record) for record in records]
    return found
