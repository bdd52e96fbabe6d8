"""This node's entry in the coordination store: it is there for as long as the node keeps its lease alive.

A lease is lost when the process was held up, or cut off from the store, for longer than it lasts; the node
then registers anew as soon as it can. It decides on what the store says at that moment: the image follows by
a watch, which may lag behind the end of the lease. Whatever fails is tried again for as long as the node
lives: clients and messages don't wait for it.

The entry is a fence as well. Whatever this node decides on compares the entry's revision (`Topics.decide`).
A commit without an answer may still be on its way; once the entry is written anew it comes too late.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from postroad.cluster import controller, keys
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image, NodeEntry
from postroad.cluster.store import NO_LEASE, Store
from postroad.errors import (
    ApiError,
    CoordinationError,
    LeaseLost,
    NodeIdTaken,
    PostroadError,
    StoreChanged,
    StoreUnavailable,
)
from postroad.system.clock import Clock

RENEWALS: Final = 4  # in the time of a lease: some may fail before it ends
RETRIES: Final = 10  # in the same time, while they fail

log = logging.getLogger(__name__)


class Registration:
    def __init__(
        self,
        store: Store,
        me: NodeEntry,
        commit: Callable[[Decision], Awaitable[int | None]],
        lease_ms: int,
        clock: Clock,
    ) -> None:
        """`commit` hands a decision to the store and returns its answer."""
        self.me = me
        self._store = store
        self._commit = commit
        self._lease_ms = lease_ms
        self._clock = clock
        self.revision = 0  # of the latest registration: what the store said before was of another lease
        self._current_until_ms = 0  # on the monotonic clock
        self._lease = NO_LEASE
        self._registered = False
        self._troubled = False  # the last renewal failed, and the log says so
        self.renewal_ms = 0  # how long the store took for the last one
        self.failed_renewals = 0
        self._wake = asyncio.Event()  # there is a reason to renew now
        self._turn = asyncio.Lock()  # the entry is written by one task at a time

    @property
    def lease(self) -> int:
        """The lease under which the node is registered, as far as it knows; NO_LEASE if it is not."""
        return self._lease if self._registered else NO_LEASE

    def is_current(self, now_ms: int) -> bool:
        """Whether the lease certainly lasts at this moment of the monotonic clock.

        Its time is counted from before the request that began it anew was sent: the store may have taken that
        one at once, and its answer may have come late.
        """
        return self._registered and now_ms < self._current_until_ms

    async def begin(self, *, takes_over: bool = False) -> None:
        """Register under a new lease; at a start it `takes_over` the entry of this directory's last process.

        Raises NodeIdTaken while another process has this node's id, StoreChanged if one has registered at
        the same moment, StoreUnavailable if the outcome is unknown; it may then be called again.
        """
        async with self._turn:
            await self._begin(takes_over)

    async def serve(self) -> None:
        """The entry says that the node serves, so that it may lead. Raises what `begin` raises."""
        await self._change_state(keys.SERVING)

    async def drain(self) -> None:
        """The entry says that the node stops: nobody hands it anything. Raises what `begin` raises."""
        await self._change_state(keys.DRAINING)

    async def _change_state(self, state: str) -> None:
        async with self._turn:
            self.me = msgspec.structs.replace(self.me, state=state)
            await (self._write(self._lease) if self._registered else self._begin())

    def entry_gone(self) -> None:
        """The store has no entry of this node any more, though its lease may live: a peer found it dead."""
        if self._registered and not self._turn.locked():
            log.warning("another node took this one for dead; registering anew")
            self._registered = False
            self._wake.set()

    async def fence(self) -> None:
        """Write the entry anew. Whatever this node has sent before and nobody answered comes too late then.

        Raises StoreUnavailable if that can't be said for now.
        """
        async with self._turn:
            try:
                await (self._write(self._lease) if self._registered else self._begin())
            except (LeaseLost, NodeIdTaken, StoreChanged) as error:
                self._registered = False
                raise StoreUnavailable(str(error)) from error

    async def _begin(self, takes_over: bool = False) -> None:
        self._registered = False
        controller.check_node_id(await self._nodes(), self.me, takes_over)
        sent_ms = self._clock.monotonic_ms()
        self._lease = await self._store.grant(self._lease_ms)
        self.revision = await self._write(self._lease, takes_over)
        self._current_until_ms = sent_ms + self._lease_ms
        self._registered = True

    async def _write(self, lease: int, takes_over: bool = False) -> int:
        """Returns the store's revision."""
        decision = controller.register_node(await self._nodes(), self.me, lease, takes_over)
        revision = await self._commit(decision)
        if revision is None:
            raise StoreChanged("Another process registered at the same moment.")
        return revision

    async def _nodes(self) -> Image:
        image = Image()
        image.catch_up(await self._store.list(keys.NODES))
        return image

    async def keep(self) -> None:
        """Keep the lease alive, for as long as the node lives."""
        while True:
            attempts = RETRIES if self._troubled else RENEWALS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._lease_ms / 1000 / attempts):
                    await self._wake.wait()
            self._wake.clear()
            await self.renew()

    async def renew(self) -> None:
        """Begin the lease's time anew; one that was lost is replaced. What fails is logged, once in a row."""
        sent_ms = self._clock.monotonic_ms()
        try:
            async with self._turn:
                if not await self._kept_alive():
                    await self._begin()
        except Exception as error:  # whatever it is: who stopped trying would be out of the cluster for ever
            self.failed_renewals += 1
            if not self._troubled:
                unexpected = None if isinstance(error, PostroadError) else error
                text = "the node's entry in the coordination store can't be renewed; still trying: %s"
                log.warning(text, error, exc_info=unexpected)
            self._troubled = True
        else:
            self.renewal_ms = self._clock.monotonic_ms() - sent_ms
            if self._troubled:
                log.info("the node's entry in the coordination store is renewed again")
            self._troubled = False

    async def _kept_alive(self) -> bool:
        if not self._registered:
            return False
        sent_ms = self._clock.monotonic_ms()
        try:
            await self._store.keep_alive(self._lease)
        except LeaseLost:
            self._registered = False
            log.warning("the lease ended while this process was held up or cut off; registering anew")
            return False
        self._current_until_ms = sent_ms + self._lease_ms
        return True

    async def end(self) -> None:
        """Take the entry out of the store. If that fails the lease runs out by itself."""
        if self._lease == NO_LEASE:
            return
        try:
            await self._store.revoke(self._lease)
        except (ApiError, CoordinationError) as error:  # a full disk, say
            log.warning("the node's entry stays in the coordination store for a while: %s", error)
