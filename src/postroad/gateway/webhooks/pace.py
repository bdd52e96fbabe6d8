"""A limit on messages a second, with bursts of at most a second's worth."""

from __future__ import annotations


class Pace:
    """A bucket of tokens. `rate` 0: as many as come. Times are the caller's."""

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._burst = max(rate, 1.0)
        self._tokens = min(1.0, self._burst)
        self._at = now

    def available(self, now: float, wanted: int) -> int:
        """How many of those wanted may go now."""
        if not self.rate:
            return wanted
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self.rate)
        self._at = now
        return min(wanted, int(self._tokens))

    def wait_s(self) -> float:
        """How long to wait until one may go."""
        return max(0.0, (1 - self._tokens) / self.rate) if self.rate else 0.0

    def take(self, count: int) -> None:
        self._tokens -= count
