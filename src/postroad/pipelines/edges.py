"""Where a range of messages begins and ends, as people say it and as offsets.

    beginning, end
    1200                         that offset, in each partition
    2026-03-01T08:00             in each partition from the first message on that is at least as late
    2h                           so long ago
    {"orders": {"0": 17}}        offsets of partitions; others are left out

A message whose time is before the edge may lie behind it, where producers' clocks differ: what counts is the
first one that is late enough, in topics as in archives.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from postroad.pipelines.errors import PipelineError
from postroad.spark.cluster import Cluster
from postroad.spark.offsets import Offsets
from postroad.spark.router import TopicPartition

_AGO: Final = re.compile(r"(\d+)(s|m|h|d)")
_UNITS_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

BEGINNING_WORDS: Final = ("beginning", "earliest")
END_WORDS: Final = ("end", "latest")


class Edge(NamedTuple):
    """One of them is given; none is the beginning for the start, and the end for the end."""

    offset: int | None = None
    time_ms: int | None = None
    each: Mapping[TopicPartition, int] | None = None
    is_relative: bool = False  # the same words mean another time when they are said again


NATURAL: Final = Edge()


class Bounds(NamedTuple):
    """What a partition has: from its first message up to, but without, the end; and the two times of a range
    as offsets, None if no message is that late."""

    first: int
    end: int
    since: int | None = None
    until: int | None = None


def parse(text: str, option: str, natural: tuple[str, ...]) -> Edge:
    """PipelineError says what would be right; `natural` are words for the edge that nobody needs to say."""
    if text in natural:
        return NATURAL
    if text.isdecimal():
        return Edge(offset=int(text))
    if ago := _AGO.fullmatch(text):
        return Edge(time_ms=time.time_ns() // 1_000_000 - int(ago[1]) * _UNITS_MS[ago[2]], is_relative=True)
    if text.startswith("{"):
        return Edge(each=_each(text, option))
    try:
        return Edge(time_ms=int(datetime.fromisoformat(text).timestamp() * 1000))
    except ValueError:
        raise PipelineError(
            f"{option} {text!r} is none of: {natural[0]}, an offset "
            '(1200), a time (2026-03-01T08:00), a time ago (15m, 2h, 7d), offsets ({"orders": {"0": 17}})'
        ) from None


def topic_bounds(
    cluster: Cluster, topic_partitions: Collection[TopicPartition], since: Edge, until: Edge
) -> dict[TopicPartition, Bounds]:
    """The bounds of partitions that the cluster has."""
    earliest, latest = cluster.earliest(topic_partitions), cluster.latest(topic_partitions)
    found = {}
    times = [_at_time(cluster, topic_partitions, edge) for edge in (since, until)]
    for topic_partition in topic_partitions:
        found[topic_partition] = Bounds(
            earliest[topic_partition],
            latest[topic_partition],
            times[0][topic_partition],
            times[1][topic_partition],
        )
    return found


def resolve(bounds: Mapping[TopicPartition, Bounds], since: Edge, until: Edge) -> tuple[Offsets, Offsets]:
    """Where to begin and where to end; the end is never before the beginning.

    PipelineError if messages are asked for that are no longer there, or partitions that never were.
    """
    for edge in (since, until):
        for topic_partition in edge.each or ():
            if topic_partition not in bounds:
                raise PipelineError(
                    f"{topic_partition[0]}/{topic_partition[1]} is not among what is to be replayed"
                )
    begin, end = {}, {}
    for topic_partition, found in sorted(bounds.items()):
        start = _start(topic_partition, found, since)
        is_left_out = any(
            edge.each is not None and topic_partition not in edge.each for edge in (since, until)
        )
        begin[topic_partition], end[topic_partition] = (
            start,
            start if is_left_out else max(start, _end(topic_partition, found, until)),
        )
    return begin, end


def _start(topic_partition: TopicPartition, found: Bounds, edge: Edge) -> int:
    if edge.time_ms is not None:
        return found.end if found.since is None else found.since
    wanted = edge.offset if edge.each is None else edge.each.get(topic_partition)
    if wanted is None:
        return found.first
    if wanted < found.first:
        raise PipelineError(
            f"{topic_partition[0]}/{topic_partition[1]} begins at offset {found.first:,}: what was before is "
            "deleted. Begin there, or replay it from an archive"
        )
    return min(wanted, found.end)


def _end(topic_partition: TopicPartition, found: Bounds, edge: Edge) -> int:
    if edge.time_ms is not None:
        return found.end if found.until is None else found.until
    wanted = edge.offset if edge.each is None else edge.each[topic_partition]
    return found.end if wanted is None else min(wanted, found.end)


def _at_time(
    cluster: Cluster, topic_partitions: Collection[TopicPartition], edge: Edge
) -> Mapping[TopicPartition, int | None]:
    return (
        dict.fromkeys(topic_partitions)
        if edge.time_ms is None
        else cluster.at_times(dict.fromkeys(topic_partitions, edge.time_ms))
    )


def _each(text: str, option: str) -> dict[TopicPartition, int]:
    try:
        found: Any = json.loads(text)
        each = {(topic, int(number)): at for topic, those in found.items() for number, at in those.items()}
    except (ValueError, AttributeError):
        each = {}
    if not each or not all(type(offset) is int and offset >= 0 for offset in each.values()):
        raise PipelineError(f'{option} {text!r} is not like {{"orders": {{"0": 17, "1": 42}}}}')
    return each
