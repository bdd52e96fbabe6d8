"""Since when a copy lacks something that its source has: the RPO.

A mirror is always a moment behind while messages come. So it is not asked whether it has all that there is
now, but what it has by now of the ends that the source had before.
"""

from __future__ import annotations

from typing import Final

# Those that are kept are spread evenly over the lag, however long it grows.
ENDS_MAX: Final = 64


class Lag:
    """The lag of one partition."""

    def __init__(self) -> None:
        self.caught_up_at: float | None = None  # when the source had nothing more than is mirrored by now
        self._ends: list[tuple[float, int]] = []
        self._apart_s = 0.0  # how far apart they are at least, but for the newest

    def note(self, asked_at: float, end: int) -> None:
        """Where the source ended at that time, or later."""
        ends = self._ends
        if len(ends) > 1 and ends[-1][0] - ends[-2][0] < self._apart_s:
            ends.pop()
        ends.append((asked_at, end))
        if len(ends) > ENDS_MAX:
            self._apart_s = 2 * (asked_at - ends[0][0]) / ENDS_MAX
            del ends[1:-1:2]

    def reach(self, at: int) -> None:
        """All before this offset is mirrored."""
        for number in reversed(range(len(self._ends))):
            asked_at, end = self._ends[number]
            if end <= at:
                self.caught_up_at = asked_at
                del self._ends[: number + 1]
                break
        if not self._ends:
            self._apart_s = 0.0
