"""Where a read begins and ends: as options and checkpoints write it, and as offsets.

Offsets in JSON are `{"orders": {"0": 23, "1": -1}}`, byte for byte what Spark's Kafka connector means by it
(but for spaces): -2 stands for the earliest, -1 for the latest. So a checkpoint moves from one to the other.
Topics and partitions are written in order, since Spark compares offsets as texts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from postroad.errors import ConfigurationError
from postroad.spark.cluster import Cluster
from postroad.spark.option_values import LONG_MAX, Values, wrong
from postroad.spark.router import TopicPartition

EARLIEST: Final = -2
LATEST: Final = -1
WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}
STRATEGY: Final = "startingOffsetsByTimestampStrategy"

Offsets = dict[TopicPartition, int]


class Everywhere(NamedTuple):
    """EARLIEST or LATEST, for all partitions."""

    offset: int


class Each(NamedTuple):
    """An offset for each partition, EARLIEST or LATEST among them."""

    offsets: Mapping[TopicPartition, int]
    option: str


class Since(NamedTuple):
    """The first record at or after a time, in ms."""

    time_ms: int


class EachSince(NamedTuple):
    """A time for each partition."""

    times_ms: Mapping[TopicPartition, int]
    option: str


Point = Everywhere | Each | Since | EachSince


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """As Spark keeps it in a checkpoint."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def from_json(found: Any, what: str = "The checkpoint's offsets") -> Offsets:
    """The reverse. ConfigurationError if it is anything else, with `what` as its beginning."""
    try:
        offsets = {
            (topic, int(partition)): offset
            for topic, partitions in found.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, ValueError):
        offsets = {}
    if not all(type(offset) is int for offset in offsets.values()) or bool(offsets) != bool(found):
        raise ConfigurationError(f'{what} must be JSON like {{"orders": {{"0": 23, "1": 42}}}}.')
    return offsets


def parse(values: Values, side: str, default: int) -> Point:
    """From the options of one side, `starting` or `ending`; at most one of them may be given."""
    by_offset, by_time, time = f"{side}Offsets", f"{side}OffsetsByTimestamp", f"{side}Timestamp"
    given = values.given(by_offset, by_time, time)
    if len(given) > 1:
        raise ConfigurationError(f"Options {' and '.join(given)} contradict each other: give one of them.")
    if values.has(time):
        return Since(values.whole(time, least=0) or 0)
    if values.has(by_time):
        return EachSince(_times(by_time, values.text(by_time) or ""), by_time)
    text = values.text(by_offset)
    if text is None or text.lower() in WORDS:
        return Everywhere(default if text is None else WORDS[text.lower()])
    return Each(_offsets(by_offset, text), by_offset)


def resolve(
    point: Point,
    cluster: Cluster,
    topic_partitions: Collection[TopicPartition],
    *,
    missing: int | None = LATEST,
) -> Offsets:
    """The offset for each of the partitions.

    `missing` is what stands in for a time after the last record; None is an error then. A point for each
    partition has to name all of the partitions and no other.
    """
    if isinstance(point, Everywhere):
        return _absolute(cluster, dict.fromkeys(topic_partitions, point.offset))
    if isinstance(point, Each):
        _check_all_named(point.option, point.offsets, topic_partitions)
        return _absolute(cluster, point.offsets)
    if isinstance(point, Since):
        return _at_times(cluster, dict.fromkeys(topic_partitions, point.time_ms), missing)
    _check_all_named(point.option, point.times_ms, topic_partitions)
    return _at_times(cluster, point.times_ms, missing)


def _absolute(cluster: Cluster, offsets: Mapping[TopicPartition, int]) -> Offsets:
    found = dict(offsets)
    for word, look_up in ((EARLIEST, cluster.earliest), (LATEST, cluster.latest)):
        topic_partitions = [topic_partition for topic_partition, offset in offsets.items() if offset == word]
        if topic_partitions:
            found |= look_up(topic_partitions)
    return found


def _at_times(cluster: Cluster, times_ms: Mapping[TopicPartition, int], missing: int | None) -> Offsets:
    found = cluster.at_times(times_ms)
    late = [topic_partition for topic_partition, offset in found.items() if offset is None]
    if late and missing is None:
        (topic, partition), time_ms = late[0], times_ms[late[0]]
        raise ConfigurationError(
            f"{topic}/{partition} has no record at or after timestamp {time_ms} ms. "
            f"Start earlier, or set {STRATEGY}=latest to wait there for new records."
        )
    return _absolute(
        cluster,
        {topic_partition: LATEST if offset is None else offset for topic_partition, offset in found.items()},
    )


def _check_all_named(
    option: str, named: Collection[TopicPartition], topic_partitions: Collection[TopicPartition]
) -> None:
    missing, unknown = sorted(set(topic_partitions) - set(named)), sorted(set(named) - set(topic_partitions))
    if unknown:
        raise ConfigurationError(f"Option {option} names {_text(unknown)}, which the query doesn't read.")
    if missing:
        raise ConfigurationError(
            f"Option {option} lacks {_text(missing)}: name every partition (-2 is earliest, -1 is latest)."
        )


def _text(topic_partitions: list[TopicPartition]) -> str:
    shown = ", ".join(f"{topic}/{partition}" for topic, partition in topic_partitions[:5])
    return f"{shown} and {len(topic_partitions) - 5} more" if len(topic_partitions) > 5 else shown


def _offsets(option: str, text: str) -> Offsets:
    offsets = _numbers(option, text, "earliest, latest, or")
    for (topic, partition), offset in offsets.items():
        if not EARLIEST <= offset <= LONG_MAX:
            raise ConfigurationError(
                f"Option {option}: {offset} for {topic}/{partition} is no offset "
                "(-2 is earliest, -1 is latest)."
            )
    return offsets


def _times(option: str, text: str) -> Offsets:
    times = _numbers(option, text, "times in ms as")
    if min(times.values()) < 0 or max(times.values()) > LONG_MAX:
        raise wrong(option, text, f"times in ms from 0 to {LONG_MAX}")
    return times


def _numbers(option: str, text: str, right: str) -> Offsets:
    try:
        found = from_json(json.loads(text))
    except (ValueError, ConfigurationError):
        found = {}
    if not found:
        raise wrong(option, text, f'{right} JSON like {{"orders": {{"0": 23, "1": 42}}}}')
    return found
