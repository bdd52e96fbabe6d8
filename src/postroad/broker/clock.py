"""Where a node's time comes from; the simulator hands in another one."""

from __future__ import annotations

import time

from postroad.now import Now


class Clock:
    """Wall time for what people see, monotonic time for every deadline (clocks jump)."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def now(self) -> Now:
        """Both, as the pure rooms are told them."""
        return Now(self.monotonic_ms(), self.now_ms())
