"""Counters and histograms, by labels, and the registry that writes them on a page.

A histogram's buckets are powers of two: which one a value belongs to is its number of bits, with nothing to
search. Not all of them are written, or a page would be long.

M1 a family has at most `SERIES_MAX` series; whoever invents more labels is counted as `other`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from postroad.metrics.page import COUNTER, GAUGE, HISTOGRAM, Family, Page, labels

SERIES_MAX: Final = 2000
OTHER: Final = "other"
_BITS: Final = 64

T = TypeVar("T")


class Scale:
    """Which buckets of a histogram are shown, those below 2^low, 2^(low+step), … 2^high, and in what unit."""

    def __init__(self, low: int, high: int, step: int, unit: float) -> None:
        self.bits = range(low, high + 1, step)
        self.unit = unit


SECONDS: Final = Scale(16, 34, 2, 1e-9)  # of nanoseconds: 66 µs to 17 s
COUNTS: Final = Scale(0, 10, 1, 1)  # 0 to 1023


class Count:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def add(self, more: int = 1) -> None:
        self.value += more


class Distribution:
    """How values are spread; whole numbers from 0 to 2^63."""

    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets = [0] * (_BITS + 1)  # by number of bits
        self.total = 0

    def note(self, value: int, times: int = 1) -> None:
        self.buckets[value.bit_length()] += times
        self.total += value * times

    def write(self, family: Family, scale: Scale, given: str = "") -> None:
        before = f"{given}," if given else ""
        for bits in scale.bits:
            bound = ((1 << bits) - 1) * scale.unit
            family.add(sum(self.buckets[: bits + 1]), f"{before}{labels(le=f'{bound:.6g}')}", "_bucket")
        count = sum(self.buckets)
        family.add(count, f'{before}le="+Inf"', "_bucket")
        family.add(self.total * scale.unit, given, "_sum")
        family.add(count, given, "_count")


class Series(Generic[T]):
    """One instrument for each combination of labels, made when it is first asked for."""

    def __init__(self, label_names: tuple[str, ...], make: Callable[[], T]) -> None:
        self._names = label_names
        self._make = make
        self._known: dict[tuple[str, ...], T] = {}

    def of(self, *values: str) -> T:
        """Keep the answer where the labels are always the same: then there is nothing to look up."""
        found = self._known.get(values)
        return self._add(values) if found is None else found

    def _add(self, values: tuple[str, ...]) -> T:
        assert len(values) == len(self._names), "a value for each label"
        if len(self._known) >= SERIES_MAX:
            values = (OTHER,) * len(values)
        return self._known.setdefault(values, self._make())

    def each(self) -> list[tuple[str, T]]:
        """With their labels as `labels` writes them."""
        return [
            (labels(**dict(zip(self._names, values, strict=True))), made)
            for values, made in self._known.items()
        ]


class Registry:
    """The instruments of a process. `write` puts all of them on a page."""

    def __init__(self) -> None:
        self._writers: list[Callable[[Page], None]] = []

    def counters(self, name: str, meaning: str, *label_names: str) -> Series[Count]:
        series = Series(label_names, Count)

        def write(page: Page) -> None:
            family = page.family(name, COUNTER, meaning)
            for given, counted in series.each():
                family.add(counted.value, given)

        self._writers.append(write)
        return series

    def histograms(self, name: str, meaning: str, scale: Scale, *label_names: str) -> Series[Distribution]:
        series = Series(label_names, Distribution)

        def write(page: Page) -> None:
            family = page.family(name, HISTOGRAM, meaning)
            for given, distribution in series.each():
                distribution.write(family, scale, given)

        self._writers.append(write)
        return series

    def gauge(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """Read when a page is written."""
        self._writers.append(lambda page: page.family(name, GAUGE, meaning).add(read()))

    def write(self, page: Page) -> None:
        for write in self._writers:
            write(page)
