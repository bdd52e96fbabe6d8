"""Topics looked through for some messages among many, a stretch at a time: stopped, and continued elsewhere.

A scan gives way to whatever else runs in its loop after each stretch of records, and between two fetches.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from postroad.client.browse import size_of
from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.fetcher import Fetched
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST, READ_UNCOMMITTED
from postroad.wire.records import Record

FETCH_BYTES: Final = 256 * 1024  # decoding it holds the loop for some milliseconds at most
PARTITION_BYTES_MIN: Final = 8 * 1024
POLL_S: Final = 0.5  # how long it may take until a scan notices that nobody wants it any more
STRETCH: Final = 256  # records between two looks at the clock
STRETCH_S: Final = 0.004

Wanted = Callable[[int, Record], bool]
"""Whether a message of that partition is wanted."""


class Limits(NamedTuple):
    """Where a scan stops: `found` messages, or about `size_bytes` of content, or `seconds`; or when
    `is_unwanted` says so."""

    found: float
    size_bytes: float
    seconds: float
    is_unwanted: Callable[[], bool] = lambda: False


class Found(NamedTuple):
    topic_partition: TopicPartition
    record: Record


class Scanned(NamedTuple):
    """`scanned` messages were looked at. `positions`: of each partition the next offset, to go on from;
    `is_over`: all have come to their ends."""

    found: list[Found]
    scanned: int
    positions: dict[TopicPartition, int]
    is_over: bool


Tell = Callable[[Scanned], None]


async def scan(
    client: Client,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    wanted: Wanted | None,
    limits: Limits,
    isolation: int = READ_UNCOMMITTED,
    tell: Tell | None = None,
) -> Scanned:
    """Messages from `starts` up to `ends` that are wanted; without `wanted` all are.

    `tell` is told after each fetch how far it is, with what was found since the last time; nothing is left
    for the end then. Each partition's are in order. Without `wanted` those of several partitions that came
    together are in the order of their times.
    """
    return await _Scan(client, starts, ends, wanted, limits, isolation, tell).run()


class _Scan:
    def __init__(
        self,
        client: Client,
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        wanted: Wanted | None,
        limits: Limits,
        isolation: int,
        tell: Tell | None,
    ) -> None:
        self._client = client
        self._positions = dict(starts)
        self._ends = ends
        self._wanted = wanted
        self._limits = limits
        self._isolation = isolation
        self._found: list[Found] = []
        self._tell = tell
        self._count = self._found_count = self._size = 0
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + limits.seconds

    async def run(self) -> Scanned:
        share = max(PARTITION_BYTES_MIN, FETCH_BYTES // max(1, len(self._open)))
        consumer = Consumer(
            self._client,
            reset=EARLIEST,
            isolation=self._isolation,
            max_bytes=FETCH_BYTES,
            partition_bytes=share,
        )
        async with consumer:
            while (left := self._open) and not self._is_full and (left_s := self._left_s) > 0:
                if consumer.positions.keys() != left.keys():
                    await consumer.assign(left)
                fetched = await consumer.poll(min(left_s, POLL_S))
                await self._look(fetched, {each: consumer.positions[each] for each in left})
                if self._tell is not None:
                    self._tell(self._scanned)
                    self._found = []
        return self._scanned

    @property
    def _scanned(self) -> Scanned:
        return Scanned(self._found, self._count, self._positions, not self._open)

    @property
    def _open(self) -> dict[TopicPartition, int]:
        """The partitions that have more, with where it begins."""
        return {each: at for each, at in self._positions.items() if at < self._ends[each]}

    @property
    def _is_full(self) -> bool:
        return self._found_count >= self._limits.found or self._size >= self._limits.size_bytes

    @property
    def _left_s(self) -> float:
        return 0.0 if self._limits.is_unwanted() else self._deadline - self._loop.time()

    async def _look(self, fetched: Sequence[Fetched], behind: Mapping[TopicPartition, int]) -> None:
        """Positions move on record by record, and behind what was fetched when all of it was looked at."""
        began = self._loop.time()
        for number, (topic_partition, record) in enumerate(self._in_order(fetched), 1):
            if record.offset >= self._ends[topic_partition]:
                continue
            if self._is_full:
                return
            self._take(topic_partition, record)
            if number % STRETCH == 0 and self._loop.time() - began > STRETCH_S:
                await asyncio.sleep(0)
                began = self._loop.time()
                if self._left_s <= 0:
                    return
        for topic_partition, at in behind.items():
            self._positions[topic_partition] = min(at, self._ends[topic_partition])
        await asyncio.sleep(0)

    def _take(self, topic_partition: TopicPartition, record: Record) -> None:
        self._count += 1
        self._positions[topic_partition] = record.offset + 1
        if self._wanted is None or self._wanted(topic_partition.partition, record):
            self._found.append(Found(topic_partition, record))
            self._found_count += 1
            self._size += size_of(record)

    def _in_order(self, fetched: Sequence[Fetched]) -> Iterator[tuple[TopicPartition, Record]]:
        rows = [[(topic_partition, record) for record in records] for topic_partition, records, _ in fetched]
        if self._wanted is None and len(rows) > 1:
            yield from heapq.merge(*rows, key=lambda each: each[1].timestamp)
        for row in rows if self._wanted is not None or len(rows) == 1 else ():
            yield from row
