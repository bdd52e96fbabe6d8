"""Publishes under a name, once: however often it is repeated, by whomever, the messages are stored one time.

It is the idempotence of Kafka's producers, used by name. The producer id is made from the name, so everybody
who repeats it speaks as the same producer; the first sequence number is made from the content. A partition
that has seen both answers with the offset from the first time and stores nothing; one that has seen the id
with another content finds the sequence out of order. What decides is the partition's log itself, so it holds
over restarts of the node and for requests at the same moment.

1. All messages of a partition go out in the order given, as one batch, or in halves of it for as long as the
   topic refuses them so. A repetition is cut the same way.
2. A message without a key goes where the name says: a repetition must find the same partition.
3. The nodes remember a name for ten minutes after its last use (`log.producers`), at least. When a topic gets
   more partitions within that time, names of before mean nothing for the keys that move.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from postroad.client.append import UNKNOWN_OFFSET, Appended, append
from postroad.client.client import Client
from postroad.client.metadata import Topic, TopicPartition
from postroad.client.partitioner import for_key
from postroad.client.producer import REFUSALS, SEQUENCE_MASK, Sent
from postroad.errors import PostroadError
from postroad.wire.batch import NAMED_PRODUCERS
from postroad.wire.records import Record, encode_batch

_HASH_BITS: Final = NAMED_PRODUCERS - 1
_EPOCH: Final = 0


class Publishable(Protocol):
    @property
    def value(self) -> bytes | None: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...
    @property
    def timestamp(self) -> int | None: ...
    @property
    def partition(self) -> int | None: ...


class Once(NamedTuple):
    """`name` is what is done once; `content` is a digest of what it is, the same for a repetition."""

    name: bytes
    content: bytes

    @property
    def producer_id(self) -> int:
        return NAMED_PRODUCERS | (_number(self.name) & _HASH_BITS)

    @property
    def sequence(self) -> int:
        return _number(self.content) & SEQUENCE_MASK


class _Numbered(NamedTuple):
    number: int  # in the request
    record: Record


async def publish(
    client: Client, topic: Topic, messages: Sequence[Publishable], once: Once
) -> list[Sent | PostroadError]:
    """For each where it is, from now or from before, or why it is nowhere. OutOfOrderSequence: the name was
    used for another content. An offset of -1: it was stored before, and where is forgotten."""
    outcomes: list[Sent | PostroadError] = [PostroadError()] * len(messages)
    by_partition: dict[int, list[_Numbered]] = {}
    now_ms = client.runtime.clock.now_ms()
    for number, message in enumerate(messages):
        stamp = now_ms if message.timestamp is None else message.timestamp
        record = Record(0, stamp, message.key, message.value, message.headers)
        by_partition.setdefault(_partition(topic, message, once), []).append(_Numbered(number, record))
    await asyncio.gather(
        *(
            _Batch(client, TopicPartition(topic.name, partition), once, outcomes).store(those, once.sequence)
            for partition, those in by_partition.items()
        )
    )
    return outcomes


def _partition(topic: Topic, message: Publishable, once: Once) -> int:
    if message.partition is not None:
        return message.partition
    return for_key(once.name if message.key is None else message.key, len(topic.partitions))


class _Batch(NamedTuple):
    """What goes to one partition; `outcomes` are those of the whole request."""

    client: Client
    topic_partition: TopicPartition
    once: Once
    outcomes: list[Sent | PostroadError]

    async def store(self, those: list[_Numbered], sequence: int) -> int:
        """The next sequence number. What is refused uses up none, each time."""
        following = (sequence + len(those)) & SEQUENCE_MASK
        try:
            appended = await self._append(those, sequence)
        except REFUSALS as error:
            return await self._store_halves(those, sequence, error)
        except PostroadError as error:
            for number, _ in those:
                self.outcomes[number] = error
        else:
            self._note(those, appended)
        return following

    async def _store_halves(self, those: list[_Numbered], sequence: int, error: PostroadError) -> int:
        if len(those) == 1:
            self.outcomes[those[0].number] = error
            return sequence
        half = len(those) // 2
        return await self.store(those[half:], await self.store(those[:half], sequence))

    def _note(self, those: list[_Numbered], appended: Appended) -> None:
        base, append_time, topic_id = appended
        for index, (number, record) in enumerate(those):
            offset = UNKNOWN_OFFSET if base == UNKNOWN_OFFSET else base + index
            stamp = record.timestamp if append_time < 0 else append_time
            self.outcomes[number] = Sent(*self.topic_partition, offset, stamp, topic_id)

    async def _append(self, those: list[_Numbered], sequence: int) -> Appended:
        records = [record._replace(offset=index) for index, (_, record) in enumerate(those)]
        batch = encode_batch(
            records,
            base_offset=0,
            producer_id=self.once.producer_id,
            producer_epoch=_EPOCH,
            base_sequence=sequence,
        )
        return await append(self.client, self.topic_partition, batch)


def _number(data: bytes) -> int:
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "big")
