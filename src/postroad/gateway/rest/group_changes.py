"""Consumer groups over REST: moved to other offsets, and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from postroad.client import groups, offsets
from postroad.client.metadata import TopicPartition
from postroad.errors import NonEmptyGroup, UnknownMemberId, UnknownTopicOrPartition
from postroad.gateway.rest import problems
from postroad.gateway.rest.endpoint import Call, Nothing, endpoint
from postroad.gateway.rest.fields import Offset, PartitionNumber, TimeMs, TopicName
from postroad.gateway.rest.problems import CONFLICT, NOT_FOUND, REFUSED, Refused
from postroad.gateway.security.rights import DELETE, READ, Rights

PARTITIONS_MAX = 10_000
SHIFT_MAX = 2**53

Shift = Annotated[int, Meta(ge=-SHIFT_MAX, le=SHIFT_MAX)]


class GroupReset(Struct, forbid_unknown_fields=True):
    """Where to: exactly one of `to`, `offset`, `time_ms` and `shift`. Which partitions: those that are named,
    or all of the topics that are named, or all in which the group has committed something."""

    to: Annotated[
        Literal["earliest", "latest"] | None, Meta(description="The partition's beginning, or its end.")
    ] = None
    offset: Offset | None = None
    time_ms: Annotated[
        TimeMs | None, Meta(description="The first message of this time or later; the end if none is.")
    ] = None
    shift: Annotated[Shift | None, Meta(description="So many messages forward, or back if negative.")] = None
    topics: Annotated[list[TopicName], Meta(max_length=1000)] = []
    partitions: Annotated[
        list[tuple[TopicName, PartitionNumber]],
        Meta(max_length=PARTITIONS_MAX, description="Topic and partition."),
    ] = []
    dry_run: Annotated[bool, Meta(description="Only show what would change.")] = False


class MovedPartition(Struct):
    """`before` is null where nothing was committed; `messages` come again (positive) or are passed over
    (negative), counted by offsets."""

    topic: str
    partition: int
    before: int | None
    after: int
    start: int
    end: int
    messages: int


class GroupMoved(Struct):
    partitions: list[MovedPartition]
    dry_run: bool


@endpoint(
    "POST", "/v1/consumer-groups/{group}/reset", "Move a consumer group's committed offsets.",
    Rights(group=READ, by_handler="Read on each topic"),
    problems=(NOT_FOUND, CONFLICT, REFUSED),
)  # fmt: skip
async def reset_group(call: Call[GroupReset, Nothing]) -> GroupMoved:
    """The group must have no members: they would go on where they are. Offsets outside of a partition become
    its beginning or its end."""
    client, name, asked = call.gateway.client, call.path["group"], call.body
    if (
        (asked.to is not None) + (asked.offset is not None) + (asked.time_ms is not None)
        + (asked.shift is not None)
    ) != 1:  # fmt: skip
        raise Refused(problems.REFUSED, "Say where to: give one of `to`, `offset`, `time_ms` and `shift`.")
    await groups.describe(client, name)  # raises if there is none
    before = await groups.committed(client, name)
    partitions = await _partitions(call, before)
    starts, ends = await offsets.earliest(client, partitions), await offsets.latest(client, partitions)
    wanted = await _wanted(call, partitions, before, starts, ends)
    after = {each: min(max(at, starts[each]), ends[each]) for each, at in wanted.items()}
    if not asked.dry_run:
        await _commit(call, name, after)
    moved = [
        MovedPartition(
            *each, before.get(each), after[each], starts[each], ends[each],
            before.get(each, after[each]) - after[each],
        )
        for each in partitions
    ]  # fmt: skip
    return GroupMoved(moved, asked.dry_run)


@endpoint(
    "DELETE", "/v1/consumer-groups/{group}", "Delete a consumer group with its committed offsets.",
    Rights(group=DELETE), status=204, admin=True, problems=(NOT_FOUND, CONFLICT),
)  # fmt: skip
async def delete_group(call: Call[Nothing, Nothing]) -> None:
    """It must have no members. Consumers that come back begin where their `auto.offset.reset` says."""
    client, name = call.gateway.client, call.path["group"]
    await groups.describe(client, name)  # raises if there is none, or if it is a subscription
    try:
        await groups.delete(client, name)
    except NonEmptyGroup:
        raise _has_members(name) from None


async def _partitions(
    call: Call[GroupReset, Any], committed: Mapping[TopicPartition, int]
) -> list[TopicPartition]:
    """Those that are meant, in order. Raises Refused, TopicAuthorizationFailed, UnknownTopicOrPartition."""
    client, asked = call.gateway.client, call.body
    wanted = {TopicPartition(*each) for each in asked.partitions}
    for topic in {*asked.topics, *(each.topic for each in wanted)}:
        call.access.check_topic(topic, READ)
        known = await client.topic(topic)
        if topic in asked.topics:
            wanted |= {TopicPartition(topic, part.number) for part in known.partitions}
    for each in wanted:
        (await client.topic(each.topic)).check(each.partition)
    if wanted:
        return sorted(wanted)
    if asked.partitions or asked.topics or not committed:
        text = f"The group {call.path['group']} has committed nothing: name `topics` or `partitions`."
        raise Refused(problems.REFUSED, text)
    there: list[TopicPartition] = []
    for topic_partition in sorted(committed):
        call.access.check_topic(topic_partition.topic, READ)
        try:
            (await client.topic(topic_partition.topic)).check(topic_partition.partition)
        except UnknownTopicOrPartition:
            continue  # the topic was deleted
        there.append(topic_partition)
    return there


async def _wanted(
    call: Call[GroupReset, Any],
    partitions: list[TopicPartition],
    before: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> Mapping[TopicPartition, int]:
    asked = call.body
    if asked.to is not None:
        return starts if asked.to == "earliest" else ends
    if asked.offset is not None:
        return dict.fromkeys(partitions, asked.offset)
    if asked.time_ms is not None:
        found = await offsets.find(call.gateway.client, dict.fromkeys(partitions, asked.time_ms))
        return {each: at.offset if at.offset >= 0 else ends[each] for each, at in found.items()}
    without = [each for each in partitions if each not in before]
    if without:
        text = f"Nothing is committed for {without[0]}, so there is nothing to `shift`."
        raise Refused(problems.REFUSED, text)
    return {each: before[each] + (asked.shift or 0) for each in partitions}


async def _commit(call: Call[Any, Any], name: str, after: Mapping[TopicPartition, int]) -> None:
    try:
        await groups.commit(call.gateway.client, name, after)
    except (NonEmptyGroup, UnknownMemberId):
        raise _has_members(name) from None


def _has_members(name: str) -> Refused:
    return Refused(problems.CONFLICT, f"The group {name} has members: stop them first.")
