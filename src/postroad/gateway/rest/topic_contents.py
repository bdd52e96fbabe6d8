"""A topic's partitions and records over REST: more partitions, fewer records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from postroad.client import offsets, topics
from postroad.client.metadata import TopicPartition
from postroad.gateway.rest import problems
from postroad.gateway.rest.endpoint import Call, Nothing, endpoint
from postroad.gateway.rest.fields import Offset, TimeMs
from postroad.gateway.rest.problems import NOT_FOUND, REFUSED, Refused
from postroad.gateway.rest.topics import Partitions, TopicDetails, details_of
from postroad.gateway.security.rights import ALTER, DELETE, DESCRIBE, Rights


class MorePartitions(Struct, forbid_unknown_fields=True):
    count: Annotated[Partitions, Meta(description="How many there are from then on.")]


class RecordsToDelete(Struct, forbid_unknown_fields=True):
    """Exactly one of `offsets`, `time_ms` and `all`."""

    offsets: Annotated[
        dict[str, Offset] | None,
        Meta(description="By partition: records before this offset go. Partitions that are not named stay."),
    ] = None
    time_ms: Annotated[
        TimeMs | None,
        Meta(description="Of each partition the records before its first one of this time or later."),
    ] = None
    all: Annotated[bool, Meta(description="All records that are there now.")] = False
    dry_run: Annotated[bool, Meta(description="Only count.")] = False


class DeletedRecords(Struct):
    """`records` is the distance between both starts; of a compacted topic fewer were there."""

    partition: int
    start_before: int
    start_after: int
    end: int
    records: int


class DeletedRecordsList(Struct):
    partitions: list[DeletedRecords]
    records: int
    dry_run: bool


@endpoint(
    "POST", "/v1/topics/{topic}/partitions", "Give a topic more partitions.",
    Rights(topic=ALTER, by_handler="Describe on the topic"),
    admin=True, problems=(NOT_FOUND, REFUSED),
)  # fmt: skip
async def add_partitions(call: Call[MorePartitions, Nothing]) -> TopicDetails:
    """Their number can only grow. Messages of a key may go to another partition from then on."""
    client, name = call.gateway.client, call.path["topic"]
    call.access.check_topic(name, DESCRIBE)  # it is answered with
    await topics.add_partitions(client, name, call.body.count)
    return await details_of(call, name)


@endpoint(
    "POST", "/v1/topics/{topic}/delete-records", "Delete a topic's oldest records.", Rights(topic=DELETE),
    admin=True, problems=(NOT_FOUND, REFUSED),
)  # fmt: skip
async def delete_records(call: Call[RecordsToDelete, Nothing]) -> DeletedRecordsList:
    """For good, and for all who read the topic. With `dry_run` nothing happens, and the answer tells what
    would."""
    client, name, asked = call.gateway.client, call.path["topic"], call.body
    if (asked.offsets is not None) + (asked.time_ms is not None) + asked.all != 1:
        raise Refused(problems.REFUSED, "Say which records: give one of `offsets`, `time_ms` and `all`.")
    client.forget()
    partitions = [TopicPartition(name, part.number) for part in (await client.topic(name)).partitions]
    starts, ends = await offsets.earliest(client, partitions), await offsets.latest(client, partitions)
    wanted = await _wanted(call, partitions, ends)
    befores = {each: max(at, starts[each]) for each, at in wanted.items()}
    after = befores if asked.dry_run else await topics.delete_before(client, befores)
    deleted = [
        DeletedRecords(each.partition, starts[each], at, ends[each], at - starts[each])
        for each, at in sorted(after.items())
    ]
    return DeletedRecordsList(deleted, sum(each.records for each in deleted), asked.dry_run)


async def _wanted(
    call: Call[RecordsToDelete, Any], partitions: list[TopicPartition], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The first offset that stays, of each partition that is to lose records. Raises Refused."""
    asked = call.body
    if asked.all:
        return dict(ends)
    if asked.time_ms is not None:
        found = await offsets.find(call.gateway.client, dict.fromkeys(partitions, asked.time_ms))
        return {each: at.offset if at.offset >= 0 else ends[each] for each, at in found.items()}
    known = {str(each.partition): each for each in partitions}
    wanted: dict[TopicPartition, int] = {}
    for number, offset in (asked.offsets or {}).items():
        if number not in known:
            raise Refused(problems.REFUSED, f"offsets: {number[:20]!r} is not a partition of this topic.")
        if offset > ends[known[number]]:
            raise Refused(
                problems.REFUSED,
                f"offsets: partition {number} ends at {ends[known[number]]}, before {offset}.",
            )
        wanted[known[number]] = offset
    return wanted
