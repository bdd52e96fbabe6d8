"""This node's entry in the coordination store: it is there for as long as the node keeps its lease alive.

A lease is lost when the process was held up for longer than it lasts; the node then registers anew. While
the store can't be reached it is asked again and again: clients and messages don't wait for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from postroad.cluster import controller
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image, NodeEntry
from postroad.cluster.store import NO_LEASE, Store
from postroad.errors import ApiError, CoordinationError, LeaseLost

LEASE_MS: Final = 10_000
RENEW_S: Final = LEASE_MS / 3000  # two renewals may fail before the lease ends

log = logging.getLogger(__name__)


class Registration:
    def __init__(self, store: Store, me: NodeEntry, commit: Callable[[Decision], Awaitable[None]]) -> None:
        """`commit` raises if the decision did not take effect."""
        self._store = store
        self._me = me
        self._commit = commit
        self._lease = NO_LEASE
        self._registered = False
        self._troubled = False  # the last renewal failed, and the log says so

    async def begin(self, image: Image) -> None:
        """Register under a new lease. Raises ConfigurationError while another process has this node's id."""
        self._registered = False
        self._lease = await self._store.grant(LEASE_MS)
        await self._commit(controller.register_node(image, self._me, self._lease))
        self._registered = True

    async def keep(self, image: Image) -> None:
        """Keep the lease alive, for as long as the node lives."""
        while True:
            await asyncio.sleep(RENEW_S)
            await self.renew(image)

    async def renew(self, image: Image) -> None:
        """Begin the lease's time anew; one that was lost is replaced. What fails is logged, once in a row."""
        try:
            if not await self._kept_alive():
                await self.begin(image)
        except (ApiError, CoordinationError) as error:
            if not self._troubled:
                log.warning("the node's entry in the coordination store can't be renewed: %s", error)
            self._troubled = True
        else:
            self._troubled = False

    async def _kept_alive(self) -> bool:
        if not self._registered:
            return False
        try:
            await self._store.keep_alive(self._lease)
        except LeaseLost:
            log.warning("the lease ended while this process was held up; registering anew")
            return False
        return True

    async def end(self) -> None:
        """Take the entry out of the store. If that fails the lease runs out by itself."""
        try:
            await self._store.revoke(self._lease)
        except (ApiError, CoordinationError) as error:  # a full disk, say
            log.warning("the node's entry stays in the coordination store for a while: %s", error)
