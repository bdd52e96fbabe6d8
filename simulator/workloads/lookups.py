"""Asks for single messages of a log by their offset and by their time: both go by an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from postroad.client import offsets
from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.metadata import TopicPartition
from postroad.wire.records import Record
from simulator.workloads.found import Found

TRIES: Final = 6  # for each partition


async def look_up(
    client: Client, random: Random, records: Mapping[TopicPartition, Sequence[Record]]
) -> list[Found]:
    """`records`: all that lies there, in order."""
    found: list[Found] = []
    for part, there in records.items():
        for record in random.sample(there, min(TRIES, len(there))):
            at = (await offsets.find(client, {part: record.timestamp}))[part]
            async with Consumer(client, reset=None) as consumer:
                await consumer.assign({part: record.offset})
                came = [each for _, those, _ in await consumer.poll(5.0) for each in those]
            found.append(Found(part, record, came[0] if came else None, at.offset))
    return found
