"""Dead letters of a subscription, read from its dead-letter topic.

That topic may be shared with others, so a letter counts as the subscription's if it says so. One that was
sent back is struck off in the subscription that redrives use (`client.redrive`), and stays in the topic.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Final, NamedTuple

from postroad.client import offsets, subscriptions
from postroad.client.browse import READ_BYTES, size_of
from postroad.client.consumer import Consumer
from postroad.client.metadata import Topic, TopicPartition
from postroad.client.offsets import EARLIEST
from postroad.client.struck_off import GROUP_SUFFIX, not_sent_back
from postroad.errors import GroupIdNotFound, UnknownTopicOrPartition
from postroad.gateway import message_ids, pages
from postroad.gateway.directory import SubscriptionInfo
from postroad.gateway.gateway import Gateway
from postroad.wire.header_names import DEAD_OFFSET, DEAD_PARTITION, DEAD_REASON, DEAD_SUBSCRIPTION, DEAD_TOPIC
from postroad.wire.records import Record
from postroad.wire.subscription_names import (
    DEAD_LETTER_TOPIC_CONFIG,
    DEAD_LETTERS_CONFIG,
    default_dead_letter_topic,
)

SCAN_MAX: Final = 10_000  # letters that are looked at for one question
SCAN_S: Final = 2.0


class Found(NamedTuple):
    id: str
    topic: str
    reason: str


class Page(NamedTuple):
    """`following` is where to go on; None at the end."""

    letters: list[tuple[TopicPartition, Record]]
    following: tuple[int, int] | None  # partition, offset


class _TooMany(Exception):
    """There are more letters than are looked at for one question."""


def topic_of(info: SubscriptionInfo) -> str:
    return info.config[DEAD_LETTER_TOPIC_CONFIG] or default_dead_letter_topic(info.name)


def text(record: Record, header: str) -> str:
    for name, value in record.headers:
        if name == header:
            return (value or b"").decode(errors="replace")
    return ""


def number(record: Record, header: str) -> int | None:
    found = text(record, header)
    return int(found) if found.isascii() and found.isdecimal() and len(found) < 20 else None


async def count(gateway: Gateway, info: SubscriptionInfo) -> int:
    """The letters in the subscription's dead-letter topic that were neither sent back nor discarded."""
    client = gateway.client
    try:
        topic = await client.topic(topic_of(info))
    except UnknownTopicOrPartition:
        return 0
    try:
        struck_off = await subscriptions.positions(client, topic.name + GROUP_SUFFIX)
    except GroupIdNotFound:
        struck_off = {}
    all_of_it = [TopicPartition(topic.name, part.number) for part in topic.partitions]
    lags = {each: position.lag for each, position in struck_off.items() if position.lag >= 0}
    uncounted = [each for each in all_of_it if each not in lags]
    starts, ends = await offsets.earliest(client, uncounted), await offsets.latest(client, uncounted)
    return sum(lags.values()) + sum(ends[each] - starts[each] for each in uncounted)


async def find(
    gateway: Gateway, info: SubscriptionInfo, topic_partition: TopicPartition, record: Record
) -> tuple[Found | None, bool]:
    """The letter of a message, and whether it is certain that there is no other answer.

    It is not where letters are not kept, and where there are too many to look at.
    """
    if info.config[DEAD_LETTERS_CONFIG] != "true":
        return None, False
    try:
        topic = await gateway.client.topic(topic_of(info))
    except UnknownTopicOrPartition:
        return None, True
    mine = {
        DEAD_SUBSCRIPTION: info.name,
        DEAD_TOPIC: topic_partition.topic,
        DEAD_PARTITION: str(topic_partition.partition),
    }
    mine[DEAD_OFFSET] = str(record.offset)
    # A letter's time is that of its death. A message's may be anything its publisher chose.
    since_ms = record.timestamp if 0 < record.timestamp <= gateway.now_ms() else EARLIEST
    try:
        async with contextlib.aclosing(_scan(gateway, topic, since_ms)) as scan:
            async for at, letter in scan:
                if all(text(letter, header) == value for header, value in mine.items()):
                    message_id = message_ids.write(topic.id, at.partition, letter.offset)
                    return Found(message_id, topic.name, text(letter, DEAD_REASON)), True
    except _TooMany:
        return None, False
    return None, True


async def _scan(
    gateway: Gateway, topic: Topic, since_ms: int
) -> AsyncGenerator[tuple[TopicPartition, Record], None]:
    """All letters from a time on. Raises _TooMany at a bound."""
    client = gateway.client
    topic_partitions = [TopicPartition(topic.name, part.number) for part in topic.partitions]
    starts = await offsets.find(client, dict.fromkeys(topic_partitions, since_ms))
    ends = await offsets.latest(client, topic_partitions)
    begin = {
        topic_partition: at.offset
        for topic_partition, at in starts.items()
        if 0 <= at.offset < ends[topic_partition]
    }
    deadline = asyncio.get_running_loop().time() + SCAN_S
    looked_at = 0
    async with Consumer(client, reset=EARLIEST) as consumer:
        await consumer.assign(begin)
        while any(consumer.positions[topic_partition] < ends[topic_partition] for topic_partition in begin):
            left_s = deadline - asyncio.get_running_loop().time()
            if left_s <= 0 or looked_at >= SCAN_MAX:
                raise _TooMany
            for topic_partition, records, _ in await consumer.poll(left_s):
                looked_at += len(records)
                for record in records:
                    yield topic_partition, record


async def page(gateway: Gateway, name: str, topic: Topic, partition: int, offset: int, limit: int) -> Page:
    """Letters of a subscription that were not sent back, partition after partition, from a position on."""
    found: list[tuple[TopicPartition, Record]] = []
    size = 0
    for part in topic.partitions[partition:]:
        topic_partition = TopicPartition(topic.name, part.number)
        first = offset if part.number == partition else 0
        left = limit - len(found), pages.BYTES_MAX - size
        letters, following = await _of_partition(gateway, name, topic_partition, first, *left)
        found += [(topic_partition, letter) for letter in letters]
        size += sum(map(size_of, letters))
        if following is not None:
            return Page(found, (part.number, following))
    return Page(found, None)


async def _of_partition(
    gateway: Gateway, name: str, topic_partition: TopicPartition, first: int, limit: int, bytes_max: int
) -> tuple[list[Record], int | None]:
    """Up to `limit` of them, about `bytes_max` at most, and the offset to go on from, if that was not all."""
    client = gateway.client
    first = max(first, (await offsets.earliest(client, [topic_partition]))[topic_partition])
    end = (await offsets.latest(client, [topic_partition]))[topic_partition]
    found: list[Record] = []
    looked_at = size = 0
    async with Consumer(client, reset=EARLIEST, partition_bytes=READ_BYTES) as consumer:
        await consumer.assign({topic_partition: first})
        while first < end:
            if len(found) >= limit or looked_at >= SCAN_MAX or size >= bytes_max:
                return found[:limit], found[limit].offset if len(found) > limit else first
            came = [record for _, records, _ in await consumer.poll(SCAN_S) for record in records]
            looked_at += len(came)
            mine = [record for record in came if text(record, DEAD_SUBSCRIPTION) == name]
            found += (left := await not_sent_back(client, topic_partition, mine))
            size += sum(map(size_of, left))
            if not came:
                break  # the rest is deleted, or can't be had now
            first = consumer.positions[topic_partition]
    return found[:limit], found[limit].offset if len(found) > limit else None
