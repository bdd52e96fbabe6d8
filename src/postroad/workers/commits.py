"""Transactions of a worker: messages are accepted together with what they published, all or nothing.

Many jobs that end at about the same time share one transaction, for it costs the same for one as for
hundreds. If it fails all of them come again, and nothing of what they published is seen by `read_committed`
readers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.partitioner import for_key
from postroad.client.share_consumer import ShareConsumer
from postroad.client.share_message import ShareMessage
from postroad.client.transactions import TransactionalProducer
from postroad.errors import PostroadError
from postroad.wire.records import Record
from postroad.workers.publishing import Outgoing

BATCH_BYTES: Final = 256 * 1024  # a quarter of what a topic accepts by default

Done = Sequence[tuple[ShareMessage, Sequence[Outgoing]]]


class Commits:
    """One transactional producer, for one transaction at a time."""

    def __init__(self, client: Client, consumer: ShareConsumer) -> None:
        self._client = client
        self._consumer = consumer
        self._producer: TransactionalProducer | None = None

    async def commit(self, done: Done) -> None:
        """All of it is in effect, or PostroadError, and then nothing is."""
        if self._producer is None:
            name = f"worker-{self._consumer.member_id}"  # a member's id is its own: nobody is fenced
            self._producer = await TransactionalProducer.begin(self._client, name)
        producer = self._producer
        try:
            for to, records in await self._batches(done):
                await producer.send_records(to, records)
            await producer.acknowledge(self._consumer, [message for message, _ in done])
            await producer.commit()
        except BaseException:
            await self._abort(producer)
            raise

    async def close(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    async def _abort(self, producer: TransactionalProducer) -> None:
        """What can't be aborted now is aborted by the producer that begins next under this name."""
        try:
            await producer.abort()
        except PostroadError:
            with contextlib.suppress(PostroadError):
                producer.close()
            self._producer = None

    async def _batches(self, done: Done) -> list[tuple[TopicPartition, list[Record]]]:
        gathered: dict[TopicPartition, list[Outgoing]] = {}
        chosen: dict[str, int] = {}  # by topic, for what has no key: one batch instead of many
        for outgoing in (each for _, published in done for each in published):
            topic = await self._client.topic(outgoing.topic, create=True)
            if outgoing.key is not None:
                partition = for_key(outgoing.key, len(topic.partitions))
            else:
                partition = chosen.setdefault(
                    topic.name, self._client.runtime.random.randrange(len(topic.partitions))
                )
            gathered.setdefault(TopicPartition(topic.name, partition), []).append(outgoing)
        return [(to, batch) for to, messages in gathered.items() for batch in self._parts(messages)]

    def _parts(self, messages: Sequence[Outgoing]) -> Iterator[list[Record]]:
        now_ms = self._client.runtime.clock.now_ms()
        part: list[Record] = []
        size = 0
        for message in messages:
            bytes_ = (
                len(message.value or b"")
                + len(message.key or b"")
                + sum(len(name) + len(value or b"") for name, value in message.headers)
            )
            if part and size + bytes_ > BATCH_BYTES:
                yield part
                part, size = [], 0
            size += bytes_
            part.append(Record(len(part), now_ms, message.key, message.value, message.headers))
        if part:
            yield part
