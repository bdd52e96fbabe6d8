"""Reads on from a position in each partition, one long poll to each leader at a time.

While the caller works on what came, the next fetch is under way: at most one answer for each leader
waits here. An answer for a position that has changed meanwhile (a seek, a new assignment) is dropped.

With a rack a leader may name a replica nearby (KIP-392): that one is asked for a while, until something goes
wrong there; then the leader is asked again, whose word alone counts for an offset that is out of range.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from postroad.client import offsets
from postroad.client.backoff import Backoff
from postroad.client.client import Client, pause_after
from postroad.client.metadata import TopicPartition
from postroad.errors import (
    CorruptMessage,
    LeaderNotAvailable,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    PostroadError,
    TopicAuthorizationFailed,
    TryAgain,
    UnknownTopicId,
    UnknownTopicOrPartition,
    by_code,
)
from postroad.wire import batch as batches
from postroad.wire.messages import fetch
from postroad.wire.primitives import ZERO_UUID
from postroad.wire.records import Record, decode_records

MAX_WAIT_MS: Final = 500  # how long a leader holds an empty answer back
MAX_BYTES: Final = 50 * 1024 * 1024
PARTITION_BYTES: Final = 1024 * 1024
ANSWER_MARGIN_S: Final = 10.0  # beyond MAX_WAIT_MS, before a leader is given up
NEAR_S: Final = 60.0  # a replica nearby is asked for so long, then the leader: another may be nearer by now


class Fetched(NamedTuple):
    """Records of one partition in order. `high_watermark` is where its end is now."""

    topic_partition: TopicPartition
    records: list[Record]
    high_watermark: int


class Near(NamedTuple):
    """A replica in the rack, and until when to ask it."""

    node: int
    until_s: float


class MayNotRead(TopicAuthorizationFailed):
    """The node refuses to let this client read the topic."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"Not authorized for this topic: {topic} may not be read.")
        self.topic = topic


class Damaged(CorruptMessage):
    """What comes next in the partition can't be read."""

    def __init__(self, topic_partition: TopicPartition, offset: int) -> None:
        super().__init__(f"{topic_partition} is damaged at offset {offset} or soon after.")
        self.topic_partition = topic_partition


