"""`Ring`: series of samples in arrays of fixed size: an hour in steps of 5 s, a day in steps of a minute.

G1 A slot is the time divided by the step; where nothing was sampled there is NaN, never an older value.
G2 There are at most `SERIES_MAX` series, 8.6 kB each. When it is full, one that was not sampled for an hour
   makes room; else what is new is left out.
G3 A slot of a day is the mean of those of its minute.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from math import isnan, nan
from typing import Final, NamedTuple

FINE_STEP_S: Final = 5
FINE_SLOTS: Final = 720
COARSE_STEP_S: Final = 60
COARSE_SLOTS: Final = 1440
PER_COARSE: Final = COARSE_STEP_S // FINE_STEP_S
SERIES_MAX: Final = 2000


class SeriesKey(NamedTuple):
    """What a series is of: `topic`, `orders`, `in`."""

    kind: str
    name: str
    measure: str


class _Series:
    __slots__ = ("coarse", "fine", "sampled_at")

    def __init__(self) -> None:
        self.fine = array("f", [nan]) * FINE_SLOTS
        self.coarse = array("f", [nan]) * COARSE_SLOTS
        self.sampled_at = 0  # the fine slot of its newest sample


class Ring:
    """Times are seconds since 1970, and never fall; a clock that was set back only overwrites a slot."""

    def __init__(self, series_max: int = SERIES_MAX) -> None:
        self._series_max = series_max
        self._series: dict[SeriesKey, _Series] = {}
        self._slot = 0

    def __len__(self) -> int:
        return len(self._series)

    @property
    def end_s(self) -> int:
        """When the newest slot began."""
        return self._slot * FINE_STEP_S

    def add(self, now_s: float, values: Mapping[SeriesKey, float]) -> None:
        """The first ones are let in first where there is not room for all."""
        slot = max(int(now_s // FINE_STEP_S), self._slot)
        if self._slot:
            self._advance(slot)
        self._slot = slot
        for key, value in values.items():
            series = self._series.get(key)
            if series is None:
                if len(self._series) >= self._series_max and not self._evict():
                    continue
                series = self._series[key] = _Series()
            series.fine[slot % FINE_SLOTS] = value
            series.sampled_at = slot

    def fine(self, key: SeriesKey, count: int = FINE_SLOTS) -> list[float | None]:
        """The last `count` samples, the newest at the end; none without such a series."""
        series = self._series.get(key)
        return [] if series is None else _unrolled(series.fine, self._slot, count)

    def coarse(self, key: SeriesKey, count: int = COARSE_SLOTS) -> list[float | None]:
        """The last `count` whole minutes."""
        series = self._series.get(key)
        return [] if series is None else _unrolled(series.coarse, self._slot // PER_COARSE - 1, count)

    def measures(self, kind: str, name: str) -> list[str]:
        return [key.measure for key in self._series if key.kind == kind and key.name == name]

    def _advance(self, slot: int) -> None:
        """Complete the minutes that have ended, and empty the slots that were passed over (G1, G3)."""
        first = self._slot // PER_COARSE
        last = slot // PER_COARSE
        for minute in range(max(first, last - COARSE_SLOTS), last):
            for series in self._series.values():
                series.coarse[minute % COARSE_SLOTS] = _mean(series.fine, minute) if minute == first else nan
        for passed in range(max(self._slot + 1, slot - FINE_SLOTS + 1), slot + 1):
            for series in self._series.values():
                series.fine[passed % FINE_SLOTS] = nan

    def _evict(self) -> bool:
        old = next(
            (key for key, each in self._series.items() if self._slot - each.sampled_at >= FINE_SLOTS), None
        )
        if old is not None:
            del self._series[old]
        return old is not None


def _mean(fine: array[float], minute: int) -> float:
    known = [
        value
        for slot in range(minute * PER_COARSE, (minute + 1) * PER_COARSE)
        if not isnan(value := fine[slot % FINE_SLOTS])
    ]
    return sum(known) / len(known) if known else nan


def _unrolled(values: array[float], last: int, count: int) -> list[float | None]:
    size = len(values)
    found = (values[slot % size] for slot in range(last - min(count, size) + 1, last + 1))
    return [None if isnan(value) else value for value in found]
