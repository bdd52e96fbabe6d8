"""How long to wait before the next try: doubling, with jitter, up to a ceiling, until a deadline."""

from __future__ import annotations

import asyncio
from typing import Final

from postroad.client.runtime import Runtime

FIRST_S: Final = 0.02
CEILING_S: Final = 1.0
MOVED_S: Final = 0.1  # where another leader or coordinator is elected: within a second, most often
JITTER: Final = 0.2  # so that clients which lost the same node don't come back in step


class Backoff:
    """One for each thing that is tried again. `wait` sleeps, or says that the time is up."""

    def __init__(self, timeout_s: float, runtime: Runtime) -> None:
        self.deadline = asyncio.get_running_loop().time() + timeout_s
        self._next_s = FIRST_S
        self._random = runtime.random

    @property
    def left_s(self) -> float:
        return max(0.0, self.deadline - asyncio.get_running_loop().time())

    async def wait(self, ceiling_s: float = CEILING_S) -> bool:
        """False, at once, if the deadline comes before the next try would. `ceiling_s`: the longest pause."""
        pause_s = min(self._next_s, ceiling_s) * (1 + self._random.uniform(-JITTER, JITTER))
        if pause_s >= self.left_s:
            return False
        self._next_s = min(CEILING_S, self._next_s * 2)
        await asyncio.sleep(pause_s)
        return True
