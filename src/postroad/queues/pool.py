"""`Pool`: what can go out now, lowest offset first."""

from __future__ import annotations

from collections.abc import Iterator

from postroad.queues.ranges import RangeSet

Taken = tuple[int, int, int]  # first, last, tenant


class Pool:
    """For subscriptions that are not fair; `FairPool` has the same methods."""

    def __init__(self) -> None:
        self._ready = RangeSet()

    @property
    def messages(self) -> int:
        return self._ready.messages

    @property
    def entries(self) -> int:
        return self._ready.rows

    def add(self, first: int, last: int, tenant: int = 0) -> None:
        self._ready.add(first, last)

    def take(self, count: int, upto: int | None) -> list[Taken]:
        """Takes out `count` messages at most, below `upto`."""
        return [(first, last, 0) for first, last in self._ready.take(count, upto)]

    def withdraw(self, first: int, last: int) -> bool:
        """Takes out this range, if all of it is here."""
        if self._ready.missing(first, last):
            return False
        self._ready.carve(first, last)
        return True

    def fell(self, tenant: int) -> None:
        """What was taken will not be in flight after all."""

    def drop_below(self, offset: int) -> None:
        self._ready.drop_below(offset)

    def overlapping(self, first: int, last: int) -> list[tuple[int, int]]:
        """What of the range can go out now, ascending."""
        return [(low, high) for low, high in self._ready.cut(first, last)]

    def each(self) -> Iterator[tuple[int, int]]:
        return iter(self._ready)

    def tenants(self) -> Iterator[int]:
        """Nobody is told apart."""
        return iter(())

    def close(self) -> None:
        """Nobody uses this pool any more."""

    def check(self) -> None:
        self._ready.check()
