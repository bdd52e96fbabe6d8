"""How much of the topics one micro-batch takes, and how its work is cut into tasks. Pure arithmetic.

Everything here depends on offsets alone, so a batch that is planned again after a crash gets the same tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from heapq import heapify, heapreplace
from itertools import pairwise
from typing import NamedTuple

from postroad.spark.router import TopicPartition


class OffsetRange(NamedTuple):
    """The records of a partition from `start` up to, but without, `until`."""

    topic: str
    partition: int
    start: int
    until: int

    @property
    def topic_partition(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def size(self) -> int:
        """Offsets, not records: compaction and transactions leave gaps."""
        return max(0, self.until - self.start)


def between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> list[OffsetRange]:
    """A range for each partition that has something, in order. Each partition of `end` has a start."""
    ranges = (
        OffsetRange(*topic_partition, start[topic_partition], until)
        for topic_partition, until in sorted(end.items())
    )
    return [each for each in ranges if each.size]


def backlog(
    start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """How many offsets there are to read in each partition of `latest`."""
    return {topic_partition: max(0, end - start[topic_partition]) for topic_partition, end in latest.items()}


def admit_offsets(
    start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], limit: int
) -> dict[TopicPartition, int]:
    """Where to end if about `limit` offsets may be read: each partition gets its backlog's share.

    As in the Kafka connector a share below one is one, so that small partitions are not starved by large
    ones; the sum may exceed the limit by less than the number of partitions.
    """
    sizes = backlog(start, latest)
    total = sum(sizes.values())
    if total <= limit:
        return _ends(start, sizes)
    return _ends(
        start, {topic_partition: _share(size, limit / total) for topic_partition, size in sizes.items()}
    )


def admit_bytes(
    start: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    bytes_each: Mapping[TopicPartition, float],
    limit: int,
) -> dict[TopicPartition, int]:
    """The same by bytes: `bytes_each` is about what an offset takes in that partition."""
    sizes = backlog(start, latest)
    total = sum(size * bytes_each.get(topic_partition, 0.0) for topic_partition, size in sizes.items())
    if total <= limit:
        return _ends(start, sizes)
    return _ends(
        start, {topic_partition: _share(size, limit / total) for topic_partition, size in sizes.items()}
    )


def is_worth_it(
    start: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
    at_least: int,
    waited_ms: float,
    delay_ms: int,
) -> bool:
    """Whether a batch should run: enough has come, or the last one was too long ago."""
    new = sum(backlog(start, latest).values())
    return new >= at_least or waited_ms >= delay_ms


def split(ranges: Iterable[OffsetRange], min_parts: int, records_max: int | None) -> list[OffsetRange]:
    """At least `min_parts` ranges, none longer than `records_max`, over the same offsets in the same order.

    Long ranges are cut first, into parts of equal length. There are fewer where there are fewer offsets.
    """
    whole = [each for each in ranges if each.size]
    parts = [max(1, math.ceil(each.size / records_max)) if records_max else 1 for each in whole]
    missing = min(min_parts, sum(each.size for each in whole)) - sum(parts)
    longest = [(-each.size / parts[number], number) for number, each in enumerate(whole)]
    heapify(longest)
    for _ in range(missing):
        number = longest[0][1]
        parts[number] += 1
        heapreplace(longest, (-whole[number].size / parts[number], number))
    return [part for each, count in zip(whole, parts, strict=True) for part in _cut(each, count)]


def pack(ranges: Iterable[OffsetRange], offsets_min: int) -> list[tuple[OffsetRange, ...]]:
    """Neighbouring ranges of one topic put together until a group has so many offsets, over the same in the
    same order."""
    groups: list[list[OffsetRange]] = []
    size = 0
    for each in ranges:
        if groups and groups[-1][0].topic == each.topic and size + each.size <= offsets_min:
            groups[-1].append(each)
            size += each.size
        else:
            groups.append([each])
            size = each.size
    return [tuple(group) for group in groups]


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    bounds = [whole.start + whole.size * number // parts for number in range(parts + 1)]
    return [whole._replace(start=low, until=high) for low, high in pairwise(bounds)]


def _share(size: int, fraction: float) -> int:
    share = size * fraction
    return min(size, math.ceil(share) if share < 1 else math.floor(share))


def _ends(
    start: Mapping[TopicPartition, int], sizes: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    return {topic_partition: start[topic_partition] + size for topic_partition, size in sizes.items()}
