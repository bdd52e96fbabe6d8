"""Consumer groups over REST: which there are, and how far they are behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from postroad.client import groups, lag, subscriptions
from postroad.client.lag import Lag
from postroad.gateway.rest import paging
from postroad.gateway.rest.endpoint import Call, Nothing, endpoint
from postroad.gateway.rest.paging import Page
from postroad.gateway.rest.problems import NOT_FOUND
from postroad.gateway.security.rights import DESCRIBE, Rights


class GroupSummary(Struct):
    name: str
    type: str
    state: str


class GroupList(Struct):
    groups: list[GroupSummary]
    next: str | None


class PartitionLag(Struct):
    topic: str
    partition: int
    committed: int
    end: int
    messages: int
    seconds: Annotated[float | None, Meta(description="The age of the oldest message not yet read.")]


class GroupMember(Struct):
    id: str
    client_id: str
    host: str
    partitions: Annotated[Sequence[tuple[str, int]], Meta(description="Topic and partition.")]


class GroupDetails(Struct):
    name: str
    type: str
    state: str
    members: list[GroupMember]
    lag: Annotated[int, Meta(description="Messages not yet read, over all partitions.")]
    partitions: list[PartitionLag]


@endpoint(
    "GET", "/v1/consumer-groups", "List consumer groups.", Rights(by_handler="those that may be described")
)
async def list_groups(call: Call[Nothing, Page]) -> GroupList:
    """Subscriptions are no consumer groups; they have a list of their own."""
    known = await groups.list_all(call.gateway.client)
    found = {
        group.group: group
        for group in known
        if group.type != subscriptions.SHARE and call.access.may_group(group.group, DESCRIBE)
    }
    names, following = paging.cut(list(found), call.query)
    summaries = [GroupSummary(name, found[name].type, found[name].state) for name in names]
    return GroupList(summaries, following)


@endpoint(
    "GET", "/v1/consumer-groups/{group}", "Get a consumer group: its members and its lag.",
    Rights(group=DESCRIBE),
    problems=(NOT_FOUND,),
)  # fmt: skip
async def get_group(call: Call[Nothing, Nothing]) -> GroupDetails:
    client, name = call.gateway.client, call.path["group"]
    found = await groups.describe(client, name)
    behind = [
        part
        for part in await lag.measure(client, name)
        if call.access.may_topic(part.topic_partition.topic, DESCRIBE)
    ]
    return GroupDetails(
        name,
        found.type,
        found.state,
        [
            GroupMember(member.id, member.client_id, member.host, list(member.partitions))
            for member in found.members
        ],
        sum(part.messages for part in behind),
        [_partition(part) for part in behind],
    )


def _partition(found: Lag) -> PartitionLag:
    return PartitionLag(*found.topic_partition, found.committed, found.end, found.messages, found.seconds)
