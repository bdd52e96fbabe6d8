"""The controller's work, on whichever node has the controller's key.

The key hangs on the node's lease; when it is gone any node that serves takes it. The controller reconciles
what the image says (`cluster.reconciliation`, `cluster.reassignment`): it elects leaders for partitions whose
leader is dead or has resigned, takes dead nodes out of ISRs, brings the nodes' own topics up to their number
of replicas, moves partitions away from nodes that are drained or lost, and completes moves. All of it is
compared with the key, so one that has lost it can change nothing, and doing it twice changes nothing more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from postroad.cluster import membership, reassignment, reconciliation
from postroad.cluster.decision import Decision
from postroad.cluster.image import Changes, Image, Topic
from postroad.cluster.store import NO_LEASE
from postroad.errors import ApiError, CoordinationError, StoreUnavailable

if TYPE_CHECKING:
    from postroad.broker.node import Node

LOOK_S: Final = 1.0  # between two looks without a reason: whatever was refused or lost is tried again

log = logging.getLogger(__name__)


class Controlling:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._me = node.settings.node.id
        self._changed = asyncio.Event()
        self._changed.set()  # a controller that begins looks at all of it
        self._gone_since_s: dict[int, float] = {}  # by node: when this controller first missed it
        self._controller = node.image.controller

    def changed(self, changes: Changes) -> None:
        """The image has changed; not each change is a reason to look."""
        image = self._node.image
        begins = image.controller == self._me != self._controller and len(image.nodes) > 1
        self._controller = image.controller
        is_wanted = any(_wants_controller(image, topic) for topic in changes.created)
        if changes.nodes_changed or changes.partitions or is_wanted or begins:
            self._changed.set()

    async def run(self) -> None:
        """Claim the controller's key and reconcile, for as long as the node lives."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._changed.wait()
            if not self._changed.is_set() and len(self._node.image.nodes) <= 1:
                continue  # a node that is alone has nothing to look at without a reason
            self._changed.clear()
            if not await self._tried():
                self._changed.set()
                await asyncio.sleep(LOOK_S)

    async def _tried(self) -> bool:
        """Reconcile; False if that has to be done again."""
        try:
            await self._reconcile()
        except StoreUnavailable:
            return False
        except (ApiError, CoordinationError) as error:
            log.warning("the cluster could not be reconciled; still trying: %s", error)
            return False
        except Exception:  # whatever it is: without a controller nobody is elected
            log.exception("the cluster could not be reconciled; still trying")
            return False
        return True

    async def _reconcile(self) -> None:
        node, image = self._node, self._node.image
        lease = node.registration.lease
        if lease != NO_LEASE:
            await self._commit(membership.claim_controller(image, self._me, lease))
        if lease == NO_LEASE or image.controller != self._me:
            self._gone_since_s.clear()  # what it saw as the controller says nothing about later
            return
        target, lost = node.settings.topics.internal_replicas, self._lost()
        decisions = [
            *reconciliation.reconcile(image, self._me),
            membership.raise_level(image, self._me, lost),
            *reconciliation.heal_internal(image, self._me, target),
            *reassignment.finish(image, self._me),
            *reassignment.evacuate(image, self._me, lost),
        ]
        for decision in decisions:
            await self._commit(decision)

    def _lost(self) -> list[int]:
        """Nodes that have been gone for so long that their replicas are made anew elsewhere.

        A controller that begins counts anew, so it takes longer at most.
        """
        image, now_s = self._node.image, self._node.loop.time()
        heal_ms = self._node.settings.cluster.heal_after_ms
        gone = [node for node in sorted(image.directories) if node not in image.nodes]
        self._gone_since_s = {node: self._gone_since_s.get(node, now_s) for node in gone}
        if not heal_ms:
            return []
        return [node for node in gone if now_s - self._gone_since_s[node] >= heal_ms / 1000]

    async def _commit(self, decision: Decision) -> None:
        """What a compare refuses was decided on an image that has changed: its change wakes us again."""
        if decision.operations:
            await self._node.topics.commit(decision, urgent=True)


def _wants_controller(image: Image, topic: Topic) -> bool:
    """Whether the controller should look at a new topic at once; most are as they should be.

    The nodes' own topics get more replicas, and a node that was to have a partition may have died meanwhile.
    """
    return topic.internal or any(
        state.leader not in image.nodes or not all(map(image.nodes.__contains__, state.isr))
        for state in topic.partitions
    )
