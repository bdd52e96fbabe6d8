"""Who reads these topics, and how far behind they are: asked of the cluster, now.

    lag  kind (consumer group | subscription), name, topic, partition, position, end, messages, seconds

`seconds` is the age of the oldest message that is not handled; null if there is none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

import pyarrow as pa

from postroad.client import Client, groups, lag, offsets, subscriptions
from postroad.errors import PostroadError, UnsupportedVersion
from postroad.wire.subscription_names import DEAD_LETTER_TOPIC_CONFIG, default_dead_letter_topic

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
    position: int
    end: int
    messages: int
    seconds: float | None


def ask(bootstrap: str, topics: Collection[str], *, must_answer: bool) -> Standing:
    """The standing of all that read these topics. If it need not answer, an unreachable cluster is said."""
    try:
        # In a thread of its own: a notebook has a loop that runs already.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, _ask(bootstrap, topics)).result()
    except PostroadError as error:
        if must_answer:
            raise
        return Standing(_SCHEMA.empty_table(), (), str(error))


async def _ask(bootstrap: str, topics: Collection[str]) -> Standing:
    async with Client(bootstrap, client_id="postroad-report") as client:
        found = await _of_groups(client, topics)
        dead: set[str] = set()
        for listed in await _subscriptions(client):
            behind = await _of_subscription(client, listed.group, topics)
            found += behind
            if behind:
                dead.add(await _dead_letter_topic(client, listed.group))
        existing = (await client.cluster()).topics
    rows = [each._asdict() for each in sorted(found)]
    return Standing(pa.Table.from_pylist(rows, _SCHEMA), tuple(sorted(dead & set(existing))))


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
