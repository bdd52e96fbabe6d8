"""Passwords and tokens are checked in one thread, which takes milliseconds for each. Of one address a few
wait for it at a time, and the others for those: who guesses over many connections delays his own address, and
hardly any other.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from postroad.system.workers import Job, Workers

OF_ADDRESS_MAX: Final = 8


class FairChecks:
    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._by_address: dict[str, asyncio.Semaphore] = {}
        self._asked: dict[str, int] = {}  # checks that have not ended, by address

    async def call(self, address: str, job: Job) -> Any:
        """The job's result."""
        turns = self._by_address.setdefault(address, asyncio.Semaphore(OF_ADDRESS_MAX))
        self._asked[address] = self._asked.get(address, 0) + 1
        try:
            async with turns:
                return await self._workers.call(job)
        finally:
            self._asked[address] -= 1
            if not self._asked[address]:
                del self._asked[address], self._by_address[address]

    def close(self) -> None:
        self._workers.close()