class Fetcher:
    """`reset` is offsets.EARLIEST or LATEST: where to go on when a position no longer exists; None
    raises OffsetOutOfRange instead. `committed_only`: what open or aborted transactions wrote is left out."""

    def __init__(
        self,
        client: Client,
        *,
        reset: int | None,
        min_bytes: int = 1,
        max_bytes: int = MAX_BYTES,
        partition_bytes: int = PARTITION_BYTES,
        committed_only: bool = False,
        rack: str = "",
    ) -> None:
        self.positions: dict[TopicPartition, int] = {}
        self._client = client
        self._reset = reset
        self._min_bytes = min_bytes
        self._max_bytes = max_bytes
        self._partition_bytes = partition_bytes
        self._committed_only = committed_only
        self._rack = rack
        self._ids: Mapping[str, bytes] = {}
        self.near: dict[TopicPartition, Near] = {}
        self._lane = client.new_lane("fetches")
        self._under_way: dict[int, asyncio.Task[list[Any]]] = {}
        self._late: PostroadError | None = None  # what waiting won't mend, and came together with messages

    def seek(self, positions: Mapping[TopicPartition, int], ids: Mapping[str, bytes] | None = None) -> None:
        """Read these partitions, from there, and no others.

        `ids` of all topics: they are asked for by id then, where nodes can be asked so. Instead of messages
        of another topic that has the name by now, UnknownTopicId comes.
        """
        if positions != self.positions:
            self._late = None
        self.positions = dict(positions)
        self._ids = ids or {}

    async def next(self, timeout_s: float) -> list[Fetched]:
        """What came, in whole answers; empty if nothing did in time. Positions move on by it.

        A leader that is away is waited for. Damaged comes at once, or with the next call if messages do:
        waiting mends nothing; and UnknownTopicOrPartition or UnknownTopicId if the topic is still gone at
        the end. If it is cancelled, what came is fetched again by the next call.
        """
        if self._late is not None:
            late, self._late = self._late, None
            raise late
        fetched: list[Fetched] = []
        try:
            await self._next(timeout_s, fetched)
            if fetched:
                with contextlib.suppress(PostroadError):  # the next call meets it again, and has nothing else
                    await self._ask()
        except BaseException:
            self._give_back(fetched)
            raise
        return fetched

    async def _next(self, timeout_s: float, fetched: list[Fetched]) -> None:
        backoff = Backoff(timeout_s, self._client.runtime)
        while True:
            try:
                await self._ask()
                await self._collect(await self._wait(backoff.left_s), fetched)
            except CorruptMessage:
                raise
            except TryAgain as error:
                self._client.forget()
                if await backoff.wait(pause_after(error)):
                    continue
                if isinstance(error, (UnknownTopicOrPartition, UnknownTopicId)):
                    raise
                return
            if fetched or not backoff.left_s:
                return

    def _give_back(self, fetched: list[Fetched]) -> None:
        """Nobody saw these records: read them again, unless the position has moved elsewhere since."""
        for topic_partition, records, _ in fetched:
            if self.positions.get(topic_partition, -1) > records[-1].offset:
                self.positions[topic_partition] = records[0].offset

    async def close(self) -> None:
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        self._under_way.clear()
        self._client.close_lane(self._lane)

    async def _ask(self) -> None:
        """A fetch is under way at each leader of a partition. Raises if no partition has one."""
        for node, topic_partitions in (await self._by_leader()).items():
            if node not in self._under_way:
                # Positions are taken now: they may have moved elsewhere before the task begins.
                asked = {
                    topic_partition: self.positions[topic_partition] for topic_partition in topic_partitions
                }
                self._under_way[node] = asyncio.create_task(self._fetch(node, asked), name=f"fetch {node}")

    async def _by_leader(self) -> dict[int, list[TopicPartition]]:
        """What to read, by the node that leads it. A partition without a leader must not hold up the others:
        it is left out, and looked for again with the next fetch."""
        gathered: dict[int, list[TopicPartition]] = {}
        lacks: LeaderNotAvailable | None = None
        for topic_partition in self.positions:
            try:
                leader = self._nearby(topic_partition) or await self._client.leader(*topic_partition)
            except LeaderNotAvailable as error:
                self._client.forget(topic_partition.topic)
                lacks = error
            else:
                gathered.setdefault(leader, []).append(topic_partition)
        if lacks is not None and not gathered:
            raise lacks
        return gathered

    def _nearby(self, topic_partition: TopicPartition) -> int | None:
        near = self.near.get(topic_partition)
        if near is None:
            return None
        if asyncio.get_running_loop().time() < near.until_s:
            return near.node
        del self.near[topic_partition]
        return None

    async def _wait(self, timeout_s: float) -> list[asyncio.Task[list[Any]]]:
        if not self._under_way:
            await asyncio.sleep(timeout_s)
            return []
        done, _ = await asyncio.wait(
            self._under_way.values(), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
        finished = [node for node, task in self._under_way.items() if task in done]
        return [self._under_way.pop(node) for node in finished]

    async def _fetch(self, node: int, asked: Mapping[TopicPartition, int]) -> list[Any]:
        """[(the partition, the offset that was asked for, the answer)]"""
        ids = self._ids
        topics = [
            fetch.FetchTopic(
                topic=topic,
                topic_id=ids.get(topic, ZERO_UUID),
                partitions=[self._partition(n, asked[TopicPartition(topic, n)]) for n in numbers],
            )
            for topic, numbers in offsets.by_topic(asked).items()
        ]
        request = fetch.FetchRequest(
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
            isolation_level=int(self._committed_only),
            topics=topics,
            rack_id=self._rack,
        )
        timeout_s = MAX_WAIT_MS / 1000 + ANSWER_MARGIN_S
        connection = await self._client.connection(node, self._lane)
        version = connection.version_by_id(fetch) if ids else None
        answer = await connection.call(fetch, request, timeout_s, version)
        if answer.error_code:
            raise by_code(answer.error_code)
        found = []
        names = {id_: name for name, id_ in ids.items()}
        for topic in answer.responses:
            for partition in topic.partitions:
                name = topic.topic or names[topic.topic_id]
                topic_partition = TopicPartition(name, partition.partition_index)
                found.append((topic_partition, asked[topic_partition], partition))
        return found

    def _partition(self, number: int, offset: int) -> fetch.FetchPartition:
        return fetch.FetchPartition(
            partition=number, fetch_offset=offset, partition_max_bytes=self._partition_bytes
        )

    async def _collect(self, tasks: list[asyncio.Task[list[Any]]], fetched: list[Fetched]) -> None:
        """Add all that came. An error counts only if nothing did: else it comes again with another call."""
        failure: PostroadError | None = None
        for task in tasks:
            try:
                await self._take(task, fetched)
            except PostroadError as error:
                if failure is None or not _is_lasting(failure):
                    failure = error
                self.near.clear()
        if failure is not None and not fetched:
            raise failure
        if failure is not None and _is_lasting(failure):
            self._late = failure

    async def _take(self, task: asyncio.Task[list[Any]], fetched: list[Fetched]) -> None:
        """All partitions of an answer. What is wrong with one of them is raised when the others are taken;
        before all else what waiting won't mend."""
        failure: PostroadError | None = None
        for topic_partition, offset, answer in task.result():
            if self.positions.get(topic_partition) != offset:
                continue
            try:
                records = await self._records(topic_partition, offset, answer)
            except PostroadError as error:
                if failure is None or _is_lasting(error) > _is_lasting(failure):
                    failure = error
                continue
            if records:
                fetched.append(Fetched(topic_partition, records, answer.high_watermark))
        if failure is not None:
            raise failure

    async def _records(self, topic_partition: TopicPartition, offset: int, answer: Any) -> list[Record]:
        """What came of one partition. Its position moves on."""
        if answer.error_code and self.near.pop(topic_partition, None) is not None:
            raise NotLeaderOrFollower  # its leader knows better
        if answer.preferred_read_replica >= 0:
            self._go_near(topic_partition, answer.preferred_read_replica)
        elif answer.error_code == OffsetOutOfRange.code:
            await self._go_back(topic_partition, offset)
        elif answer.error_code == CorruptMessage.code:
            raise Damaged(topic_partition, offset)
        elif answer.error_code == TopicAuthorizationFailed.code:
            raise MayNotRead(topic_partition.topic)
        elif answer.error_code:
            raise by_code(answer.error_code)
        elif answer.records:
            aborted = _Aborted(answer.aborted_transactions or ())
            return self._decode(topic_partition, offset, memoryview(answer.records), aborted)
        return []

    def _decode(
        self, topic_partition: TopicPartition, offset: int, data: memoryview, aborted: _Aborted
    ) -> list[Record]:
        """A batch holds the asked offset somewhere: records before it were read already.

        What lies before a damaged batch is returned; Damaged if that is nothing.
        """
        records: list[Record] = []
        for at, header in batches.walk(data):
            try:
                batches.check(data, header, at)
            except CorruptMessage:
                if records:
                    break  # the next fetch begins with it
                raise Damaged(topic_partition, header.base_offset) from None
            if not aborted.covers(header) and not header.attributes & batches.CONTROL:
                records += decode_records(data[at : at + header.size])
            self.positions[topic_partition] = header.next_offset
        if records and records[0].offset < offset:
            records = [record for record in records if record.offset >= offset]
        return records

    def _go_near(self, topic_partition: TopicPartition, node: int) -> None:
        self.near[topic_partition] = Near(node, asyncio.get_running_loop().time() + NEAR_S)

    async def _go_back(self, topic_partition: TopicPartition, offset: int) -> None:
        if self._reset is None:
            raise OffsetOutOfRange(f"{topic_partition} has no offset {offset}.")
        found = await offsets.find(self._client, {topic_partition: self._reset})
        self.positions[topic_partition] = found[topic_partition].offset


def _is_lasting(error: PostroadError) -> bool:
    return isinstance(error, CorruptMessage) or not isinstance(error, TryAgain)


class _Aborted:
    """The aborted transactions of one answer: each begins with a batch of its producer, and ends with the
    next marker of this producer."""

    def __init__(self, transactions: Iterable[Any]) -> None:
        self._coming = sorted(transactions, key=lambda each: each.first_offset, reverse=True)
        self._open: set[int] = set()

    def covers(self, header: batches.BatchHeader) -> bool:
        """Whether the batch is part of one. Batches are asked about in order."""
        while self._coming and self._coming[-1].first_offset <= header.base_offset:
            self._open.add(self._coming.pop().producer_id)
        if not self._open or not header.attributes & batches.TRANSACTIONAL:
            return False
        if header.attributes & batches.CONTROL:
            self._open.discard(header.producer_id)
        return header.producer_id in self._open
