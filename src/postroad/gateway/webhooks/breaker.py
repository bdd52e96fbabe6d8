"""A circuit breaker: an endpoint that fails again and again is left alone, and tried with a message at times.

    closed ── FAILURES_MAX failures in a row ──▶ open ── its time is over ──▶ half-open ── success ──▶ closed
                                                   ▲                              │
                                                   └── twice as long as before ── failure

While it is open no message is received, so none loses an attempt and others may take them.
"""

from __future__ import annotations

from typing import Final

FAILURES_MAX: Final = 5
OPEN_FIRST_S: Final = 1.0
OPEN_MAX_S: Final = 60.0


class Breaker:
    """The circuit breaker of one endpoint at one gateway. The caller tells the time."""

    def __init__(self) -> None:
        self._failures = 0
        self._open_s = 0.0  # how long it is open now; 0: it is closed
        self._until = 0.0

    def state(self, now: float) -> str:
        if now < self._until:
            return "open"
        return "half-open" if self._open_s else "closed"

    def wait_s(self, now: float) -> float:
        """How long nothing may be sent."""
        return max(0.0, self._until - now)

    def allowed(self, now: float, usual: int) -> int:
        """How many requests may be under way now."""
        return {"open": 0, "half-open": 1, "closed": usual}[self.state(now)]

    def succeeded(self) -> None:
        self._failures = 0
        self._open_s = 0.0

    def failed(self, now: float) -> None:
        """What was under way when it opened, and fails too, changes nothing."""
        state = self.state(now)
        self._failures += 1
        if state == "half-open" or (state == "closed" and self._failures >= FAILURES_MAX):
            self._open_s = min(max(self._open_s * 2, OPEN_FIRST_S), OPEN_MAX_S)
            self._until = now + self._open_s

    def pause(self, now: float, wait_s: float) -> None:
        """The endpoint has asked for so much time."""
        self._until = max(self._until, now + wait_s)
