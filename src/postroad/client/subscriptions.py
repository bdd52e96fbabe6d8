"""Subscriptions (share groups) as an operator sees them: their configs, members, positions and messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from postroad.client import groups, topics
from postroad.client.client import Client
from postroad.client.groups import GroupListing, at_coordinator, raise_for
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import by_topic
from postroad.client.topics import ConfigEntry
from postroad.errors import NetworkException, UnsupportedVersion
from postroad.wire import peek as peek_api
from postroad.wire.messages import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    describe_share_group_offsets,
    list_groups,
    share_group_describe,
)
from postroad.wire.peek import FROM_START, PeekResponse

SHARE: Final = "share"
UNKNOWN: Final = -1
CONFIGS_AT_ONCE: Final = 500
HANG_UPS: Final = 3  # so often a node that takes connections may end one instead of answering


class ShareMemberInfo(NamedTuple):
    id: str
    client_id: str
    host: str
    topics: tuple[str, ...]  # that it asked for
    partitions: tuple[TopicPartition, ...]


class SubscriptionState(NamedTuple):
    state: str
    coordinator: int
    members: tuple[ShareMemberInfo, ...]


class SharePosition(NamedTuple):
    """All before `start` is done with; `lag` is how many from there on are not, UNKNOWN if not told."""

    start: int
    lag: int


async def list_all(client: Client) -> list[GroupListing]:
    """The share groups of all nodes."""
    found = await groups.listed(client, list_groups.ListGroupsRequest(types_filter=[SHARE]))
    return [group for group in found if group.type == SHARE]


async def describe(client: Client, group: str) -> SubscriptionState:
    """GroupIdNotFound if there is none."""
    request = share_group_describe.ShareGroupDescribeRequest(group_ids=[group])

    async def attempt(node: int) -> SubscriptionState:
        found = (await client.call(share_group_describe, request, node=node)).groups[0]
        raise_for(found)
        return SubscriptionState(found.group_state, node, tuple(map(_member, found.members)))

    return await at_coordinator(client, group, attempt)


async def config(client: Client, group: str) -> list[ConfigEntry]:
    """All of them; those of a group that isn't there are the defaults."""
    return await topics.describe_config(client, group, resource=topics.GROUP)


async def config_of_all(client: Client, names: Sequence[str], config_name: str) -> dict[str, str]:
    """One config of many groups: of those that have a value, what it is."""
    found: dict[str, str] = {}
    for first in range(0, len(names), CONFIGS_AT_ONCE):
        found |= await topics.describe_one(
            client, names[first : first + CONFIGS_AT_ONCE], config_name, resource=topics.GROUP
        )
    return found


async def alter_config(
    client: Client, group: str, changes: Mapping[str, str] | None = None, resets: Sequence[str] = ()
) -> None:
    await topics.alter_config(client, group, changes, resets, resource=topics.GROUP)


async def delete(client: Client, group: str) -> None:
    """NonEmptyGroup while it has members, GroupIdNotFound if there is none. Its configs may remain."""
    await groups.delete(client, group)


async def positions(client: Client, group: str) -> dict[TopicPartition, SharePosition]:
    """The subscription's position in every partition that it has begun with."""
    wanted = describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    request = describe_share_group_offsets.DescribeShareGroupOffsetsRequest(groups=[wanted])

    async def attempt(node: int) -> dict[TopicPartition, SharePosition]:
        answer = (await client.call(describe_share_group_offsets, request, node=node)).groups[0]
        raise_for(answer)
        found: dict[TopicPartition, SharePosition] = {}
        for topic in answer.topics:
            for partition in topic.partitions:
                raise_for(partition)
                if partition.start_offset >= 0:
                    topic_partition = TopicPartition(topic.topic_name, partition.partition_index)
                    found[topic_partition] = SharePosition(partition.start_offset, partition.lag)
        return found

    return await at_coordinator(client, group, attempt)


async def move(client: Client, group: str, starts: Mapping[TopicPartition, int]) -> None:
    """The subscription goes on from these offsets, whatever became of messages before and after them."""
    api = alter_share_group_offsets
    request = api.AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            api.AlterShareGroupOffsetsRequestTopic(
                topic_name=topic,
                partitions=[
                    api.AlterShareGroupOffsetsRequestPartition(index, starts[TopicPartition(topic, index)])
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(starts).items()
        ],
    )

    async def attempt(node: int) -> None:
        answer = await client.call(api, request, node=node)
        raise_for(answer)
        for topic in answer.responses:
            for partition in topic.partitions:
                raise_for(partition)

    await at_coordinator(client, group, attempt)


async def forget(client: Client, group: str, names: Sequence[str]) -> None:
    """The subscription knows nothing of these topics any more."""
    api = delete_share_group_offsets
    request = api.DeleteShareGroupOffsetsRequest(
        group_id=group, topics=[api.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
    )

    async def attempt(node: int) -> None:
        answer = await client.call(api, request, node=node)
        raise_for(answer)
        for topic in answer.responses:
            raise_for(topic)

    await at_coordinator(client, group, attempt)


async def peek(
    client: Client,
    group: str,
    topic_partition: TopicPartition,
    first_offset: int = FROM_START,
    max_messages: int = 0,
) -> PeekResponse:
    """The state of one partition's messages, none of which is touched.

    UnsupportedVersion if the node hangs up again and again instead of answering: then it is no Postroad.
    """
    topic = await client.topic(topic_partition.topic)
    request = peek_api.PeekRequest(group, topic.id, topic_partition.partition, first_offset, max_messages)
    lane = client.new_lane("peek")
    hung_up = 0

    async def attempt() -> PeekResponse:
        nonlocal hung_up
        connection = await client.connection(await client.leader(*topic_partition), lane)
        try:
            answer: PeekResponse = await connection.call(
                peek_api, request, client.timeout_s, peek_api.MAX_VERSION
            )
        except NetworkException:  # it may have died at this moment
            hung_up += 1
            if hung_up < HANG_UPS:
                raise
            raise UnsupportedVersion("The node does not know Peek, which only Postroad offers.") from None
        raise_for(answer)
        return answer

    try:
        return await client.retry(attempt)
    finally:
        client.close_lane(lane)


async def receivable(client: Client, group: str) -> int:
    """How many messages nobody holds and nothing delays, as the leaders of all partitions count them.

    Who receives nothing learns from it whether nothing is there, or a leader is only being elected."""
    count = 0
    for topic_partition, position in (await positions(client, group)).items():
        found = await peek(client, group, topic_partition)
        count += max(0, position.lag - found.in_flight - found.delayed - found.waiting - found.dying)
    return count


def _member(found: Any) -> ShareMemberInfo:
    return ShareMemberInfo(
        found.member_id,
        found.client_id,
        found.client_host,
        tuple(found.subscribed_topic_names),
        tuple(
            TopicPartition(owned.topic_name, index)
            for owned in found.assignment.topic_partitions
            for index in owned.partitions
        ),
    )
