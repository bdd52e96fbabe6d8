"""Topics over REST: listed, created, looked at, altered, deleted."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final
from urllib.parse import quote

from msgspec import Meta, Struct

from postroad.client import offsets, topics
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.topics import ListedTopic
from postroad.gateway.rest.endpoint import Call, EndpointAnswer, Nothing, endpoint
from postroad.gateway.rest.fields import TopicName
from postroad.gateway.rest.paging import Page
from postroad.gateway.rest.problems import CONFLICT, NOT_FOUND, REFUSED
from postroad.gateway.security.access import Access
from postroad.gateway.security.rights import ALTER, ALTER_CONFIGS, DELETE, DESCRIBE, DESCRIBE_CONFIGS, Rights

Partitions = Annotated[int, Meta(ge=1, le=10_000)]
PARTITIONS_MIN: Final = 500  # asked for at once: some topic may have ten thousand


class NewTopic(Struct, forbid_unknown_fields=True):
    name: TopicName
    partitions: Annotated[Partitions | None, Meta(description="Default: the node's setting.")] = None
    configs: Annotated[dict[str, str], Meta(description="Topic configs such as retention.ms.")] = {}


class TopicChange(Struct, forbid_unknown_fields=True):
    configs: Annotated[
        dict[str, str | None], Meta(description="The configs to change; null resets one to its default.")
    ] = {}
    partitions: Annotated[Partitions | None, Meta(description="The number can only grow.")] = None


class TopicSummary(Struct):
    name: str
    id: str
    partitions: int
    internal: bool


class TopicList(Struct):
    topics: list[TopicSummary]
    next: str | None


class PartitionDetails(Struct):
    """`start` is its first offset, `end` the one that the next message gets; null while it has no leader."""

    partition: int
    leader: int
    start: int | None
    end: int | None


class TopicDetails(Struct):
    name: str
    id: str
    internal: bool
    partitions: list[PartitionDetails]
    configs: Annotated[
        dict[str, str | None],
        Meta(description="All configs, with the values in effect; none for who may not describe them."),
    ]
    overrides: Annotated[list[str], Meta(description="The configs that were set for this topic.")]


@endpoint("GET", "/v1/topics", "List topics.", Rights(by_handler="those that may be described"))
async def list_topics(call: Call[Nothing, Page]) -> TopicList:
    limit, found = call.query.limit, []
    async for topic in _named(call.gateway.client, call.query):
        if call.access.may_topic(topic.name, DESCRIBE):
            found.append(TopicSummary(topic.name, id_text(topic.id), topic.partitions, topic.is_internal))
        if len(found) > limit:
            return TopicList(found[:limit], found[limit - 1].name)
    return TopicList(found, None)


async def _named(client: Client, page: Page) -> AsyncIterator[ListedTopic]:
    """Topics that the page may have, in order. Names are ASCII: other characters are never sent."""
    first = max(page.prefix, page.after)
    at_once = max(page.limit + 2, PARTITIONS_MIN)
    async for topic in topics.listed(client, first if first.isascii() else "", at_once):
        if topic.name.startswith(page.prefix):
            if topic.name > page.after:
                yield topic
        elif topic.name > page.prefix:  # none after it begins so
            return


@endpoint(
    "POST",
    "/v1/topics",
    "Create a topic.",
    Rights(by_handler="Create on the cluster or the topic"),
    status=201,
    problems=(CONFLICT, REFUSED),
)
async def create_topic(call: Call[NewTopic, Nothing]) -> TopicDetails | EndpointAnswer:
    new = call.body
    call.access.check_create_topic(new.name)
    count = topics.NODE_DEFAULT if new.partitions is None else new.partitions
    await topics.create(call.gateway.client, new.name, partitions=count, config=new.configs)
    details = await details_of(call, new.name)
    return EndpointAnswer(details, headers={"Location": f"/v1/topics/{quote(new.name)}"})


@endpoint(
    "GET",
    "/v1/topics/{topic}",
    "Get a topic with its partitions and configs.",
    Rights(topic=DESCRIBE),
    problems=(NOT_FOUND,),
)
async def get_topic(call: Call[Nothing, Nothing]) -> TopicDetails:
    return await details_of(call, call.path["topic"])


@endpoint(
    "PATCH", "/v1/topics/{topic}", "Change a topic's configs.",
    Rights(by_handler="AlterConfigs for configs, Alter for partitions"),
    admin=True, problems=(NOT_FOUND, REFUSED),
)  # fmt: skip
async def alter_topic(call: Call[TopicChange, Nothing]) -> TopicDetails:
    """It can add partitions, too; keys then go to other partitions."""
    name, change, client = call.path["topic"], call.body, call.gateway.client
    _check_change(call.access, name, change)
    topic = await client.topic(name)
    changes = {key: value for key, value in change.configs.items() if value is not None}
    resets = [key for key, value in change.configs.items() if value is None]
    if changes or resets:
        await topics.alter_config(client, name, changes, resets)
    if change.partitions is not None and change.partitions != len(topic.partitions):
        await topics.add_partitions(client, name, change.partitions)
    return await details_of(call, name)


@endpoint(
    "DELETE", "/v1/topics/{topic}", "Delete a topic and all its messages.", Rights(topic=DELETE),
    status=204, admin=True, problems=(NOT_FOUND, REFUSED),
)  # fmt: skip
async def delete_topic(call: Call[Nothing, Nothing]) -> None:
    await topics.delete(call.gateway.client, [call.path["topic"]])


def _check_change(access: Access, name: str, change: TopicChange) -> None:
    """Raises TopicAuthorizationFailed."""
    if change.configs:
        access.check_topic(name, ALTER_CONFIGS)
    if change.partitions is not None:
        access.check_topic(name, ALTER)
    access.check_topic(name, DESCRIBE)  # it is answered with


async def details_of(call: Call[Any, Any], name: str) -> TopicDetails:
    """As it is now, with the configs that the caller may describe."""
    client = call.gateway.client
    client.forget()  # what was cached may be from before a change
    topic = await client.topic(name)
    led = [TopicPartition(name, part.number) for part in topic.partitions if part.leader >= 0]
    starts, ends = await offsets.earliest(client, led), await offsets.latest(client, led)
    entries = await topics.describe_config(client, name)
    if not call.access.may_topic(name, DESCRIBE_CONFIGS):
        entries = []
    return TopicDetails(
        name,
        id_text(topic.id),
        topic.is_internal,
        [
            PartitionDetails(part.number, part.leader, starts.get(topic_partition), ends.get(topic_partition))
            for part in topic.partitions
            for topic_partition in [TopicPartition(name, part.number)]
        ],
        {entry.name: entry.value for entry in entries},
        sorted(entry.name for entry in entries if entry.is_override),
    )


def id_text(topic_id: bytes) -> str:
    """The topic's id as Kafka's tools write it."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()
