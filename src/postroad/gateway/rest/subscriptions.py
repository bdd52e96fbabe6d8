"""Subscriptions over REST: listed, created, looked at, altered, deleted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Final
from urllib.parse import quote

from msgspec import Meta, Struct, field

from postroad.client import groups, offsets, subscriptions
from postroad.client.metadata import TopicPartition
from postroad.client.subscriptions import SharePosition
from postroad.errors import GroupIdNotFound, PostroadError, UnknownTopicOrPartition
from postroad.gateway.gateway import Gateway
from postroad.gateway.rest import letters, losses, paging, problems
from postroad.gateway.rest.endpoint import Call, EndpointAnswer, Nothing, endpoint
from postroad.gateway.rest.fields import SubscriptionName, TopicName
from postroad.gateway.rest.paging import Page
from postroad.gateway.rest.problems import CONFLICT, NOT_FOUND, REFUSED, Refused
from postroad.gateway.rest.promises import WITHHELD, Promises, configs_of, promises_of
from postroad.gateway.security.access import Access
from postroad.gateway.security.rights import ALTER_CONFIGS, DELETE, DESCRIBE, READ, WRITE, Rights
from postroad.wire.subscription_names import DEAD_LETTER_TOPIC_CONFIG, TOPICS_CONFIG

CHANGE: Final = Rights(group=ALTER_CONFIGS, topics=DESCRIBE)
TOPICS_MAX: Final = 100
PEEKS_AT_ONCE: Final = 8  # each opens a connection

TopicNames = Annotated[list[TopicName], Meta(min_length=1, max_length=TOPICS_MAX)]
RawConfigs = Annotated[
    dict[str, str | None],
    Meta(description="Group configs that have no field of their own, by name; null: the default."),
]


class NewSubscription(Promises, kw_only=True, forbid_unknown_fields=True):
    name: SubscriptionName
    topics: TopicNames
    configs: RawConfigs = field(default_factory=dict)


class SubscriptionChange(Promises, kw_only=True, forbid_unknown_fields=True):
    topics: Annotated[TopicNames | None, Meta(description="The subscription's topics from now on.")] = None
    configs: RawConfigs = field(default_factory=dict)


class SubscriptionSummary(Struct):
    name: str
    state: str
    topics: list[str]


class SubscriptionList(Struct):
    subscriptions: list[SubscriptionSummary]
    next: str | None


class Counts(Struct):
    """`lag` messages are not done with. Of those that the node has looked at, which are some ahead of the
    consumers, so many are ready, in flight, waiting for their turn, delayed, or dying: on their way to the
    dead letters."""

    lag: int = 0
    ready: int = 0
    in_flight: int = 0
    waiting: int = 0
    delayed: int = 0
    dying: int = 0


class SubscriptionCounts(Counts):
    """`dead` are letters that were not sent back, nor discarded; of a dead-letter topic that several
    subscriptions share, the letters of all. null: the topic's leaders can't be asked now."""

    dead: int | None = 0


class Progress(Struct):
    """All before `start` is done with; `end` is where the next message will be."""

    topic: str
    partition: int
    start: int
    end: int
    counts: Counts


class SubscriptionDetails(Promises, kw_only=True):
    name: str
    state: str
    members: Annotated[int, Meta(description="Kafka consumers that are connected now.")]
    topics: list[str]
    counts: SubscriptionCounts
    partitions: list[Progress]
    configs: Annotated[dict[str, str], Meta(description="All configs, with the values in effect.")]
    overrides: Annotated[list[str], Meta(description="The configs that were set for it.")]


@endpoint("GET", "/v1/subscriptions", "List subscriptions.", Rights(by_handler="those that may be described"))
async def list_subscriptions(call: Call[Nothing, Page]) -> SubscriptionList:
    gateway = call.gateway
    access = call.access
    states = {
        found.group: found.state
        for found in await subscriptions.list_all(gateway.client)
        if access.may_group(found.group, DESCRIBE)
    }
    names, following = paging.cut(list(states), call.query)
    summaries: list[SubscriptionSummary] = []
    for name in names:
        try:
            info = await gateway.directory.subscription(name)
        except GroupIdNotFound:
            continue  # deleted meanwhile
        seen = [topic for topic in info.topics if access.may_topic(topic, DESCRIBE)]
        summaries.append(SubscriptionSummary(name, states[name], seen))
    return SubscriptionList(summaries, following)


@endpoint(
    "POST", "/v1/subscriptions", "Create a subscription.",
    Rights(by_handler="AlterConfigs on the group, and what its configs name"),
    status=201, problems=(NOT_FOUND, CONFLICT, REFUSED),
)  # fmt: skip
async def create_subscription(call: Call[NewSubscription, Nothing]) -> SubscriptionDetails | EndpointAnswer:
    """It holds the messages of its topics from now on, or from `start` on, before anybody receives."""
    gateway, new = call.gateway, call.body
    call.access.check_group(new.name, ALTER_CONFIGS)
    config = configs_of(new, new.configs)
    _check_named(call.access, new.topics, config)
    kinds = {found.group: found.type for found in await groups.list_all(gateway.client)}
    if new.name in kinds:
        what = "subscription" if kinds[new.name] == subscriptions.SHARE else "consumer group"
        raise Refused(CONFLICT, f"A {what} of this name exists.")
    await _check_topics(gateway, new.topics)
    given = {name: value for name, value in config.items() if value is not None}
    await gateway.directory.create(new.name, list(dict.fromkeys(new.topics)), given)
    details = await _details(gateway, new.name)
    return EndpointAnswer(details, headers={"Location": f"/v1/subscriptions/{quote(new.name)}"})


@endpoint(
    "GET", "/v1/subscriptions/{subscription}", "Get a subscription: its settings and its position.",
    Rights(group=DESCRIBE, topics=DESCRIBE),
    problems=(NOT_FOUND,),
)  # fmt: skip
async def get_subscription(call: Call[Nothing, Nothing]) -> SubscriptionDetails:
    return await _details(call.gateway, call.path["subscription"])


@endpoint(
    "PATCH", "/v1/subscriptions/{subscription}", "Change a subscription's settings or topics.", CHANGE,
    problems=(NOT_FOUND, CONFLICT, REFUSED),
)  # fmt: skip
async def alter_subscription(call: Call[SubscriptionChange, Nothing]) -> SubscriptionDetails:
    """It holds at once; locks that run keep their time. What it knew of a topic that it no longer has is
    forgotten. To take topics away, to keep no dead letters and to deliver at most once needs an admin key.
    `start` is for partitions that are new to it; /seek moves it on those that it has."""
    gateway, name, change = call.gateway, call.path["subscription"], call.body
    config = configs_of(change, change.configs)
    gateway.directory.forget(name)  # what it was like may be from before a change
    info = await gateway.directory.subscription(name)
    before = info.topics
    after = list(dict.fromkeys(before if change.topics is None else change.topics))
    gone = [topic for topic in before if topic not in after]
    losses.check(call.access, name, info.config, config, gone)
    new = [topic for topic in after if topic not in before]
    _check_named(call.access, new, config)
    await _check_topics(gateway, new)
    await _check_unread(gateway, name, gone)
    if list(before) != after:
        config[TOPICS_CONFIG] = ",".join(after)
    if config:
        await gateway.directory.alter(name, config)
    for topic in gone:
        await _forget(gateway, name, topic)
    return await _details(gateway, name)


@endpoint(
    "DELETE", "/v1/subscriptions/{subscription}", "Delete a subscription and its state.",
    Rights(group=DELETE),
    status=204, admin=True, problems=(NOT_FOUND, CONFLICT),
)  # fmt: skip
async def delete_subscription(call: Call[Nothing, Nothing]) -> None:
    """Delete the subscription; its topics keep their messages."""
    gateway, name = call.gateway, call.path["subscription"]
    await gateway.directory.subscription(name)  # raises if there is none
    await gateway.redrives.end(name)
    await gateway.directory.delete(name)


def _check_named(access: Access, topics: Sequence[str], config: Mapping[str, str | None]) -> None:
    """Nodes act by a subscription's config with their own rights: so whoever names a topic has to be allowed
    to read it, and to write to one of dead letters. Raises TopicAuthorizationFailed."""
    for topic in topics:
        access.check_topic(topic, READ)
    if letters := config.get(DEAD_LETTER_TOPIC_CONFIG):
        access.check_topic(letters, WRITE)


async def _check_topics(gateway: Gateway, names: Sequence[str]) -> None:
    """A topic that is not there is most likely a typing error. Raises UnknownTopicOrPartition."""
    for name in names:
        await gateway.client.topic(name)


async def _check_unread(gateway: Gateway, name: str, topics: Sequence[str]) -> None:
    members = (await subscriptions.describe(gateway.client, name)).members if topics else ()
    for topic in topics:
        if any(topic in member.topics for member in members):
            raise Refused(problems.CONFLICT, f"Kafka consumers of {name} read {topic}: stop them first.")


async def _forget(gateway: Gateway, name: str, topic: str) -> None:
    with contextlib.suppress(UnknownTopicOrPartition, GroupIdNotFound):  # the topic was deleted
        await subscriptions.forget(gateway.client, name, [topic])


# --- what it promises, and where it is


async def _details(gateway: Gateway, name: str) -> SubscriptionDetails:
    client = gateway.client
    gateway.directory.forget(name)
    info = await gateway.directory.subscription(name)
    state = await subscriptions.describe(client, name)
    progress = await _progress(gateway, name)
    counts = _sum([part.counts for part in progress])
    with contextlib.suppress(PostroadError):
        counts.dead = None
        counts.dead = await letters.count(gateway, info)
    return SubscriptionDetails(
        name=name,
        state=state.state,
        members=len(state.members),
        topics=list(info.topics),
        counts=counts,
        partitions=progress,
        configs={key: value for key, value in info.config.items() if key not in WITHHELD},
        overrides=sorted(key for key in info.overrides if key not in WITHHELD),
        **promises_of(info.config),
    )


async def _progress(gateway: Gateway, name: str) -> list[Progress]:
    client = gateway.client
    positions = await subscriptions.positions(client, name)
    topic_partitions = sorted(positions)
    ends = await offsets.latest(client, topic_partitions)
    bound = asyncio.Semaphore(PEEKS_AT_ONCE)

    async def look(topic_partition: TopicPartition) -> Progress:
        async with bound:
            counts = await _counts(gateway, name, topic_partition, positions)
        return Progress(*topic_partition, positions[topic_partition].start, ends[topic_partition], counts)

    return list(await asyncio.gather(*map(look, topic_partitions)))


async def _counts(
    gateway: Gateway,
    name: str,
    topic_partition: TopicPartition,
    positions: Mapping[TopicPartition, SharePosition],
) -> Counts:
    found = await subscriptions.peek(gateway.client, name, topic_partition)
    lag = max(0, positions[topic_partition].lag)
    return Counts(lag, found.ready, found.in_flight, found.waiting, found.delayed, found.dying)


def _sum(counts: Sequence[Counts]) -> SubscriptionCounts:
    names = Counts.__struct_fields__
    return SubscriptionCounts(*(sum(getattr(each, name) for each in counts) for name in names))
