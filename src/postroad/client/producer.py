"""Sends records: gathers them into a batch for each partition, and sees each batch through.

Rules that hold:
1. One batch of a partition is under way at a time and the next gathers meanwhile, so order is kept
   through any number of retries, and batches grow with the load by themselves.
2. Idempotent (the default): each batch carries the producer's id and a sequence number, so that a
   retry of what was appended already is answered and not appended twice.
3. A batch that failed for good leaves a gap in the sequence. That partition goes on under a new id.
4. At most `buffer_bytes_max` wait; `send` waits for room. A delivery ends within `timeout_s`.
5. A record that the topic does not take fails alone: those that shared its batch are sent without it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from postroad.client.append import ALL, UNKNOWN_OFFSET, Appended, append
from postroad.client.client import Client
from postroad.client.metadata import Topic, TopicPartition
from postroad.client.partitioner import StickyPartition, for_key
from postroad.errors import (
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    RecordListTooLarge,
    RequestRefused,
    by_code,
)
from postroad.wire.batch import NO_PRODUCER, NO_SEQUENCE
from postroad.wire.compression import codec_of
from postroad.wire.messages import init_producer_id
from postroad.wire.records import Record, encode_batch

BATCH_BYTES: Final = 256 * 1024  # a quarter of what a topic accepts by default
BUFFER_BYTES_MAX: Final = 32 * 1024 * 1024
RECORD_OVERHEAD: Final = 24  # lengths and deltas of a record, generously
SEQUENCE_MASK: Final = 0x7FFFFFFF
# What a batch is refused with for one of its records, or for its size; then none of it is appended.
REFUSALS: Final = (MessageTooLarge, RecordListTooLarge, InvalidRecord, InvalidTimestamp)

Headers = Sequence[tuple[str, bytes | None]]


class Sent(NamedTuple):
    """Where a record is. The offset is -1 with acks=0, or for a duplicate that is long past. The id is that
    of the topic it is in: another one of the same name may have been known before, or be made later."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    topic_id: bytes


class _Part(NamedTuple):
    """Records of a batch that went out together: all of them, unless the topic refuses them so."""

    first: int  # its number in the batch
    outcome: Appended | RequestRefused  # of a record on its own


_Outcome = tuple[TopicPartition, list[_Part]] | BaseException


class _Batch:
    """Each that waits for it has a future of its own: to cancel one takes nothing from the others, and costs
    less than a shield around one that all share."""

    __slots__ = ("bytes", "callbacks", "outcome", "records", "traceback", "waiting")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.bytes = 0
        self.outcome: _Outcome | None = None  # until it has ended
        self.traceback: TracebackType | None = None  # of an error; it would grow with each who gets it
        self.waiting: list[asyncio.Future[None]] = []
        self.callbacks: list[Callable[[], None]] = []

    def end(self, outcome: _Outcome) -> None:
        self.outcome = outcome
        if isinstance(outcome, BaseException):
            self.traceback = outcome.__traceback__
        for waiter in self.waiting:
            if not waiter.done():
                waiter.set_result(None)
        self.waiting.clear()
        loop = asyncio.get_running_loop()
        for callback in self.callbacks:
            loop.call_soon(callback)
        self.callbacks.clear()


class Delivery:
    """`await` it for where the record was stored, or its error. It goes on whether anyone waits or not."""

    __slots__ = ("_batch", "_number")

    def __init__(self, batch: _Batch, number: int) -> None:
        self._batch = batch
        self._number = number

    def __await__(self) -> Generator[Any, None, Sent]:
        batch = self._batch
        if batch.outcome is None:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            batch.waiting.append(waiter)
            yield from waiter
        return self.result()

    def then(self, callback: Callable[[], None]) -> None:
        """Call it when there is a result. For whoever can do without a task: it costs more than a record."""
        if self._batch.outcome is None:
            self._batch.callbacks.append(callback)
        else:
            asyncio.get_running_loop().call_soon(callback)

    def result(self) -> Sent:
        """Where the record was stored; raises its error; when it was delivered, and not before."""
        batch = self._batch
        assert batch.outcome is not None, "nobody is woken before"
        if isinstance(batch.outcome, BaseException):
            raise batch.outcome.with_traceback(batch.traceback)
        topic_partition, parts = batch.outcome
        first, outcome = next(part for part in reversed(parts) if part.first <= self._number)
        if isinstance(outcome, RequestRefused):
            raise outcome
        base, append_time, topic_id = outcome
        offset = UNKNOWN_OFFSET if base == UNKNOWN_OFFSET else base + self._number - first
        timestamp = batch.records[self._number].timestamp if append_time < 0 else append_time
        return Sent(*topic_partition, offset, timestamp, topic_id)


