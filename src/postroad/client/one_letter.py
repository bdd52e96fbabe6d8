"""One dead letter taken out of many: sent back as somebody has edited it, or discarded.

It is found and struck off in the subscription that redrives use (`client.redrive`), so a redrive that runs
at the same moment and this never both send it. Those that come before it are held meanwhile, and released by
leaving: what a letter costs grows with how many there are before it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from postroad.client import subscriptions
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.producer import Producer, Sent
from postroad.client.redrive import GROUP_CONFIG, POLL_MS, POLL_RECORDS
from postroad.client.share_consumer import ShareConsumer
from postroad.client.share_message import ShareMessage
from postroad.client.struck_off import GROUP_SUFFIX, not_sent_back
from postroad.errors import GroupIdNotFound, InvalidRecordState, NonEmptyGroup
from postroad.wire.records import Record

PATIENCE_S: Final = 10.0  # while others hold the letter, or many come before it


class Replacement(NamedTuple):
    """What is published in the letter's place."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


async def send_back(
    client: Client, topic_partition: TopicPartition, offset: int, replacement: Replacement
) -> Sent:
    """It is published, and the letter struck off. A crash in between leaves both.

    Raises InvalidRecordState if the letter was sent back or discarded before, or somebody else holds it.
    """
    async with _Taken(client, topic_partition, offset) as taken, Producer(client) as producer:
        topic, key, value, headers = replacement
        sent = await (await producer.send(topic, value, key=key, headers=headers))
        await taken.strike_off()
        return sent


async def discard(client: Client, topic_partition: TopicPartition, offset: int) -> None:
    """The letter is struck off; it stays in its topic until retention takes it. Raises as `send_back`."""
    async with _Taken(client, topic_partition, offset) as taken:
        await taken.strike_off()


class _Taken:
    """`async with`: the letter is held; whatever else came is released at the end."""

    def __init__(self, client: Client, topic_partition: TopicPartition, offset: int) -> None:
        self._client = client
        self._topic_partition = topic_partition
        self._record = Record(offset, -1, None, None)
        self._group = topic_partition.topic + GROUP_SUFFIX
        self._is_first = False
        self._is_struck_off = False
        self._letter: ShareMessage
        self._consumer: ShareConsumer

    async def __aenter__(self) -> _Taken:
        try:
            await subscriptions.positions(self._client, self._group)
        except GroupIdNotFound:
            self._is_first = True
        await subscriptions.alter_config(self._client, self._group, GROUP_CONFIG)
        self._consumer = ShareConsumer(self._client, self._group, [self._topic_partition.topic])
        await self._consumer.__aenter__()
        try:
            self._letter = await self._find()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._consumer.__aexit__(None, None, None)
        if self._is_first and not self._is_struck_off:
            with contextlib.suppress(NonEmptyGroup, GroupIdNotFound):  # somebody else has joined it
                await subscriptions.delete(self._client, self._group)

    async def _find(self) -> ShareMessage:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_S
        while loop.time() < deadline:
            letters = await self._consumer.poll(POLL_RECORDS, POLL_MS)
            for letter in letters:
                if letter.offset == self._record.offset and letter.topic_partition == self._topic_partition:
                    return letter
            letter_is_left = await not_sent_back(self._client, self._topic_partition, [self._record])
            if not letters and not letter_is_left:
                raise InvalidRecordState("The letter was sent back or discarded before.")
        raise InvalidRecordState("A redrive holds the letter now.")

    async def strike_off(self) -> None:
        for refusal in await self._consumer.settle([self._letter]):
            raise refusal.error
        self._is_struck_off = True
