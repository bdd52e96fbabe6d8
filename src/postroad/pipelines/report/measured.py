"""All tables of a report, and the sums over them that several parts of the page need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, NamedTuple

from postroad.pipelines.report.settings import ReportSettings

Row = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """Arrow tables; their columns stand where they are made. Each becomes a Parquet file of its name."""

    topics: Any
    minutes: Any
    sizes: Any
    partitions: Any
    keys: Any
    latency: Any
    latency_histogram: Any
    lag: Any
    reasons: Any
    deliveries: Any

    def tables(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def total(self) -> Row:
        """All topics together. Of no messages Spark makes no row, so then there are but zeros in it."""
        found = (row for row in self.topics.to_pylist() if row["topic"] is None)
        return next(found, {"messages": 0, "bytes": 0})

    def by_topic(self) -> list[Row]:
        return [row for row in self.topics.to_pylist() if row["topic"] is not None]

    def dead_letters(self) -> int:
        return total_of(self.reasons.to_pylist())

    def behind(self) -> list[Behind]:
        """Who reads what, the furthest behind first."""
        gathered: dict[tuple[str, str, str], list[Row]] = {}
        for row in self.lag.to_pylist():
            gathered.setdefault((row["kind"], row["name"], row["topic"]), []).append(row)
        found = [Behind(*who, total_of(rows), _longest(rows)) for who, rows in gathered.items()]
        return sorted(found, key=lambda each: (-(each.seconds or 0), -each.messages, each.name, each.topic))


class Behind(NamedTuple):
    """A group or a subscription and one topic of it; `seconds` is None if nothing waits."""

    kind: str
    name: str
    topic: str
    messages: int
    seconds: float | None


@dataclass(frozen=True)
class Story:
    """What the page tells. `unknown` is why the cluster was not asked, if it wasn't; `dead_letter_topics` are
    those that were looked through for letters."""

    settings: ReportSettings
    measured: Measured
    unknown: str
    made_at: datetime
    dead_letter_topics: tuple[str, ...] = ()


def total_of(rows: Iterable[Row], column: str = "messages") -> int:
    return sum(row[column] for row in rows)


def summed(rows: Iterable[Row], *by: str) -> dict[tuple[Any, ...], int]:
    """Messages for each value of these columns, in the order in which they first came."""
    sums: dict[tuple[Any, ...], int] = {}
    for row in rows:
        group = tuple(row[column] for column in by)
        sums[group] = sums.get(group, 0) + row["messages"]
    return sums


def _longest(rows: Sequence[Row]) -> float | None:
    return max((row["seconds"] for row in rows if row["seconds"] is not None), default=None)
