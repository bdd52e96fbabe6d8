"""Pages of messages: how large one may be, and how many are made at once.

A page is in memory several times while it is made: as it came, as records, and as the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from postroad.errors import RequestTimedOut

BYTES_MAX: Final = 4 << 20  # of content; a page ends with the message that brings it there
AT_ONCE: Final = 4
PATIENCE_S: Final = 10.0


class Pages:
    def __init__(self, at_once: int = AT_ONCE, patience_s: float = PATIENCE_S) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._patience_s = patience_s

    @asynccontextmanager
    async def room(self) -> AsyncIterator[None]:
        """Wait for room to make a page. Raises RequestTimedOut, which clients may try again, if others take
        too long."""
        try:
            async with asyncio.timeout(self._patience_s):
                await self._free.acquire()
        except TimeoutError:
            raise RequestTimedOut("Too many pages of messages are being made at this gateway.") from None
        try:
            yield
        finally:
            self._free.release()
