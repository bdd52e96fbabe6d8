"""Where a subscription goes on: seek and purge over REST."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from postroad.client import offsets, subscriptions
from postroad.client.metadata import TopicPartition
from postroad.gateway.gateway import Gateway
from postroad.gateway.rest import problems
from postroad.gateway.rest.endpoint import Call, Nothing, endpoint
from postroad.gateway.rest.fields import Offset, PartitionNumber, TimeMs, TopicName
from postroad.gateway.rest.problems import NOT_FOUND, REFUSED, Refused
from postroad.gateway.security.rights import DELETE, READ, Rights

DISCARD: Final = Rights(group=DELETE, topics=READ)


class Part(Struct, forbid_unknown_fields=True):
    """Which of the subscription's partitions; without fields all of them."""

    topic: TopicName | None = None
    partition: Annotated[PartitionNumber | None, Meta(description="Only with `topic`.")] = None


class Seek(Part, forbid_unknown_fields=True):
    """One of `to`, `time_ms` and `offset` says where to."""

    to: Literal["earliest", "latest"] | None = None
    time_ms: Annotated[TimeMs | None, Meta(description="Go to the first message that is not older.")] = None
    offset: Annotated[
        Offset | None, Meta(description="Go to this offset, or to the nearest one the partition has.")
    ] = None
    dry_run: Annotated[bool, Meta(description="Only report what would be done.")] = False


class Moved(Struct):
    topic: str
    partition: int
    before: int
    after: int


class SeekAnswer(Struct):
    partitions: list[Moved]


class PurgeAnswer(Struct):
    purged: Annotated[int, Meta(description="The number of messages that were not acknowledged.")]


@endpoint(
    "POST", "/v1/subscriptions/{subscription}/seek", "Move a subscription to another position.", DISCARD,
    admin=True, problems=(NOT_FOUND, REFUSED),
)  # fmt: skip
async def seek(call: Call[Seek, Nothing]) -> SeekAnswer:
    """All messages from there on come, whatever became of them before; those in front are done with. What
    consumers hold now is no longer theirs."""
    client, name, request = call.gateway.client, call.path["subscription"], call.body
    if sum(where is not None for where in (request.to, request.time_ms, request.offset)) != 1:
        raise Refused(problems.REFUSED, "Give exactly one of `to`, `time_ms` and `offset`.")
    before = await subscriptions.positions(client, name)
    after = await _resolve(call.gateway, _chosen(list(before), request), request)
    if not request.dry_run:
        await subscriptions.move(client, name, after)
    return SeekAnswer(
        [
            Moved(*topic_partition, before[topic_partition].start, after[topic_partition])
            for topic_partition in sorted(after)
        ]
    )


@endpoint(
    "POST", "/v1/subscriptions/{subscription}/purge", "Discard all messages that are there now.", DISCARD,
    admin=True, problems=(NOT_FOUND, REFUSED),
)  # fmt: skip
async def purge(call: Call[Part, Nothing]) -> PurgeAnswer:
    """Messages in flight and delayed ones are discarded, too. They don't become dead letters; the topic keeps
    them."""
    client, name = call.gateway.client, call.path["subscription"]
    before = await subscriptions.positions(client, name)
    topic_partitions = _chosen(list(before), call.body)
    if topic_partitions:
        await subscriptions.move(client, name, await offsets.latest(client, topic_partitions))
    return PurgeAnswer(sum(max(0, before[topic_partition].lag) for topic_partition in topic_partitions))


def _chosen(topic_partitions: list[TopicPartition], part: Part) -> list[TopicPartition]:
    if part.partition is not None and part.topic is None:
        raise Refused(problems.REFUSED, "`partition` needs `topic`.")
    found = [
        topic_partition
        for topic_partition in topic_partitions
        if part.topic in (None, topic_partition.topic) and part.partition in (None, topic_partition.partition)
    ]
    if topic_partitions and not found:
        raise Refused(problems.NOT_FOUND, "The subscription does not read this topic or partition.")
    return found


async def _resolve(
    gateway: Gateway, topic_partitions: list[TopicPartition], request: Seek
) -> dict[TopicPartition, int]:
    """An offset within each partition."""
    first = await offsets.earliest(gateway.client, topic_partitions)
    last = await offsets.latest(gateway.client, topic_partitions)
    if request.to is not None:
        return first if request.to == "earliest" else last
    if request.time_ms is not None:
        found = await offsets.find(gateway.client, dict.fromkeys(topic_partitions, request.time_ms))
        return {
            topic_partition: at.offset if at.offset >= 0 else last[topic_partition]
            for topic_partition, at in found.items()
        }
    assert request.offset is not None
    return {
        topic_partition: min(max(request.offset, first[topic_partition]), last[topic_partition])
        for topic_partition in topic_partitions
    }
