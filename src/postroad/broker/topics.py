"""Topics on this node: follows the coordination store and keeps the open partitions equal to it.

Nothing here decides: `cluster.controller` does, purely; the decision is committed to the store; the
store's watch brings it back as events; the image takes them; and the replicas that this node
should have are opened, changed or closed (`replicas`). A request such as CreateTopics waits until its own
revision has come round (`reach`), so that what it created can be used when it is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from postroad.broker.data_directory import DataDirectory
from postroad.broker.replicas import Opening
from postroad.cluster import keys
from postroad.cluster.controller import Decision
from postroad.cluster.image import Changes, Image
from postroad.cluster.store import Compare, Snapshot, Store
from postroad.errors import HistoryCompacted, RequestTimedOut, StorageFailed, StoreUnavailable

if TYPE_CHECKING:
    from postroad.broker.node import Node

DECISIONS_MAX: Final = 20  # others got in between that often: something is wrong
DECISION_TIMEOUT_S: Final = 30.0  # all attempts together; clients wait about as long
REACH_TIMEOUT_S: Final = 30.0
AWAY_S: Final = 1.0  # a store that was unavailable is not asked for decisions for so long
FOLLOW_RETRY_S: Final = 0.5

log = logging.getLogger(__name__)


class _Step(NamedTuple):
    """What came with one revision, and the partitions that are being opened because of it."""

    revision: int
    changes: Changes
    opening: list[Opening]


class Topics:
    def __init__(self, node: Node, store: Store, directory: DataDirectory) -> None:
        self.image = Image()
        self._node = node
        self._store = store
        self._directory = directory
        self._opening: deque[_Step] = deque()  # changes whose partitions are being opened, in order
        self._applied = 0  # the store's revision up to which partitions are open
        self._away_until = 0.0  # on the loop's clock
        self._reached: list[tuple[int, asyncio.Future[None]]] = []

    # --- decisions

    async def decide(
        self,
        make: Callable[[Image], Decision],
        *,
        urgent: bool = False,
        done: Callable[[Image], bool] | None = None,
        current: bool = False,
    ) -> None:
        """Decide on the image, commit, and wait until this node has followed. Raises what `make` raises.

        `urgent`: the decision frees space, so it may use the reserve of a full disk. `done` tells whether a
        commit whose outcome is unknown took effect; it may be left out if `make` then decides on nothing.
        `current`: where the image says that there is nothing to do, the store must say so, too. An image that
        is behind may show what another node has changed since, and whoever asked would be told that it holds.
        Raises StoreUnavailable if the outcome can't be found out, RequestTimedOut if that takes too long.
        """
        loop = asyncio.get_running_loop()
        if loop.time() < self._away_until:  # a request that changes many topics waits for one of them only
            raise StoreUnavailable()
        try:
            async with asyncio.timeout(DECISION_TIMEOUT_S):
                await self._decide(make, urgent, done, current)
        except StoreUnavailable:
            self._away_until = loop.time() + AWAY_S
            raise
        except TimeoutError:
            raise RequestTimedOut("The coordination store did not take the change in time.") from None

    async def _decide(
        self,
        make: Callable[[Image], Decision],
        urgent: bool,
        done: Callable[[Image], bool] | None,
        current: bool,
    ) -> None:
        unknown = False  # an earlier attempt may have happened
        is_behind = current  # as far as anybody knows
        for _ in range(DECISIONS_MAX):
            if unknown and done is not None and done(self.image):
                return
            seen = self.image.revision
            compares, operations = make(self.image)
            if not operations and not is_behind:
                return
            if not operations:
                await self._read_anew()
                is_behind = False
                continue
            try:
                revision = await self.commit(Decision([*compares, self._fence()], operations), urgent=urgent)
            except StoreUnavailable:
                unknown = True
                await self.fence_off()
                continue
            if revision is not None:
                await self.reach(revision)
                return
            await self.reach(seen + 1)  # somebody was faster: decide anew on what came of it
        raise RequestTimedOut("The coordination store changed under every attempt. Try again.")

    async def fence_off(self) -> None:
        """A request that is late must not take effect any more: what it creates may be deleted by then.

        The image then shows what came of it. Raises StoreUnavailable if nobody can say.
        """
        for _ in range(DECISIONS_MAX):
            await self._read_anew()  # raises if the store is away, and not just an answer lost
            with contextlib.suppress(StoreUnavailable):
                await self._node.registration.fence()
                await self._read_anew()
                return
        raise StoreUnavailable()

    def _fence(self) -> Compare:
        """A compare that holds until this node's entry is written anew (`Registration.fence`)."""
        key = keys.node_key(self._node.settings.node.id)
        return Compare(key, self.image.key_revision(key))

    async def _read_anew(self) -> None:
        """Wait until the image shows what the store holds now. Raises StoreUnavailable if nobody can say."""
        snapshot = await self._store.list("")
        await self.reach(snapshot.revision)

    async def commit(self, decision: Decision, *, urgent: bool) -> int | None:
        """The store's answer; on a full disk an urgent decision is tried again with the reserve."""
        try:
            return await self._store.commit(*decision)
        except StorageFailed:
            if not (urgent and self._directory.reserve.spend()):
                raise
            return await self._store.commit(*decision)

    async def reach(self, revision: int, timeout_s: float | None = REACH_TIMEOUT_S) -> None:
        """Wait until everything up to this revision is applied, partitions opened and all."""
        if self._applied >= revision:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reached.append((revision, future))
        try:
            await asyncio.wait_for(future, timeout_s)
        except TimeoutError:
            raise RequestTimedOut("The node has not followed the coordination store in time.") from None

    # --- following

    async def catch_up(self, snapshot: Snapshot, clean: bool) -> None:
        """Take a list of the whole store; when this returns, what this node should have is open."""
        self._take(self.image.catch_up(snapshot), clean)
        await self.reach(snapshot.revision, timeout_s=None)

    async def follow(self) -> None:
        """Apply each change of the store as it comes, for as long as the node lives.

        A store that can't be reached is tried again: what this node has is served meanwhile.
        """
        behind = troubled = False
        while True:
            try:
                if behind:
                    self._take(self.image.catch_up(await self._store.list("")), clean=True)
                    behind = False
                async for events in self._store.watch("", self.image.revision):
                    troubled = False
                    self._take(self.image.apply(events), clean=True)
                return
            except HistoryCompacted:
                log.warning("fell behind the coordination store; reading it anew")
                behind = True
            except StoreUnavailable as error:
                if not troubled:
                    log.warning("the coordination store can't be followed; still trying: %s", error)
                troubled = True
                await asyncio.sleep(FOLLOW_RETRY_S)

    def _take(self, changes: Changes, clean: bool) -> None:
        """The image has changed: roles change at once, and what follows from open partitions follows them."""
        self._node.security.changed(changes)
        self._node.quotas.changed(changes)
        opening = self._node.replicas.apply(changes, clean)
        self._node.catch_up.follow(self.image)
        self._node.controlling.changed(changes)
        self._node.leader_checks.changed(changes)
        self._opening.append(_Step(self.image.revision, changes, opening))
        if len(self._opening) == 1:
            self._node.tasks.start(self._finish_steps(), "apply-changes")

    async def _finish_steps(self) -> None:
        """One after the other, so that everybody hears of changes in their order."""
        while self._opening:
            revision, changes, opening = self._opening[0]
            if opening:
                await asyncio.wait(opening)
            try:
                self._node.topics_changed(changes)
            except Exception:
                self._node.fail("changes of the coordination store can't be applied")
                return
            self._arrived(revision)
            self._opening.popleft()

    def _arrived(self, revision: int) -> None:
        self._applied = revision
        waiting, self._reached = self._reached, []
        for wanted, future in waiting:
            if wanted > revision:
                self._reached.append((wanted, future))
            elif not future.done():
                future.set_result(None)
