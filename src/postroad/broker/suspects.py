"""Peers that may have died: found dead by a probe, they are taken out of the cluster before their lease ends.

A process that is killed leaves its connections closed at once, long before its lease runs out. Whoever loses
one asks whether anything listens there. Only a refusal counts, twice in a row: a machine that is silent may
still run, and its lease decides. One that accepts is asked again for a while: the system closes what a killed
process had open one by one, and the port may be the last. Taking out a node that lives after all costs a
needless election and nothing else, since epochs fence what it leads. A node that starts or stops takes no
connections, and is not dead.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from postroad.cluster import keys, membership
from postroad.cluster.image import NodeEntry
from postroad.errors import ApiError, CoordinationError

if TYPE_CHECKING:
    from postroad.broker.node import Node

REFUSALS: Final = 2
LOOKS_MAX: Final = 6
PAUSE_S: Final = 0.05
CONNECT_S: Final = 0.5
REFUSING_S: Final = 5.0  # a lease, where the store is slow to hear of the death

log = logging.getLogger(__name__)


class Suspects:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._probing: dict[int, None] = {}
        self._refused_s: dict[int, float] = {}  # when a probe was last refused

    def suspect(self, peer: int) -> None:
        """A connection with the node has ended, or was refused."""
        if peer not in self._probing and peer != self._node.settings.node.id:
            self._probing[peer] = None
            self._node.tasks.start(self._probe(peer), "probe-peer")

    def is_refusing(self, peer: int) -> bool:
        """Whether it refused a connection a moment ago, and has taken none since: it is dead, not silent."""
        at_s = self._refused_s.get(peer)
        return at_s is not None and self._node.loop.time() - at_s < REFUSING_S

    async def _probe(self, peer: int) -> None:
        try:
            epoch = self._node.image.node_epoch(peer)
            if await self._is_dead(peer) and self._node.image.node_epoch(peer) == epoch:
                await self._take_out(peer)
        finally:
            del self._probing[peer]

    async def _is_dead(self, peer: int) -> bool:
        refusals = 0
        for look in range(LOOKS_MAX):
            if look:
                await asyncio.sleep(PAUSE_S)
            entry = self._node.image.nodes.get(peer)
            if entry is None or entry.state != keys.SERVING:
                return False
            try:
                refusals = refusals + 1 if await self._refuses(entry) else 0
            except (OSError, TimeoutError):
                return False
            if refusals == REFUSALS:
                return True
        return False

    async def is_refused_by(self, entry: NodeEntry) -> bool:
        """Whether nothing listens at the address of a node, which may be gone from the cluster."""
        with contextlib.suppress(OSError, TimeoutError):
            return await self._refuses(entry)
        return False

    async def _refuses(self, entry: NodeEntry) -> bool:
        """Whether the node refuses a connection. Raises OSError or TimeoutError if it is silent."""
        try:
            async with asyncio.timeout(CONNECT_S):
                stream = await self._node.runtime.connect(entry.host, entry.port)
        except ConnectionRefusedError:
            self._refused_s[entry.id] = self._node.loop.time()
            return True
        stream.close()
        self._refused_s.pop(entry.id, None)
        return False

    async def _take_out(self, peer: int) -> None:
        decision = membership.declare_dead(self._node.image, peer)
        if not decision.operations:
            return
        try:
            committed = await self._node.topics.commit(decision, urgent=True)
        except (ApiError, CoordinationError) as error:
            log.warning("node %d is dead, but that could not be recorded: %s", peer, error)
            return
        if committed is not None:
            log.warning("node %d is dead: nothing listens at its address", peer)
