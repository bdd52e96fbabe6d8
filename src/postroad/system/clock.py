"""Where time comes from."""

from __future__ import annotations

import time
from typing import Final, Protocol

from postroad.now import Now

stopwatch_ns: Final = time.perf_counter_ns
"""For measurements alone: nothing is decided by what it says, so the simulator leaves it be."""

_new: Final = tuple.__new__  # a named tuple without the call of its constructor


class Clock(Protocol):
    """Wall time for what people see, monotonic time for every deadline (clocks jump)."""

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...

    def now(self) -> Now:
        """Both, as the pure rooms are told them."""
        ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def now(self) -> Now:
        return _new(Now, (time.monotonic_ns() // 1_000_000, time.time_ns() // 1_000_000))
