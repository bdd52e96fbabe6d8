"""`Traits`: what some messages ask for, as far as it must be known until they are done.

Plain messages have no row. Times are monotonic ms; 0: not asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from postroad.queues.table import Table


class Trait(NamedTuple):
    first: int
    last: int
    tenant: int = 0
    available_at: int = 0  # only kept for messages that wait in line: the others are in the schedule
    expires_at: int = 0


class Traits(Table):
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(3)

    def of(self, offset: int) -> Trait:
        row = self.find(offset) if self.rows else None
        return Trait(offset, offset) if row is None else Trait._make(row)

    def shift(self, ms: int) -> None:
        """All times come so much later (sooner, if negative)."""
        for _, _, values in self.chunks:
            for at in range(len(values)):
                if at % self.width and values[at]:
                    values[at] = max(values[at] + ms, 1)

    def tenants(self) -> Iterator[int]:
        for _, _, values in self.chunks:
            yield from values[:: self.width]
