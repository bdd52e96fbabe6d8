"""Transactions of a gateway: what one request publishes and what it accepts happens all, or not at all.

Each takes one of the gateway's own transactional ids for as long as it lasts, `IDS_MAX` at most at a time.
The ids are made from the gateway's name (`http.name`), so one that was killed and is started again aborts
what it left open, and what it had accepted comes again at once. Else it comes when `TIMEOUT_MS` are over.

Messages are published first: most of what can be refused is refused there, and then no lock is touched. What
was accepted in a transaction that is aborted is released, as after a failed delivery.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import os
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from postroad.client import transaction_admin
from postroad.client.client import Client
from postroad.client.metadata import Topic, TopicPartition
from postroad.client.partitioner import for_key
from postroad.client.producer import BATCH_BYTES, REFUSALS, Sent
from postroad.client.share_message import AckType
from postroad.client.transactions import FEATURE, OWN_EPOCHS, TransactionalProducer
from postroad.errors import (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    PostroadError,
    ProducerFenced,
    TryAgain,
    UnsupportedVersion,
)
from postroad.gateway.receipts import Receipt
from postroad.gateway.settler import Settler
from postroad.wire.records import Record

IDS_MAX: Final = 16  # transactions at a time: each is a few round trips
TIMEOUT_MS: Final = 30_000  # of a transaction: so long what a dead gateway took is away, at most
WAIT_S: Final = 10.0  # for an id that is free
CLEAR_S: Final = 5.0  # so long the first transactions wait for what another gateway of this name has left
ABORT_S: Final = 5.0  # else the transaction ends when its time is over, or when its id is used again
INDEXES_MAX: Final = 10  # of refused receipts in an error
NAME_BYTES: Final = 8

OFF: Final = "Transactions are off: leave kafka.transactions on at every node."
TAKEN_OVER: Final = (
    "The transaction was ended before its commit, and nothing of it has happened: it took too long, or "
    "another gateway has the same http.name. Try again."
)
BUSY: Final = "All transactions of this gateway are in use."

GONE: Final = (ProducerFenced, InvalidProducerEpoch, InvalidProducerIdMapping)

log = logging.getLogger(__name__)


class ToPublish(NamedTuple):
    """A message on its way to a topic that exists."""

    topic: Topic
    value: bytes | None
    key: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    timestamp: int | None
    partition: int | None


class EntryRefused(Exception):
    """Some entries of the request can't be; so nothing of it has happened."""

    def __init__(self, field: str, indexes: Sequence[int], error: PostroadError) -> None:
        named = ", ".join(f"{field}[{index}]" for index in indexes[:INDEXES_MAX])
        more = ", …" if len(indexes) > INDEXES_MAX else ""
        super().__init__(f"{named}{more}: {error}")
        self.error = error


class OutcomeUnknown(Exception):
    """The commit was asked for, and no answer came."""


async def check_on(client: Client) -> None:
    """Raises UnsupportedVersion where transactions are off."""
    connection = await client.connection()
    if connection.features.get(FEATURE, 0) < OWN_EPOCHS:
        raise UnsupportedVersion(OFF)


class _Numbered(NamedTuple):
    number: int  # in the request
    record: Record


