"""Offsets by place and by time, asked of each partition's leader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.errors import by_code
from postroad.wire.messages import list_offsets

EARLIEST: Final = -2
LATEST: Final = -1
MAX_TIMESTAMP: Final = -3  # the record with the highest timestamp


class OffsetAt(NamedTuple):
    """`offset` is -1 if no record is as late as the time that was asked for."""

    offset: int
    timestamp: int


async def find(client: Client, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAt]:
    """For each partition the first offset at or after a time (ms), or at EARLIEST or LATEST."""
    found: dict[TopicPartition, OffsetAt] = {}

    async def attempt() -> None:
        missing = {place: time for place, time in wanted.items() if place not in found}
        for node, places in (await by_leader(client, missing)).items():
            answer = await client.call(list_offsets, _request(places, missing, client), node=node)
            _collect(answer, found)

    await client.retry(attempt)
    return {place: found[place] for place in wanted}


async def earliest(client: Client, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    return {place: at.offset for place, at in (await find(client, dict.fromkeys(places, EARLIEST))).items()}


async def latest(client: Client, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    return {place: at.offset for place, at in (await find(client, dict.fromkeys(places, LATEST))).items()}


async def by_leader(client: Client, places: Any) -> dict[int, list[TopicPartition]]:
    """Partitions gathered by the node that leads them."""
    gathered: dict[int, list[TopicPartition]] = {}
    for place in places:
        gathered.setdefault(await client.leader(*place), []).append(place)
    return gathered


def by_topic(places: Any) -> dict[str, list[int]]:
    """Partitions gathered by topic, as requests want them."""
    gathered: dict[str, list[int]] = {}
    for topic, partition in places:
        gathered.setdefault(topic, []).append(partition)
    return gathered


def _request(places: list[TopicPartition], times: Mapping[TopicPartition, int], client: Client) -> Any:
    topics = [
        list_offsets.ListOffsetsTopic(
            name=topic,
            partitions=[
                list_offsets.ListOffsetsPartition(
                    partition_index=index, timestamp=times[TopicPartition(topic, index)]
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(places).items()
    ]
    return list_offsets.ListOffsetsRequest(
        replica_id=-1, topics=topics, timeout_ms=int(client.timeout_s * 1000)
    )


def _collect(answer: Any, found: dict[TopicPartition, OffsetAt]) -> None:
    """What was answered is kept even where another partition has to be asked again."""
    failed = 0
    for topic in answer.topics:
        for partition in topic.partitions:
            failed = failed or partition.error_code
            if not partition.error_code:
                place = TopicPartition(topic.name, partition.partition_index)
                found[place] = OffsetAt(partition.offset, partition.timestamp)
    if failed:
        raise by_code(failed)
