"""Minutes → what a chart can show: some dozens of bins, a few topics, and no endless empty stretch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from postroad.pipelines.report.charts import MINUTES_A_YEAR, Labels

TOPICS_MAX: Final = 4  # with a colour of their own; the rest are drawn together
BINS_MAX: Final = 120
STEPS_MIN: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080, 43200),
    *(MINUTES_A_YEAR * years for years in (1, 10, 100)),
)
OUTLIERS: Final = 0.001  # this share of the messages may be left out …
WORTH: Final = 0.5  # … if the rest then fits in this part of the time

Row = Mapping[str, Any]


class Series(NamedTuple):
    """For each bin the mean of a minute."""

    name: str
    messages: tuple[float, ...]
    bytes: tuple[float, ...]


class Timeline(NamedTuple):
    start_min: int  # since 1970
    step_min: int
    bins: int
    series: tuple[Series, ...]
    undrawn: int  # messages whose times lie far from all others

    def labels(self) -> Labels:
        """Round times: every five minutes, every hour, …"""
        nths = [minutes // self.step_min for minutes in STEPS_MIN if minutes % self.step_min == 0]
        return Labels(self.start_min // self.step_min, nths)

    def starts(self) -> list[datetime]:
        return [
            datetime.fromtimestamp((self.start_min + topic_partition * self.step_min) * 60, UTC)
            for topic_partition in range(self.bins)
        ]


def timeline(minutes: Sequence[Row]) -> Timeline | None:
    """A timeline of the table `minutes`; None if it has no rows."""
    if not minutes:
        return None
    rows = sorted(((_minute(row), row) for row in minutes), key=lambda each: each[0])
    drawn = _without_outliers(rows)
    first, last = drawn[0][0], drawn[-1][0]
    step = next((step for step in STEPS_MIN if (last - first) // step < BINS_MAX), STEPS_MIN[-1])
    start = first - first % step
    bins = (last - start) // step + 1
    undrawn = _messages(rows) - _messages(drawn)
    return Timeline(start, step, bins, _series([row for _, row in drawn], start, step, bins), undrawn)


def _series(rows: Sequence[Row], start: int, step: int, bins: int) -> tuple[Series, ...]:
    totals: dict[str, int] = {}
    for row in rows:
        totals[row["topic"]] = totals.get(row["topic"], 0) + row["messages"]
    largest = sorted(totals, key=lambda topic: (-totals[topic], topic))
    own = largest if len(largest) <= TOPICS_MAX else largest[: TOPICS_MAX - 1]
    rest = f"{len(largest) - len(own)} other topics"
    names = [*own, *([rest] if len(own) < len(largest) else [])]
    sums = {name: ([0] * bins, [0] * bins) for name in names}
    for row in rows:
        messages, volume = sums[row["topic"] if row["topic"] in own else rest]
        topic_partition = (_minute(row) - start) // step
        messages[topic_partition] += row["messages"]
        volume[topic_partition] += row["bytes"]
    return tuple(Series(name, _mean(sums[name][0], step), _mean(sums[name][1], step)) for name in names)


def _mean(sums: Sequence[int], step: int) -> tuple[float, ...]:
    return tuple(total / step for total in sums)


def _without_outliers(rows: Sequence[tuple[int, Row]]) -> Sequence[tuple[int, Row]]:
    """A producer with a broken clock would make a week a hairline in half a century."""
    spare = _messages(rows) * OUTLIERS / 2
    low, high = _skip(rows, spare), len(rows) - _skip(rows[::-1], spare)
    inner = rows[low:high]
    is_worth_it = inner and inner[-1][0] - inner[0][0] < WORTH * (rows[-1][0] - rows[0][0])
    return inner if is_worth_it else rows


def _skip(rows: Sequence[tuple[int, Row]], spare: float) -> int:
    for topic_partition, (_, row) in enumerate(rows):
        spare -= row["messages"]
        if spare < 0:
            return topic_partition
    return len(rows)


def _messages(rows: Sequence[tuple[int, Row]]) -> int:
    return sum(row["messages"] for _, row in rows)


def _minute(row: Row) -> int:
    return int(row["minute"].timestamp()) // 60
