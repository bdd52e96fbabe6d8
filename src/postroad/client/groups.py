"""Consumer groups as an operator sees them: listed, described, their offsets read, set and deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from postroad.client import protocol
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import by_topic
from postroad.errors import GroupIdNotFound, UnsupportedVersion, by_code
from postroad.wire.messages import (
    consumer_group_describe,
    delete_groups,
    describe_groups,
    list_groups,
    offset_commit,
    offset_fetch,
)

NO_GENERATION: Final = -1
NO_OFFSET: Final = -1
DEAD: Final = "Dead"  # how older versions of DescribeGroups say that there is no such group

T = TypeVar("T")


class GroupListing(NamedTuple):
    group: str
    state: str
    type: str
    protocol_type: str


class Member(NamedTuple):
    id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


class GroupDescription(NamedTuple):
    group: str
    type: str
    state: str
    assignor: str
    coordinator: int
    members: tuple[Member, ...]


class Committer(NamedTuple):
    """Who commits: a member, or an operator, whom only a group without members obeys."""

    member_id: str = ""
    generation: int = NO_GENERATION
    instance_id: str | None = None


OPERATOR: Final = Committer()


async def list_all(client: Client) -> list[GroupListing]:
    """The groups of all nodes: each coordinates some."""
    return await listed(client, list_groups.ListGroupsRequest())


async def listed(client: Client, request: list_groups.ListGroupsRequest) -> list[GroupListing]:
    """What all nodes list. One that dies meanwhile is left out, and others coordinate its groups."""

    async def attempt() -> list[GroupListing]:
        found: dict[str, GroupListing] = {}
        for node in await client.nodes():
            answer = await client.call(list_groups, request, node=node)
            raise_for(answer)
            for group in answer.groups:
                found[group.group_id] = GroupListing(
                    group.group_id, group.group_state, group.group_type or "classic", group.protocol_type
                )
        return sorted(found.values())

    return await client.retry(attempt)


async def describe(client: Client, group: str) -> GroupDescription:
    """GroupIdNotFound if there is none. New groups and classic ones are asked about differently."""
    try:
        return await at_coordinator(client, group, lambda node: _describe_new(client, group, node))
    except (GroupIdNotFound, UnsupportedVersion):
        return await at_coordinator(client, group, lambda node: _describe_classic(client, group, node))


async def committed(
    client: Client,
    group: str,
    topic_partitions: Sequence[TopicPartition] | None = None,
    *,
    stable: bool = False,
) -> dict[TopicPartition, int]:
    """The committed offsets, of all partitions or of some; where none was committed there is none.

    `stable`: wait for open transactions that are about to commit others.
    """
    topics = None
    if topic_partitions is not None:
        topics = [
            offset_fetch.OffsetFetchRequestTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(topic_partitions).items()
        ]
    wanted = offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=topics)
    request = offset_fetch.OffsetFetchRequest(groups=[wanted], require_stable=stable)

    async def attempt(node: int) -> dict[TopicPartition, int]:
        answer = (await client.call(offset_fetch, request, node=node)).groups[0]
        raise_for(answer)
        found: dict[TopicPartition, int] = {}
        for topic in answer.topics:
            for partition in topic.partitions:
                raise_for(partition)
                if partition.committed_offset != NO_OFFSET:
                    found[TopicPartition(topic.name, partition.partition_index)] = partition.committed_offset
        return found

    return await at_coordinator(client, group, attempt)


async def commit(
    client: Client,
    group: str,
    offsets: Mapping[TopicPartition, int],
    committer: Committer = OPERATOR,
    timeout_s: float | None = None,
) -> None:
    """The group's next offsets are these, durably. UnknownMemberId, IllegalGeneration: join again."""
    request = commit_request(group, offsets, committer)

    async def attempt(node: int) -> None:
        answer = await client.call(offset_commit, request, node=node)
        for topic in answer.topics:
            for partition in topic.partitions:
                raise_for(partition)

    await at_coordinator(client, group, attempt, timeout_s)


def commit_request(group: str, offsets: Mapping[TopicPartition, int], committer: Committer) -> Any:
    """For whoever wants to ask once and no more."""
    topics = [
        offset_commit.OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                offset_commit.OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offsets[TopicPartition(topic, index)]
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(offsets).items()
    ]
    return offset_commit.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=committer.generation,
        member_id=committer.member_id,
        group_instance_id=committer.instance_id,
        topics=topics,
    )


async def delete(client: Client, group: str) -> None:
    """NonEmptyGroup while it has members, GroupIdNotFound if there is none."""
    request = delete_groups.DeleteGroupsRequest(groups_names=[group])

    async def attempt(node: int) -> None:
        answer = await client.call(delete_groups, request, node=node)
        raise_for(answer.results[0])

    await at_coordinator(client, group, attempt)


async def at_coordinator(
    client: Client, group: str, attempt: Callable[[int], Awaitable[T]], timeout_s: float | None = None
) -> T:
    """`attempt` with the node that coordinates the group, until it raises no TryAgain."""

    async def once() -> T:
        return await attempt(await client.coordinator(group))

    return await client.retry(once, timeout_s)


async def _describe_new(client: Client, group: str, node: int) -> GroupDescription:
    """A group of KIP-848."""
    request = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[group])
    found = (await client.call(consumer_group_describe, request, node=node)).groups[0]
    raise_for(found)
    members = tuple(
        Member(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            tuple(
                TopicPartition(owned.topic_name, index)
                for owned in member.assignment.topic_partitions
                for index in owned.partitions
            ),
        )
        for member in found.members
    )
    return GroupDescription(group, "consumer", found.group_state, found.assignor_name, node, members)


async def _describe_classic(client: Client, group: str, node: int) -> GroupDescription:
    request = describe_groups.DescribeGroupsRequest(groups=[group])
    found = (await client.call(describe_groups, request, node=node)).groups[0]
    raise_for(found)
    if found.group_state == DEAD:
        raise GroupIdNotFound(f"There is no group {group}.")
    members = tuple(
        Member(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            tuple(protocol.read_assignment(member.member_assignment)),
        )
        for member in found.members
    )
    return GroupDescription(group, "classic", found.group_state, found.protocol_data, node, members)


def raise_for(result: Any) -> None:
    """The error that an answer, or a part of it, names."""
    if result.error_code:
        raise by_code(result.error_code, getattr(result, "error_message", None))
