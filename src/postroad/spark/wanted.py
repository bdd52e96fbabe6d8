"""Which records a query can want, by the filters that Spark tells of: others need not be read.

Spark looks at every row that is read, whatever is said here. So a filter that isn't understood leaves rows
in, and no more; but none may be left out that a filter takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from postroad.spark.cluster import Cluster
from postroad.spark.columns import OFFSET, PARTITION, TIMESTAMP, TOPIC
from postroad.spark.ranges import OffsetRange

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST: Final = (1 << 63) - 1


@dataclass(frozen=True)
class Wanted:
    """Offsets and times (ms) from the first up to, and with, the last. None: all topics, or partitions."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offsets: tuple[int, int] = (0, _LAST - 1)
    times_ms: tuple[int, int] = (-_LAST, _LAST)

    @property
    def bounds_times(self) -> bool:
        return self.times_ms != EVERYTHING.times_ms

    def within(self, ranges: Iterable[OffsetRange], cluster: Cluster) -> list[OffsetRange]:
        """What is left of the ranges.

        All that stands before the first message that is late enough is too old. The last time ends no range:
        a message that is later may stand before others that are not.
        """
        first, last = self.offsets
        left = [
            each._replace(start=max(each.start, first), until=min(each.until, last + 1))
            for each in ranges
            if (self.topics is None or each.topic in self.topics)
            and (self.partitions is None or each.partition in self.partitions)
        ]
        left = [each for each in left if each.size]
        since, before = self.times_ms
        if since > before:
            return []
        if since > 0 and left:
            found = cluster.at_times({each.topic_partition: since for each in left})
            starts = [found[each.topic_partition] for each in left]
            left = [
                each._replace(start=max(each.start, start))
                for each, start in zip(left, starts, strict=True)
                if start is not None
            ]
        return [each for each in left if each.size]


EVERYTHING: Final = Wanted()


def of_filters(filters: Iterable[Any]) -> Wanted:
    """By Spark's filters, of which all have to be true."""
    wanted = EVERYTHING
    for each in filters:
        wanted = _narrowed(wanted, each)
    return wanted


def _narrowed(wanted: Wanted, filter_: Any) -> Wanted:
    """By one filter, if it is of a kind that is understood."""
    attribute: tuple[str, ...] = getattr(filter_, "attribute", ())
    if len(attribute) != 1:
        return wanted
    value: Any = getattr(filter_, "value", None)
    name, kind = attribute[0], type(filter_).__name__
    if name in (TOPIC, PARTITION) and kind in ("EqualTo", "EqualNullSafe", "In"):
        return _among(wanted, name, value if kind == "In" else (value,))
    if name == OFFSET and (bounds := _bounds(kind, value, _whole)):
        return replace(wanted, offsets=_both(wanted.offsets, bounds))
    if name == TIMESTAMP and (bounds := _bounds(kind, value, _milliseconds)):
        return replace(wanted, times_ms=_both(wanted.times_ms, bounds))
    return wanted


def _among(wanted: Wanted, name: str, values: Iterable[Any]) -> Wanted:
    given = [value for value in values if value is not None]  # no row has null there
    if name == TOPIC and all(isinstance(value, str) for value in given):
        topics = frozenset(given)
        return replace(wanted, topics=topics if wanted.topics is None else wanted.topics & topics)
    if name == PARTITION and all(isinstance(value, int) for value in given):
        numbers = frozenset(given)
        return replace(
            wanted, partitions=numbers if wanted.partitions is None else wanted.partitions & numbers
        )
    return wanted


def _bounds(kind: str, value: Any, as_number: Any) -> tuple[int, int] | None:
    """The first and the last whole number that the comparison takes; if there is none the first is larger."""
    if kind == "In":
        found = [as_number(each) for each in value if each is not None]
        if not found:
            return (1, 0)
        return None if None in found else (min(each[0] for each in found), max(each[1] for each in found))
    number = as_number(value)
    if number is None:
        return None
    below, above = number
    return {
        "EqualTo": (above, below),
        "EqualNullSafe": (above, below),
        "GreaterThan": (below + 1, _LAST),
        "GreaterThanOrEqual": (above, _LAST),
        "LessThan": (-_LAST, above - 1),
        "LessThanOrEqual": (-_LAST, below),
    }.get(kind)


def _both(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return max(one[0], other[0]), min(one[1], other[1])


def _whole(value: Any) -> tuple[int, int] | None:
    return (value, value) if type(value) is int else None


def _milliseconds(value: Any) -> tuple[int, int] | None:
    """The milliseconds before and after it, the same for a whole one; None if it says no time zone."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    micros = (value - _EPOCH) // timedelta(microseconds=1)
    return micros // 1000, -(-micros // 1000)
