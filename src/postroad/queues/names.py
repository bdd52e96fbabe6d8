"""`Names`: small integers that stand for members and tenants in arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

_T = TypeVar("_T")

SWEEP_AT: Final = 1024  # names; below, forgetting is not worth a look at who is still spoken of


class Names(Generic[_T]):
    """0 stands for None. A number is never given twice, so one that was forgotten means nothing else.

    `spoken_of` tells the numbers that are in use; the others are forgotten once there are many.
    """

    def __init__(self, spoken_of: Callable[[], Iterable[int]]) -> None:
        self._spoken_of = spoken_of
        self._numbers: dict[_T | None, int] = {None: 0}
        self._names: dict[int, _T | None] = {0: None}
        self._next = 1
        self._sweep_at = SWEEP_AT

    def __len__(self) -> int:
        return len(self._names) - 1

    def number(self, name: _T | None) -> int:
        found = self._numbers.get(name)
        return self._add(name) if found is None else found

    def known(self, name: _T) -> int | None:
        return self._numbers.get(name)

    def name(self, number: int) -> _T | None:
        return self._names[number]

    def _add(self, name: _T | None) -> int:
        if len(self._names) > self._sweep_at:
            self._sweep()
        number = self._next
        self._next += 1
        self._numbers[name] = number
        self._names[number] = name
        return number

    def _sweep(self) -> None:
        kept = {0, *self._spoken_of()}
        self._names = {number: name for number, name in self._names.items() if number in kept}
        self._numbers = {name: number for number, name in self._names.items()}
        self._sweep_at = max(SWEEP_AT, 2 * len(self._names))
