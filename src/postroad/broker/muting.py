"""A connection that is not heard for a while, because it has taken more than its quota."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

MUTED: Final = -1  # bytes that may wait to be sent: more always do


class Muting:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, write_bytes_max: int, end: Callable[[int], None]
    ) -> None:
        """`end` is given back the limit that holds otherwise."""
        self._loop = loop
        self._write_bytes_max = write_bytes_max
        self._end = end
        self._timer: asyncio.TimerHandle | None = None

    def go_on(self, seconds: float) -> None:
        """For at least so long from now on."""
        until = self._loop.time() + seconds
        if self._timer is not None:
            if self._timer.when() >= until:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(until, self._end, self._write_bytes_max)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