class _Queue:
    """The batches that wait for one partition, and the task that sends them while there are any."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.batches: deque[_Batch] = deque()
        self.task: asyncio.Task[None] | None = None
        self.producer_id = NO_PRODUCER
        self.producer_epoch = -1
        self.next_sequence = 0


class Producer:
    """`async with Producer(client) as producer: await (await producer.send("topic", b"value"))`"""

    def __init__(
        self,
        client: Client,
        *,
        acks: int = ALL,
        compression: str = "none",
        idempotent: bool | None = None,
        linger_ms: float = 0,
        batch_bytes: int = BATCH_BYTES,
        buffer_bytes_max: int = BUFFER_BYTES_MAX,
        timeout_s: float | None = None,
    ) -> None:
        self._client = client
        self._now_ms = client.runtime.clock.now_ms
        self._acks = acks
        self._codec = codec_of(compression)
        self._idempotent = acks == ALL if idempotent is None else idempotent
        self._linger_s = linger_ms / 1000
        self._batch_bytes = batch_bytes
        self._buffer_bytes_max = buffer_bytes_max
        self._timeout_s = client.timeout_s if timeout_s is None else timeout_s
        self._queues: dict[TopicPartition, _Queue] = {}
        self._sticky: dict[str, StickyPartition] = {}
        self.buffered_bytes = 0  # what waits or is under way; never above the bound (rule 4)
        self._room = asyncio.Event()
        self._failure: Exception | None = None
        self._identity = (NO_PRODUCER, -1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        if exc_type is None:
            await self.flush()
        tasks = [queue.task for queue in self._queues.values() if queue.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for batch in (batch for queue in self._queues.values() for batch in queue.batches):
            batch.end(asyncio.CancelledError())

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery:
        """Queued when this returns; the delivery tells the rest. Waits while the buffer is full."""
        size = _size(key, value, headers)
        if size > self._buffer_bytes_max:
            raise MessageTooLarge(f"A record of {size:,} bytes is larger than the producer's buffer.")
        found = self._client.known_topic(topic)
        if found is None:
            found = await self._client.topic(topic, create=True)
        if partition is None:
            partition = self._choose(found, key)
        else:
            found.check(partition)
        queue = self._queue(TopicPartition(topic, partition))
        if queue.batches and queue.batches[-1].bytes + size > self._batch_bytes:
            await asyncio.sleep(0)  # a loop that only sends would keep the full batch from leaving
        while self.buffered_bytes and self.buffered_bytes + size > self._buffer_bytes_max:
            self._room.clear()
            await self._room.wait()
        if timestamp is None:
            timestamp = self._now_ms()
        return self._append(self._batch(queue, found, size, key), queue, size, timestamp, key, value, headers)

    def send_now(
        self, topic: str, value: bytes | None, *, key: bytes | None = None, headers: Headers = ()
    ) -> Delivery | None:
        """As `send`, if nothing has to be waited for; None otherwise, and then nothing was done."""
        size = _size(key, value, headers)
        found = self._client.known_topic(topic)
        if found is None or self.buffered_bytes + size > self._buffer_bytes_max:
            return None
        queue = self._queue(TopicPartition(topic, self._choose(found, key)))
        if queue.batches and queue.batches[-1].bytes + size > self._batch_bytes:
            return None
        now_ms = self._now_ms()
        return self._append(self._batch(queue, found, size, key), queue, size, now_ms, key, value, headers)

    async def flush(self) -> None:
        """All that was sent is delivered, or has failed: then the first error since the last flush."""
        while tasks := [queue.task for queue in self._queues.values() if queue.task is not None]:
            await asyncio.wait(tasks)
        if (failure := self._failure) is not None:
            self._failure = None
            raise failure

    # --- gathering -----------------------------------------------------------------------------

    def _choose(self, topic: Topic, key: bytes | None) -> int:
        if key is not None:
            return for_key(key, len(topic.partitions))
        if topic.name not in self._sticky:
            self._sticky[topic.name] = StickyPartition(self._client.runtime)
        return self._sticky[topic.name].choose(len(topic.partitions))

    def _append(
        self,
        batch: _Batch,
        queue: _Queue,
        size: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> Delivery:
        number = len(batch.records)
        batch.records.append(Record(number, timestamp, key, value, headers))
        batch.bytes += size
        self.buffered_bytes += size
        if queue.task is None:
            queue.task = asyncio.create_task(self._drain(queue), name=f"produce {queue.topic_partition}")
        return Delivery(batch, number)

    def _queue(self, topic_partition: TopicPartition) -> _Queue:
        queue = self._queues.get(topic_partition)
        if queue is None:
            queue = self._queues[topic_partition] = _Queue(topic_partition)
        return queue

    def _batch(self, queue: _Queue, topic: Topic, size: int, key: bytes | None) -> _Batch:
        """The one that gathers, or a new one where it has no room for `size` more."""
        batch = queue.batches[-1] if queue.batches else None
        if batch is None or batch.bytes + size > self._batch_bytes:
            if batch is not None and key is None and topic.name in self._sticky:
                self._sticky[topic.name].move(len(topic.partitions))
            batch = _Batch()
            queue.batches.append(batch)
        return batch

    # --- sending -------------------------------------------------------------------------------

    async def _drain(self, queue: _Queue) -> None:
        """Send until nothing waits. The task ends then, and the next record starts another."""
        try:
            if self._linger_s and len(queue.batches) == 1:
                await asyncio.sleep(self._linger_s)
            while queue.batches:
                batch = queue.batches.popleft()
                await self._deliver(queue, batch)
                self.buffered_bytes -= batch.bytes
                self._room.set()
        finally:
            queue.task = None

    async def _deliver(self, queue: _Queue, batch: _Batch) -> None:
        try:
            await self._identify(queue)
            parts = await self._produce_parts(queue, batch.records, 0)
        except asyncio.CancelledError:
            batch.end(asyncio.CancelledError())
            raise
        except Exception as error:  # whoever awaits the delivery is to see it, whatever it is
            queue.producer_id = NO_PRODUCER  # rule 3
            self._failure = self._failure or error
            batch.end(error)
        else:
            batch.end((queue.topic_partition, parts))

    async def _produce_parts(self, queue: _Queue, records: list[Record], first: int) -> list[_Part]:
        """All records in one batch, or in halves of it for as long as the topic refuses them (rule 5)."""
        try:
            appended = await self._produce(queue, records)
        except REFUSALS as error:
            if len(records) == 1:
                self._failure = self._failure or error
                return [_Part(first, error)]
            half = len(records) // 2
            parts = await self._produce_parts(queue, records[:half], first)
            return parts + await self._produce_parts(queue, records[half:], first + half)
        queue.next_sequence = (queue.next_sequence + len(records)) & SEQUENCE_MASK
        return [_Part(first, appended)]

    async def _identify(self, queue: _Queue) -> None:
        """The partition has an id. All share one, until one of them had to give it up."""
        if not self._idempotent or queue.producer_id != NO_PRODUCER:
            return
        failed_before = queue.producer_epoch != -1
        if self._identity[0] == NO_PRODUCER or failed_before:
            request = init_producer_id.InitProducerIdRequest(transaction_timeout_ms=0)

            async def attempt() -> tuple[int, int]:
                answer = await self._client.call(init_producer_id, request)
                if answer.error_code:
                    raise by_code(answer.error_code)
                return answer.producer_id, answer.producer_epoch

            self._identity = await self._client.retry(attempt, self._timeout_s)
        queue.producer_id, queue.producer_epoch = self._identity
        queue.next_sequence = 0

    async def _produce(self, queue: _Queue, records: list[Record]) -> Appended:
        """The records as one batch."""
        batch = encode_batch(
            records,
            base_offset=records[0].offset,  # their numbers in the batch; the broker gives them their offsets
            compression=self._codec,
            producer_id=queue.producer_id,
            producer_epoch=queue.producer_epoch,
            base_sequence=queue.next_sequence if self._idempotent else NO_SEQUENCE,
        )
        return await append(
            self._client, queue.topic_partition, batch, acks=self._acks, timeout_s=self._timeout_s
        )


def _size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """What a record takes in its batch, at most."""
    size = len(value or b"") + len(key or b"") + RECORD_OVERHEAD
    for name, content in headers:
        size += len(name) * 4 + len(content or b"") + RECORD_OVERHEAD
    return size
