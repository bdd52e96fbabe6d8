"""How a node enters its cluster: it agrees with the coordination store on who it is, before it opens a log.

Other nodes may start at the same moment, the store may be away for a while, and the entry of a process that
has died stays until its lease ends. So whatever was refused for now, or is not known to have happened, is
read and decided anew for about as long as a lease lasts, and the log says what is waited for. A start that is
refused in the end has changed nothing in the data directory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeVar

from postroad.broker.data_directory import DataDirectory
from postroad.broker.registration import Registration
from postroad.cluster import controller, leadership, membership
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image, Topic
from postroad.cluster.store import Snapshot, Store
from postroad.errors import LeaseLost, NodeIdTaken, RequestTimedOut, StoreChanged

RETRY_S: Final = 0.5
LATE_S: Final = 1.0  # a store looks for leases that have ended now and then: they end late

log = logging.getLogger(__name__)

T = TypeVar("T")


class Joined(NamedTuple):
    """What the store holds when the node has joined, and whether its logs were left by a clean stop."""

    snapshot: Snapshot
    clean: bool


class Joining:
    def __init__(
        self,
        store: Store,
        directory: DataDirectory,
        registration: Registration,
        commit: Callable[[Decision], Awaitable[int | None]],
        random: bytes,
        is_synced: Callable[[Topic], bool],
        replaces: bool = False,
        remembers: bool = False,
        is_secured: bool = False,
    ) -> None:
        """`commit` hands a decision to the store and returns its answer; `random`: a new cluster's id.

        `is_synced`: whether the topic's messages are synced before they are acknowledged. `replaces`: the
        data directory takes the place of one that is lost. `remembers`: the store may be restored from a
        backup apart from the data directory, which must not go unnoticed. `is_secured`: it asks who comes.
        """
        self._store = store
        self._directory = directory
        self._registration = registration
        self._commit = commit
        self._random = random
        self._is_synced = is_synced
        self._replaces = replaces
        self._remembers = remembers
        self._is_secured = is_secured

    async def join(self) -> Joined:
        """Register the node and take the leadership that is its own. Raises what keeps it from starting."""
        me = self._registration.me
        cluster_id = await self._agree_on_cluster()
        await self._registration.begin(takes_over=True)
        clean = self._directory.is_clean()
        image = await self._read()
        membership.check_level(image, me.level)
        same_boot = self._directory.same_boot()
        is_new = image.directories.get(me.id) not in (None, me.directory)
        if is_new:
            leadership.check_replaceable(image, me.id)
        for decision in leadership.start(
            image,
            me.id,
            same_boot=same_boot and not is_new,
            clean=clean,
            is_synced=lambda topic: self._is_synced(topic) and not is_new,
        ):
            if await self._commit(decision) is None:
                raise StoreChanged("Another node changed partitions that this one leads.")
        # Not before: a start that is refused changes nothing. Not later: the store is told whose it is.
        self._directory.note(cluster_id, me.id, me.directory)
        image = await self._read()
        noted = membership.note_directory(image, me.id, me.directory)
        if noted.operations and await self._commit(noted) is None:
            raise StoreChanged("Another process registered at the same moment.")
        snapshot = await self._store.list("")
        if self._remembers:
            self._directory.note_revision(snapshot.revision)
        self._directory.record_boot()
        self._directory.take_marker()
        return Joined(snapshot, clean)

    async def _agree_on_cluster(self) -> str:
        image, me = await self._read(), self._registration.me
        self._directory.belong_to(image.cluster_id, me.id, image.revision)
        membership.check_directory(image, me.id, me.directory, self._replaces)
        membership.check_secure(image, me, is_secured=self._is_secured)
        if image.cluster_id is None:
            await self._commit(controller.create_cluster(image, self._random))
            image = await self._read()  # it may be another node's
        assert image.cluster_id is not None
        return image.cluster_id

    async def _read(self) -> Image:
        image = Image()
        image.catch_up(await self._store.list(""))
        return image


async def patiently(work: Callable[[], Awaitable[T]], lease_ms: int) -> T:
    """Do it again where the store did not answer or refused for now, until a lease must have ended."""
    loop = asyncio.get_running_loop()
    wait_s = lease_ms / 1000 + LATE_S
    deadline = loop.time() + wait_s
    told = ""
    while True:
        try:
            return await work()
        except (LeaseLost, NodeIdTaken, RequestTimedOut, StoreChanged) as error:
            if loop.time() >= deadline:
                raise
            if str(error) != told:
                told = str(error)
                log.warning("the start waits for up to %g s: %s", wait_s, told)
        await asyncio.sleep(RETRY_S)
