"""How fast this node copies logs in which it is not in sync, all of them together.

A node that gets new replicas, or comes back after a while, could otherwise fill the network and the disks of
the leaders that it copies from, at the expense of clients. Replicas in sync are never slowed down.
"""

from __future__ import annotations

from typing import Final

BURST_MS: Final = 100  # what may be copied ahead, in time: small answers need not wait for each other


class CatchUp:
    def __init__(self, bytes_per_s: int) -> None:
        """`bytes_per_s`: 0 sets no limit."""
        self._bytes_per_s = bytes_per_s
        self._paid_ms = 0.0  # on the monotonic clock: up to here everything that was copied is paid for

    def delay_ms(self, copied: int, now_ms: int) -> int:
        """Count bytes that were copied; returns how long to wait before more of that log is asked for."""
        if not self._bytes_per_s:
            return 0
        self._paid_ms = max(self._paid_ms, now_ms) + copied * 1000 / self._bytes_per_s
        return max(round(self._paid_ms - now_ms) - BURST_MS, 0)