class _Slot:
    """One transactional id, and the producer that speaks for it."""

    def __init__(self, client: Client, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self._client = client
        self._producer: TransactionalProducer | None = None

    async def producer(self) -> TransactionalProducer:
        """It has fenced whoever used the id before. Raises UnsupportedVersion where transactions are off."""
        if self._producer is None:
            await check_on(self._client)
            self._producer = await TransactionalProducer.begin(
                self._client, self.transactional_id, timeout_ms=TIMEOUT_MS
            )
        return self._producer

    def discard(self) -> None:
        """Nobody knows what its producer has left open: the next one aborts it."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None


class Transactions:
    def __init__(self, client: Client, settler: Settler, name: str) -> None:
        """Without a name nothing is known of what a gateway before this one has left."""
        self._client = client
        self._settler = settler
        self._is_named = bool(name)
        prefix = f"postroad-gateway-{name or os.urandom(NAME_BYTES).hex()}"
        self._slots = [_Slot(client, f"{prefix}-{number}") for number in range(IDS_MAX)]
        self._free = list(range(IDS_MAX))  # a heap: few ids are used where few are needed
        self._freed = asyncio.Semaphore(IDS_MAX)
        self._clearing: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._is_named:
            self._clearing = asyncio.create_task(self._clear(), name="abort what was left open")

    def close(self) -> None:
        if self._clearing is not None:
            self._clearing.cancel()
        for slot in self._slots:
            slot.discard()

    async def check_on(self) -> None:
        """Raises UnsupportedVersion where transactions are off."""
        await check_on(self._client)

    async def run(self, receipts: Sequence[Receipt], messages: Sequence[ToPublish]) -> list[Sent]:
        """Publish the messages and accept what the receipts hold, all or nothing; where each message is.

        Raises EntryRefused, OutcomeUnknown, or a PostroadError: then nothing of it has happened."""
        if self._clearing is not None:
            await asyncio.wait([self._clearing], timeout=CLEAR_S)
        async with self._slot() as slot:
            producer = await slot.producer()
            try:
                sent = await self._publish(producer, messages)
                await self._accept(producer, receipts)
            except BaseException as error:
                await self._abort(slot, producer, error)
                raise
            await self._commit(slot, producer)
            return sent

    @contextlib.asynccontextmanager
    async def _slot(self) -> AsyncIterator[_Slot]:
        try:
            async with asyncio.timeout(WAIT_S):
                await self._freed.acquire()
        except TimeoutError:
            raise Busy(BUSY) from None
        number = heapq.heappop(self._free)
        try:
            yield self._slots[number]
        finally:
            heapq.heappush(self._free, number)
            self._freed.release()

    # --- the end

    async def _commit(self, slot: _Slot, producer: TransactionalProducer) -> None:
        try:
            await producer.commit()
        except PostroadError as error:
            slot.discard()
            if isinstance(error, TryAgain) or producer.tries > 1:  # an earlier try may have gone through
                raise OutcomeUnknown(str(error)) from None
            if isinstance(error, GONE):
                raise TakenOver(TAKEN_OVER) from None
            raise
        except BaseException:
            slot.discard()
            raise

    async def _abort(self, slot: _Slot, producer: TransactionalProducer, error: BaseException) -> None:
        """The request can't be: what it has done so far is undone, now or by the next one with this id."""
        if isinstance(error, GONE):
            slot.discard()
            raise TakenOver(TAKEN_OVER) from None
        if not isinstance(error, (EntryRefused, PostroadError)):
            slot.discard()
            return
        try:
            async with asyncio.timeout(ABORT_S):
                await producer.abort()
        except (PostroadError, TimeoutError):
            slot.discard()
        except BaseException:
            slot.discard()
            raise

    async def _clear(self) -> None:
        """Abort what a gateway of this name has left open."""
        mine = {slot.transactional_id: slot for slot in self._slots}
        try:
            for found in await transaction_admin.list_all(self._client, [transaction_admin.ONGOING]):
                if found.transactional_id in mine:
                    await mine[found.transactional_id].producer()
        except PostroadError as error:
            log.info("what was left open ends when its time is over: %s", error)

    # --- what it does

    async def _publish(self, producer: TransactionalProducer, messages: Sequence[ToPublish]) -> list[Sent]:
        now_ms = self._client.runtime.clock.now_ms()
        by_partition: dict[TopicPartition, list[_Numbered]] = {}
        chosen: dict[str, int] = {}  # for those without a key: one partition for each topic
        for number, message in enumerate(messages):
            topic, value, key, headers, timestamp, partition = message
            record = Record(0, now_ms if timestamp is None else timestamp, key, value, headers)
            if partition is None and key is not None:
                partition = for_key(key, len(topic.partitions))
            elif partition is None:
                random = self._client.runtime.random
                partition = chosen.setdefault(topic.name, random.randrange(len(topic.partitions)))
            to = TopicPartition(topic.name, partition)
            by_partition.setdefault(to, []).append(_Numbered(number, record))
        offsets: dict[int, int] = {}
        sending = [self._send_all(producer, to, those, offsets) for to, those in by_partition.items()]
        for outcome in await asyncio.gather(*sending, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
        sent = {
            number: Sent(*to, offsets[number], record.timestamp, messages[number].topic.id)
            for to, those in by_partition.items()
            for number, record in those
        }
        return [sent[number] for number in range(len(messages))]

    async def _send_all(
        self,
        producer: TransactionalProducer,
        to: TopicPartition,
        those: list[_Numbered],
        offsets: dict[int, int],
    ) -> None:
        """What goes to one partition, in order, in batches of some size."""
        first = size = 0
        for index, (_, record) in enumerate(those):
            size += _size_of(record)
            if size > BATCH_BYTES and index > first:
                await self._send(producer, to, those[first:index], offsets)
                first, size = index, _size_of(record)
        await self._send(producer, to, those[first:], offsets)

    async def _send(
        self,
        producer: TransactionalProducer,
        to: TopicPartition,
        those: list[_Numbered],
        offsets: dict[int, int],
    ) -> None:
        """One batch, or halves of it for as long as the topic refuses them."""
        records = [each.record._replace(offset=index) for index, each in enumerate(those)]
        try:
            base = await producer.send_records(to, records)
        except REFUSALS as error:
            if len(those) == 1:
                raise EntryRefused("publish", [those[0].number], error) from None
            half = len(those) // 2
            await self._send(producer, to, those[:half], offsets)
            await self._send(producer, to, those[half:], offsets)
            return
        except (TryAgain, *GONE):
            raise
        except PostroadError as error:
            raise EntryRefused("publish", [each.number for each in those], error) from None
        for index, each in enumerate(those):
            offsets[each.number] = base if base < 0 else base + index

    async def _accept(self, producer: TransactionalProducer, receipts: Sequence[Receipt]) -> None:
        if not receipts:
            return
        outcomes = await self._settler.settle(receipts, AckType.PLEDGE, transaction=producer.take_part())
        refused = {index: error for index, error in enumerate(outcomes) if error is not None}
        for error in refused.values():
            if isinstance(error, (TryAgain, *GONE)):
                raise error
        for error in refused.values():
            same = [index for index, other in refused.items() if str(other) == str(error)]
            raise EntryRefused("acknowledge", same, error)


class Busy(TryAgain):
    """Try again: others are in the way."""


class TakenOver(TryAgain):
    """Try again: nothing has happened."""


def _size_of(record: Record) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.value or b"") + len(record.key or b"") + headers
