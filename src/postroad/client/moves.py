"""Where partitions lie, and how an operator changes that: moves, drains, and nodes that go."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import latest
from postroad.errors import PostroadError, by_code
from postroad.wire import nodes as nodes_api
from postroad.wire.messages import (
    alter_partition_reassignments,
    describe_log_dirs,
    elect_leaders,
    list_partition_reassignments,
)
from postroad.wire.nodes import NodeStanding


class Moving(NamedTuple):
    """A partition that is being moved."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


async def reassign(
    client: Client, wanted: Mapping[TopicPartition, Sequence[int] | None]
) -> dict[TopicPartition, PostroadError]:
    """Begin to move partitions to these nodes (None: cancel a move); what was refused, and why."""
    api = alter_partition_reassignments
    topics: dict[str, Any] = {}
    for (name, number), replicas in wanted.items():
        topic = topics.setdefault(name, api.ReassignableTopic(name))
        nodes = None if replicas is None else list(replicas)
        topic.partitions.append(api.ReassignablePartition(number, nodes))
    answer = await client.ask(api, api.AlterPartitionReassignmentsRequest(topics=list(topics.values())))
    if answer.error_code:
        raise by_code(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, each.partition_index): by_code(each.error_code, each.error_message)
        for topic in answer.responses
        for each in topic.partitions
        if each.error_code
    }


async def moving(client: Client) -> dict[TopicPartition, Moving]:
    """All partitions that are being moved now."""
    request = list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None)
    answer = await client.ask(list_partition_reassignments, request)
    if answer.error_code:
        raise by_code(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, each.partition_index): Moving(
            tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
        )
        for topic in answer.topics
        for each in topic.partitions
    }


async def nodes(client: Client, order: nodes_api.AnyOrder | None = None) -> list[NodeStanding]:
    """All nodes that the cluster knows, running or not, after the order was taken, if there is one."""

    async def attempt() -> list[NodeStanding]:
        asked = nodes_api.DescribeNodes() if order is None else order
        answer = await client.call(nodes_api, asked, version=nodes_api.MAX_VERSION)
        if answer.error_code:
            raise by_code(answer.error_code, answer.error_message)
        return list(answer.nodes)

    return await client.retry(attempt)


async def elect_preferred(client: Client) -> dict[TopicPartition, PostroadError | None]:
    """The first replica of each partition leads it again, where it is in sync. Of those that needed an
    election: None, or why there was none."""
    api = elect_leaders
    request = api.ElectLeadersRequest(topic_partitions=None, timeout_ms=int(client.timeout_s * 1000))
    answer = await client.ask(api, request)
    if answer.error_code:
        raise by_code(answer.error_code)
    return {
        TopicPartition(topic.topic, each.partition_id): (
            by_code(each.error_code, each.error_message) if each.error_code else None
        )
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }


class Rate(NamedTuple):
    """What is appended to a partition a second."""

    bytes_per_s: float
    messages_per_s: float


async def rates(client: Client, nodes: Sequence[int], seconds: float) -> dict[TopicPartition, Rate]:
    """What comes to each partition, watched for so long.

    What retention and compaction take away meanwhile is not told apart from what comes, so a partition counts
    too low rather than too high. Partitions without a leader are left out.
    """
    clock = asyncio.get_running_loop()
    before_s, sizes_before, ends_before = clock.time(), await sizes(client, nodes), await _ends(client)
    await asyncio.sleep(seconds)
    after_s, sizes_after, ends_after = clock.time(), await sizes(client, nodes), await _ends(client)
    passed_s = after_s - before_s
    return {
        where: Rate(
            max(0, sizes_after.get(where, 0) - sizes_before.get(where, 0)) / passed_s,
            max(0, ends_after.get(where, end) - end) / passed_s,
        )
        for where, end in ends_before.items()
    }


async def _ends(client: Client) -> dict[TopicPartition, int]:
    seen = await client.retry(client.cluster)
    led = [
        TopicPartition(name, partition.number)
        for name, topic in seen.topics.items()
        for partition in topic.partitions
        if partition.leader in seen.nodes
    ]
    return await latest(client, led)


async def sizes(client: Client, nodes: Sequence[int]) -> dict[TopicPartition, int]:
    """How many bytes a replica of each partition has, the largest that these nodes tell of."""
    found: dict[TopicPartition, int] = {}
    for node in nodes:
        request = describe_log_dirs.DescribeLogDirsRequest(topics=None)
        answer = await client.ask(describe_log_dirs, request, node=node)
        for result in answer.results:
            for topic in result.topics:
                for each in topic.partitions:
                    where = TopicPartition(topic.name, each.partition_index)
                    found[where] = max(found.get(where, 0), each.partition_size)
    return found
