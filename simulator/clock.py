"""The clocks of one process.

Monotonic time is the time of the process's loop and never goes back. Wall time is that of the machine: it may
be wrong by `skew_s`, and jump when somebody sets it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from postroad.now import Now

EPOCH_MS: Final = 1_700_000_000_000  # the wall time of the world's moment 0


class Clock:
    """The port `postroad.system.clock.Clock`."""

    def __init__(self, time: Callable[[], float], skew_s: float = 0.0) -> None:
        self.skew_s = skew_s
        self._time = time

    def now_ms(self) -> int:
        return EPOCH_MS + int((self._time() + self.skew_s) * 1000)

    def monotonic_ms(self) -> int:
        return int(self._time() * 1000)

    def now(self) -> Now:
        return Now(self.monotonic_ms(), self.now_ms())
