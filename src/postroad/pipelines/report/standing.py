"""Who reads these topics, and how far behind they are: asked of the cluster, now.

    lag  kind (consumer group | subscription), name, topic, partition, position, end, messages, seconds

`seconds` is the age of the oldest message that is not handled; null if there is none. A group that has
committed offsets of a topic is behind on its other partitions, too, by all that they have; `position` is null
there.

Dead letters lie in topics of any name: those of subscriptions are known, others are recognized by the headers
of their first messages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

import pyarrow as pa

from postroad.client import Client, groups, lag, offsets, subscriptions
from postroad.client.consumer import Consumer
from postroad.client.metadata import Topic, TopicPartition
from postroad.errors import PostroadError, UnknownTopicOrPartition, UnsupportedVersion
from postroad.wire import header_names as names
from postroad.wire.subscription_names import DEAD_LETTER_TOPIC_CONFIG, default_dead_letter_topic

PEEKED_MAX: Final = 500  # partitions that may hold letters, and are looked at
PEEK_BYTES: Final = 16 * 1024  # a batch comes whole, however large it is
PEEK_S: Final = 5.0

GROUP: Final = "consumer group"
SUBSCRIPTION: Final = "subscription"

_SCHEMA: Final = pa.schema(
    [
        ("kind", pa.string()),
        ("name", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("position", pa.int64()),
        ("end", pa.int64()),
        ("messages", pa.int64()),
        ("seconds", pa.float64()),
    ]
)


class Standing(NamedTuple):
    """`unknown` is why nobody was asked, or nobody answered; empty if all is known."""

    lag: Any
    dead_letter_topics: tuple[str, ...]
    unknown: str = ""


class _Behind(NamedTuple):
    kind: str
    name: str
    topic: str
    partition: int
    position: int | None
    end: int
    messages: int
    seconds: float | None


def ask(
    bootstrap: str, topics: Collection[str], dead_letters: Collection[str] = (), *, must_answer: bool
) -> Standing:
    """The standing of all that read these topics. If it need not answer, an unreachable cluster is said.

    `dead_letters` are topics that hold letters, besides those that are found.
    """
    try:
        # In a thread of its own: a notebook has a loop that runs already.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, _ask(bootstrap, topics, dead_letters)).result()
    except PostroadError as error:
        if must_answer:
            raise
        return Standing(_SCHEMA.empty_table(), (), str(error))


async def _ask(bootstrap: str, topics: Collection[str], dead_letters: Collection[str]) -> Standing:
    async with Client(bootstrap, client_id="postroad-report") as client:
        existing = (await client.cluster()).topics
        for name in dead_letters:
            if name not in existing:
                raise UnknownTopicOrPartition(f"there is no topic {name} for dead letters")
        found = await _of_groups(client, topics)
        dead = {*dead_letters}
        for listed in await _subscriptions(client):
            behind = await _of_subscription(client, listed.group, topics)
            found += behind
            if behind:
                dead.add(await _dead_letter_topic(client, listed.group))
        dead = dead & set(existing)
        others = [info for name, info in sorted(existing.items()) if name not in dead and name not in topics]
        dead |= await _holding_letters(client, topics, others)
    rows = [each._asdict() for each in sorted(found, key=lambda each: each[:4])]
    return Standing(pa.Table.from_pylist(rows, _SCHEMA), tuple(sorted(dead)))


async def _of_groups(client: Client, topics: Collection[str]) -> list[_Behind]:
    found: list[_Behind] = []
    for listed in await groups.list_all(client):
        if listed.type == subscriptions.SHARE:
            continue
        found += [
            _Behind(GROUP, listed.group, *topic_partition, committed, end, messages, seconds)
            for topic_partition, committed, end, messages, seconds in await lag.measure(client, listed.group)
            if topic_partition.topic in topics
        ]
    return found + await _untouched(client, found)


async def _untouched(client: Client, behind: list[_Behind]) -> list[_Behind]:
    """Partitions of which a group has committed nothing, of topics of which it has committed something."""
    touched = {(each.name, each.topic, each.partition) for each in behind}
    infos = (await client.cluster({each.topic for each in behind})).topics if behind else {}
    missing = [
        (name, TopicPartition(topic, partition))
        for name, topic in sorted({(each.name, each.topic) for each in behind})
        for partition in range(len(infos[topic].partitions))
        if (name, topic, partition) not in touched
    ]
    topic_partitions = sorted({topic_partition for _, topic_partition in missing})
    begin = await offsets.earliest(client, topic_partitions)
    end = await offsets.latest(client, topic_partitions)
    waiting = {each: begin[each] for each in topic_partitions if begin[each] < end[each]}
    times = await lag.times_at(client, waiting)
    now_ms = time.time() * 1000
    return [
        _Behind(
            GROUP,
            name,
            *each,
            None,
            end[each],
            end[each] - begin[each],
            max(0.0, (now_ms - times[each]) / 1000) if each in times else None,
        )
        for name, each in missing
    ]


async def _holding_letters(client: Client, topics: Collection[str], others: Sequence[Topic]) -> set[str]:
    """Those of the other topics whose first message is a dead letter of one of these topics."""
    # Names that have to do with these topics first, since not all can be looked at.
    likely = sorted(others, key=lambda info: not any(topic in info.name for topic in topics))
    partitions = [
        TopicPartition(info.name, partition)
        for info in likely
        if not info.is_internal
        for partition in range(len(info.partitions))
    ][:PEEKED_MAX]
    begin, end = await offsets.earliest(client, partitions), await offsets.latest(client, partitions)
    waiting = {each: begin[each] for each in partitions if begin[each] < end[each]}
    found: set[str] = set()
    deadline = asyncio.get_running_loop().time() + PEEK_S
    async with Consumer(client, reset=offsets.EARLIEST, partition_bytes=PEEK_BYTES) as consumer:
        while waiting and (left_s := deadline - asyncio.get_running_loop().time()) > 0:
            await consumer.assign(waiting)
            for topic_partition, records, _ in await consumer.poll(left_s):
                waiting.pop(topic_partition, None)
                origin = dict(records[0].headers).get(names.DEAD_TOPIC)
                if origin is not None and origin.decode(errors="replace") in topics:
                    found.add(topic_partition.topic)
    return found


async def _subscriptions(client: Client) -> list[groups.GroupListing]:
    """None where the cluster is a Kafka from before share groups."""
    try:
        return await subscriptions.list_all(client)
    except UnsupportedVersion:
        return []


async def _of_subscription(client: Client, name: str, topics: Collection[str]) -> list[_Behind]:
    positions = {
        topic_partition: position
        for topic_partition, position in (await subscriptions.positions(client, name)).items()
        if topic_partition.topic in topics
    }
    ends = await offsets.latest(client, list(positions))
    waiting = {
        topic_partition: position.start for topic_partition, position in positions.items() if position.lag > 0
    }
    times = await lag.times_at(client, waiting)
    now_ms = time.time() * 1000
    return [
        _Behind(
            SUBSCRIPTION,
            name,
            *topic_partition,
            position.start,
            ends[topic_partition],
            max(0, position.lag),
            max(0.0, (now_ms - times[topic_partition]) / 1000) if topic_partition in times else None,
        )
        for topic_partition, position in positions.items()
    ]


async def _dead_letter_topic(client: Client, name: str) -> str:
    configs = await subscriptions.config_of_all(client, [name], DEAD_LETTER_TOPIC_CONFIG)
    return configs.get(name) or default_dead_letter_topic(name)
