"""How fast this node copies logs in which it is not in sync, all of them together.

A node that gets new replicas, or comes back after a while, could otherwise fill the network and the disks of
the leaders that it copies from, at the expense of clients. Replicas in sync are never slowed down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from postroad.cluster.image import Image
from postroad.cluster.node_config import copy_rate

BURST_MS: Final = 100  # what may be copied ahead, in time: small answers need not wait for each other


class CatchUp:
    def __init__(self, node: int, bytes_per_s: int) -> None:
        """`bytes_per_s` holds where the cluster's configs don't say otherwise; 0 sets no limit."""
        self._node = node
        self._setting = self._bytes_per_s = bytes_per_s
        self._paid_ms = 0.0  # on the monotonic clock: up to here everything that was copied is paid for
        self._waiting: dict[tuple[bytes, int], Callable[[], None]] = {}

    def follow(self, image: Image) -> None:
        """The image has changed. With another limit nobody waits any longer for what the old one cost."""
        bytes_per_s = copy_rate(image, self._node, self._setting)
        if bytes_per_s == self._bytes_per_s:
            return
        self._bytes_per_s, self._paid_ms = bytes_per_s, 0.0
        waiting, self._waiting = self._waiting, {}
        for go_on in waiting.values():
            go_on()

    def wait(self, log: tuple[bytes, int], go_on: Callable[[], None]) -> None:
        """`go_on` is called when the limit changes before `done`."""
        self._waiting[log] = go_on

    def done(self, log: tuple[bytes, int]) -> None:
        self._waiting.pop(log, None)

    def delay_ms(self, copied: int, now_ms: int) -> int:
        """Count bytes that were copied; returns how long to wait before more of that log is asked for."""
        if not self._bytes_per_s:
            return 0
        self._paid_ms = max(self._paid_ms, now_ms) + copied * 1000 / self._bytes_per_s
        return max(round(self._paid_ms - now_ms) - BURST_MS, 0)
