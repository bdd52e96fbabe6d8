"""How many messages wait for a consumer group or a subscription."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from postroad.client import groups, offsets, subscriptions
from postroad.client.metadata import TopicPartition
from postroad.errors import GroupIdNotFound, UnknownTopicOrPartition, by_code

if TYPE_CHECKING:
    from postroad.client.client import Client
    from postroad.schedulers.access import Access
    from postroad.workers.client import Client as WorkerClient


def messages_waiting(access: Access, group: str, topics: Sequence[str] = ()) -> int:
    """How many messages the group, or the subscription, has not dealt with yet.

    Of `topics` everything counts that it has not begun with, so they may be named before its first consumer
    comes. GroupIdNotFound if there is no such group, and no topic is named.
    """

    async def count(client: WorkerClient) -> int:
        return await _count(await client.kafka(), group, topics)

    with access.client() as client:
        found: int = client.thread().call(count)
        return found


async def _count(client: Client, group: str, topics: Sequence[str]) -> int:
    kinds = {found.group: found.type for found in await groups.list_all(client)}
    if group not in kinds and not topics:
        raise GroupIdNotFound(
            f"There is neither a consumer group nor a subscription {group}: "
            "name its topics, too, if it is yet to come."
        )
    if kinds.get(group) == subscriptions.SHARE:
        positions = await subscriptions.positions(client, group)
        waiting = {each: max(0, position.lag) for each, position in positions.items()}
    else:
        waiting = await _of_group(client, group)
    return sum(waiting.values()) + await _untouched(client, topics, set(waiting))


async def _of_group(client: Client, group: str) -> dict[TopicPartition, int]:
    committed = await groups.committed(client, group)
    there = (await client.cluster({each.topic for each in committed})).topics if committed else {}
    known = [each for each in committed if each.topic in there]
    ends = await offsets.latest(client, known)
    begins = await offsets.earliest(client, known)
    return {each: max(0, ends[each] - max(committed[each], begins[each])) for each in known}


async def _untouched(client: Client, topics: Sequence[str], begun: set[TopicPartition]) -> int:
    """What is in the partitions of these topics that the group has not begun with."""
    if not topics:
        return 0
    found = await client.cluster(topics)
    for code in found.failed.values():
        if code != UnknownTopicOrPartition.code:  # one that is yet to come has no messages
            raise by_code(code)
    every = (
        TopicPartition(topic.name, part.number)
        for topic in found.topics.values()
        for part in topic.partitions
    )
    new = [each for each in every if each not in begun]
    begins, ends = await offsets.earliest(client, new), await offsets.latest(client, new)
    return sum(ends[each] - begins[each] for each in new)
