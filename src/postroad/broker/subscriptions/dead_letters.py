"""Dead letters: a message that is given up is copied, whole, to the subscription's dead-letter topic.

The order makes it safe. That a message dies is hard state before anybody is told (`Dying`, in the ledger);
it is copied; when the copy is committed the message is done. After a crash in between it is still dying, and
is copied again: there may be two copies, there is never none. A stop waits for those that are being copied
(`finish`), so that it leaves no second copy. What can't be copied (the disk is full, say) is tried again for
as long as it takes.

The leader of the dead-letter topic's partition may be another node: the copies are sent there. A batch that
is sent again because its answer was lost is recognised by its producer id, which is the batch's own, so it is
stored once. Where no answer comes for long (`SEND_S`), or this node dies meanwhile, there may be two copies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final
from zlib import crc32

from postroad.broker.own_batch import append_own
from postroad.broker.partition import Partition
from postroad.broker.replies import replied
from postroad.broker.subscriptions.letter import Origin, letter_of
from postroad.broker.subscriptions.queue import Queue
from postroad.cluster.image import Topic
from postroad.errors import (
    ApiError,
    CoordinationError,
    OffsetOutOfRange,
    TopicAlreadyExists,
    TryAgain,
    UnknownTopicOrPartition,
    by_code,
)
from postroad.queues.update import Dying
from postroad.wire import batch as batches
from postroad.wire import copy_letters
from postroad.wire import header_names as names
from postroad.wire.records import Record, decode_records, encode_batch

if TYPE_CHECKING:
    from postroad.broker.node import Node

COPIES_MAX: Final = 200  # messages in one batch of copies …
COPY_BYTES_MAX: Final = 512 * 1024  # … and bytes, unless one alone has more
RETRY_S: Final = (0.1, 0.5, 2.0, 10.0, 30.0)
SEND_S: Final = 30.0  # the same batch is sent again for so long: elections take less

log = logging.getLogger(__name__)


class DeadLetters:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._at_work: dict[Queue, None] = {}
        self._burying: dict[Queue, asyncio.Event] = {}  # batches on their way; set when one has ended
        self.is_stopping = False

    def take(self, queue: Queue) -> None:
        """The queue has dying messages: they are buried by and by."""
        if queue not in self._at_work and not queue.closed and not self.is_stopping:
            self._at_work[queue] = None
            self._node.tasks.start(self._work(queue), "dead-letters")

    async def finish(self, timeout_s: float) -> None:
        """The node stops: begin no further batch, and see those through that are on their way."""
        self.is_stopping = True
        ends = [asyncio.create_task(ended.wait()) for ended in self._burying.values()]
        if ends:
            _, unfinished = await asyncio.wait(ends, timeout=timeout_s)
            for each in unfinished:
                each.cancel()

    async def _work(self, queue: Queue) -> None:
        failures = 0
        try:
            while queue.core.ledger.dying and not queue.closed and not self.is_stopping:
                if not _committed(queue):
                    await asyncio.sleep(RETRY_S[0])
                    continue
                ended = self._burying[queue] = asyncio.Event()
                try:
                    await self._bury_some(queue)
                    failures = 0
                except (ApiError, CoordinationError, OSError) as error:
                    wait_s = RETRY_S[min(failures, len(RETRY_S) - 1)]
                    failures += 1
                    level = logging.ERROR if failures > 1 else logging.INFO  # their topic may just be opening
                    name = queue.subscription.group_id
                    log.log(
                        level,
                        "dead letters of %s can't be copied; trying again in %.1f s: %s",
                        name,
                        wait_s,
                        error,
                    )
                finally:
                    del self._burying[queue]
                    ended.set()
                if failures:
                    await asyncio.sleep(wait_s)
        finally:
            del self._at_work[queue]

    async def _bury_some(self, queue: Queue) -> None:
        routes = self._node.subscriptions.letter_routes
        routes.check_burial(queue.subscription.group_id, queue.partition.topic)
        copies, ranges = self._copies(queue, _committed(queue))
        # Made now: a seek that comes while they are copied brings them back, and they stay so.
        buried = queue.core.bury(ranges)
        if gone := len(ranges) - len(copies):
            told = "%d messages of %s-%d were deleted before they could become dead letters"
            log.warning(told, gone, queue.partition.topic, queue.partition.index)
        if copies:
            await self._append(queue, copies)
        if queue.closed:
            return
        await replied(partial(queue.write, buried))
        queue.pass_gaps(queue.now())
        queue.subscription.something_settled(queue)

    def _copies(self, queue: Queue, dying: Sequence[Dying]) -> tuple[list[Record], list[tuple[int, int]]]:
        """Copies of the first of these, and their offsets. What retention took is only buried."""
        copies: list[Record] = []
        ranges: list[tuple[int, int]] = []
        size = 0
        nearby: dict[int, Record] = {}  # of the batch that was read last: neighbours die together
        for dead in dying:
            for offset in range(dead.first, dead.last + 1):
                if offset not in nearby:
                    nearby = self._read(queue.partition, offset)
                found = nearby.get(offset)
                ranges.append((offset, offset))
                if found is not None:
                    copies.append(self._copy(queue, found, dead, len(copies)))
                    size += _size(copies[-1])
                if len(ranges) >= COPIES_MAX or size >= COPY_BYTES_MAX:
                    return copies, ranges
        return copies, ranges

    @staticmethod
    def _read(partition: Partition, offset: int) -> dict[int, Record]:
        """The records of the batch that holds the offset, or held it: compaction may have taken it."""
        try:
            found = partition.read(offset, 1)
        except OffsetOutOfRange:
            return {}
        if found is None:
            return {}
        data = memoryview(found.file.read(found.position, found.length))
        for position, header in batches.walk(data):
            try:
                records = decode_records(data[position : position + header.size])
            except ApiError as error:  # it can't be read by anybody: the letter says so, and has no body
                log.error("offset %d of %s-%d: %s", offset, partition.topic, partition.index, error)
                why = (names.DEAD_UNREADABLE, str(error).encode())
                return {offset: Record(offset, header.max_timestamp, None, None, [why])}
            return {record.offset: record for record in records}
        return {}

    def _copy(self, queue: Queue, record: Record, dead: Dying, number: int) -> Record:
        origin = Origin(queue.partition.topic, queue.partition.index, queue.subscription.group_id)
        return letter_of(record, dead, origin, self._node.clock.now_ms(), number)

    async def _append(self, queue: Queue, copies: list[Record]) -> None:
        """The copies are committed: in one partition for one origin, so that they keep their order."""
        node, topic = self._node, await self._topic(queue.subscription.dead_letter_topic)
        origin = f"{queue.partition.topic}-{queue.partition.index}".encode()
        index = crc32(origin) % len(topic.partitions)
        if topic.partitions[index].leader == node.settings.node.id:
            partition = node.partitions.lead(topic.id, index)
            await replied(partial(append_own, partition, node.turn, copies, node.clock.now_ms()))
        else:
            await self._send(topic.id, index, copies)

    async def _send(self, topic_id: bytes, index: int, copies: list[Record]) -> None:
        """The copies are committed by another leader. Raises the last error if that takes too long."""
        node, producer = self._node, batches.NAMED_PRODUCERS | self._node.runtime.random.getrandbits(62)
        batch = bytes(encode_batch(copies, producer_id=producer, producer_epoch=0, base_sequence=0))
        deadline = node.loop.time() + SEND_S
        while True:
            topic = node.image.topics_by_id.get(topic_id)
            if topic is None:
                raise UnknownTopicOrPartition()
            try:
                await self._send_once(topic.partitions[index].leader, topic_id, index, batch)
                return
            except TryAgain:
                if node.loop.time() > deadline:
                    raise
            await asyncio.sleep(RETRY_S[0])

    async def _send_once(self, leader: int, topic_id: bytes, index: int, batch: bytes) -> None:
        request = copy_letters.CopyLettersRequest(topic_id, index, batch)
        answer = await self._node.peers.call(leader, copy_letters, request)
        if answer.error_code:
            raise by_code(answer.error_code, answer.error_message)

    async def _topic(self, name: str) -> Topic:
        topic = self._node.image.topics.get(name)
        if topic is not None:
            return topic
        try:
            return await self._node.topic_changes.create(name, partitions=1)
        except TopicAlreadyExists:  # another queue of the subscription was faster
            return self._node.image.topic(name)


def _committed(queue: Queue) -> list[Dying]:
    """Dying messages that are known to be committed, which can be read.

    A ledger may be ahead of its messages: a new leader may not know yet how far these are committed.
    """
    end = queue.partition.high_watermark
    return list(islice((dead for dead in queue.core.ledger.dying if dead.last < end), COPIES_MAX))


def _size(record: Record) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
