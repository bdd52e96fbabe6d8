"""Records of topics, one by one, as a member of a consumer group."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

from postroad.workers.payloads import Decode, decoder

if TYPE_CHECKING:
    from postroad.client.consumer import Consumer
    from postroad.client.metadata import TopicPartition
    from postroad.wire.records import Record as WireRecord
    from postroad.workers.client import Client

POLL_S: Final = 1.0
STARTS: Final = ("earliest", "latest")

T = TypeVar("T")


class Record(Generic[T]):
    """A record of a topic. `value` is read from the payload when it is asked for."""

    __slots__ = ("_decode", "_record", "_topic_partition")

    def __init__(self, topic_partition: TopicPartition, record: WireRecord, decode: Decode) -> None:
        self._topic_partition = topic_partition
        self._record = record
        self._decode = decode

    @property
    def value(self) -> T:
        """`postroad.Undecodable` if the payload is not of the type that was asked for."""
        found: T = self._decode(self._record.value)
        return found

    @property
    def payload(self) -> bytes | None:
        value = self._record.value
        return None if value is None else bytes(value)

    @property
    def topic(self) -> str:
        return self._topic_partition.topic

    @property
    def partition(self) -> int:
        return self._topic_partition.partition

    @property
    def offset(self) -> int:
        return self._record.offset

    @property
    def key(self) -> str | None:
        key = self._record.key
        return None if key is None else str(key, "utf-8", "surrogateescape")

    @property
    def headers(self) -> dict[str, str]:
        return {name: str(value or b"", "utf-8", "surrogateescape") for name, value in self._record.headers}

    @property
    def published_at(self) -> datetime:
        return datetime.fromtimestamp(self._record.timestamp / 1000, UTC)

    def __repr__(self) -> str:
        return f"<Record {self.topic}/{self.partition}/{self.offset}>"


class Stream(Generic[T]):
    """`async for record in stream`. Closing it commits what was handled and leaves the group."""

    def __init__(self, client: Client, topics: Sequence[str], group: str, of: Any, start: str) -> None:
        if start not in STARTS:
            raise ValueError(f"start: {start!r} is none of {', '.join(STARTS)}")
        if not topics:
            raise TypeError('name at least one topic: subscribe("orders", group="billing")')
        self._client = client
        self._topics = topics
        self._group = group
        self._start = start
        self._decode = decoder(of)
        self._consumer: Consumer | None = None
        self._coming: deque[tuple[TopicPartition, WireRecord]] = deque()
        self._unhandled: tuple[TopicPartition, WireRecord] | None = None
        self._is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record[T]:
        if self._is_closed:
            raise StopAsyncIteration
        self._unhandled = None
        consumer = self._consumer or await self._join()
        while not self._coming:
            for fetched in await consumer.poll(POLL_S):
                self._coming += [(fetched.topic_partition, record) for record in fetched.records]
        self._unhandled = topic_partition, record = self._coming.popleft()
        return Record(topic_partition, record, self._decode)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._is_closed = True
        consumer, self._consumer = self._consumer, None
        if consumer is None:
            return
        left = ([] if self._unhandled is None else [self._unhandled]) + list(self._coming)
        for topic_partition, record in reversed(left):
            if topic_partition in consumer.positions:
                consumer.rewind(topic_partition, record.offset)
        await consumer.close()

    async def _join(self) -> Consumer:
        from postroad.client.consumer import Consumer
        from postroad.client.offsets import EARLIEST, LATEST
        from postroad.workers.declaring import declare_topic

        kafka = await self._client.kafka()
        for topic in self._topics:  # a group is not told of one that comes later
            await declare_topic(kafka, topic)
        self._client.opened.append(self)
        reset = EARLIEST if self._start == "earliest" else LATEST
        self._consumer = Consumer(kafka, group=self._group, reset=reset)
        await self._consumer.subscribe(self._topics)
        return self._consumer
