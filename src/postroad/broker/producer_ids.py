"""Producer ids, taken from the coordination store in blocks: one commit for a thousand producers.

What is left of a block when the node stops is lost on purpose: an id is never given twice.
"""

from __future__ import annotations

import asyncio

from postroad.broker.topics import Topics
from postroad.cluster import controller
from postroad.cluster.controller import Decision
from postroad.cluster.image import Image


class ProducerIds:
    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._block = range(0)
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        async with self._lock:
            if not self._block:
                await self._refill()
            first, self._block = self._block[0], self._block[1:]
            return first

    async def _refill(self) -> None:
        taken = range(0)

        def decide(image: Image) -> Decision:
            nonlocal taken
            ids = controller.allocate_producer_ids(image)
            taken = range(ids.first, ids.end)
            return ids.decision

        await self._topics.decide(decide)
        self._block = taken
