"""Offsets by name and by time, asked of each partition's leader."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.errors import ApiError, by_code
from postroad.wire.messages import list_offsets

EARLIEST: Final = -2
LATEST: Final = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1  # isolation: what is there, or what no open transaction can undo
MAX_TIMESTAMP: Final = -3  # the record with the highest timestamp


class OffsetAt(NamedTuple):
    """`offset` is -1 if no record is as late as the time that was asked for."""

    offset: int
    timestamp: int


async def find(
    client: Client, wanted: Mapping[TopicPartition, int], isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, OffsetAt]:
    """For each partition the first offset at or after a time (ms), or at EARLIEST or LATEST."""
    found: dict[TopicPartition, OffsetAt] = {}

    async def attempt() -> None:
        missing = _without(wanted, found)
        for node, topic_partitions in (await by_leader(client, missing)).items():
            request = _request(topic_partitions, missing, client, isolation)
            answer = await client.call(list_offsets, request, node=node)
            _collect(answer, found)

    await client.retry(attempt)
    return {topic_partition: found[topic_partition] for topic_partition in wanted}


async def latest_known(
    client: Client, topic_partitions: list[TopicPartition], timeout_s: float
) -> dict[TopicPartition, int]:
    """As `latest`, but partitions of which nobody tells in time are left out, and hold up no others."""
    found: dict[TopicPartition, OffsetAt] = {}
    wanted = dict.fromkeys(topic_partitions, LATEST)

    async def attempt() -> None:
        missing = _without(wanted, found)
        by_node: dict[int, list[TopicPartition]] = {}
        failure: ApiError | None = None
        for each in missing:
            try:
                by_node.setdefault(await client.leader(*each), []).append(each)
            except ApiError as error:
                failure = error
        for node, those in by_node.items():
            try:
                request = _request(those, missing, client, READ_UNCOMMITTED)
                _collect(await client.call(list_offsets, request, node=node), found)
            except ApiError as error:
                failure = error
        if failure is not None:
            raise failure

    with suppress(ApiError):
        await client.retry(attempt, timeout_s)
    return {each: at.offset for each, at in found.items()}


async def earliest(client: Client, topic_partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    return {
        topic_partition: at.offset
        for topic_partition, at in (await find(client, dict.fromkeys(topic_partitions, EARLIEST))).items()
    }


async def latest(
    client: Client, topic_partitions: list[TopicPartition], isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, int]:
    found = await find(client, dict.fromkeys(topic_partitions, LATEST), isolation)
    return {topic_partition: at.offset for topic_partition, at in found.items()}


async def by_leader(client: Client, topic_partitions: Any) -> dict[int, list[TopicPartition]]:
    """Partitions gathered by the node that leads them."""
    gathered: dict[int, list[TopicPartition]] = {}
    for topic_partition in topic_partitions:
        gathered.setdefault(await client.leader(*topic_partition), []).append(topic_partition)
    return gathered


def _without(
    wanted: Mapping[TopicPartition, int], found: Mapping[TopicPartition, OffsetAt]
) -> dict[TopicPartition, int]:
    return {topic_partition: time for topic_partition, time in wanted.items() if topic_partition not in found}


def by_topic(topic_partitions: Any) -> dict[str, list[int]]:
    """Partitions gathered by topic, as requests want them."""
    gathered: dict[str, list[int]] = {}
    for topic, partition in topic_partitions:
        gathered.setdefault(topic, []).append(partition)
    return gathered


def _request(
    topic_partitions: list[TopicPartition],
    times: Mapping[TopicPartition, int],
    client: Client,
    isolation: int,
) -> Any:
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
        for topic, indexes in by_topic(topic_partitions).items()
    ]
    return list_offsets.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=topics,
        timeout_ms=int(client.timeout_s * 1000),
    )


def _collect(answer: Any, found: dict[TopicPartition, OffsetAt]) -> None:
    """What was answered is kept even where another partition has to be asked again."""
    failed = 0
    for topic in answer.topics:
        for partition in topic.partitions:
            failed = failed or partition.error_code
            if not partition.error_code:
                topic_partition = TopicPartition(topic.name, partition.partition_index)
                found[topic_partition] = OffsetAt(partition.offset, partition.timestamp)
    if failed:
        raise by_code(failed)
