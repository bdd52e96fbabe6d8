"""A hold: for a moment no transaction that this node coordinates ends, so that a backup can cut all logs.

A backup notes where each log ends, on one node after the other. If a transaction ended meanwhile its marker
could lie before the cut in one partition and behind it in another, and what was committed as a whole would be
restored in part. While the hold lasts verdicts wait; those that were given before have been written
everywhere when `hold` returns. It ends by itself: a backup that has died holds up nobody for long.

A coordinator that is loaded or leaves meanwhile breaks the hold: another node may have let a transaction end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from postroad.errors import ConcurrentTransactions, CoordinatorLoadInProgress, RequestTimedOut

if TYPE_CHECKING:
    from postroad.broker.node import Node
    from postroad.broker.transactions.coordinator import Coordinator

HOLD_MS_MAX: Final = 10_000  # clients wait for their commits meanwhile
QUIET_S: Final = 3.0  # for what is being ended; a participant may be away
LOOK_S: Final = 0.005


class Hold:
    """At most one at a time on a node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._name = ""
        self._held: list[Coordinator] = []
        self._timer: asyncio.TimerHandle | None = None

    async def hold(self, name: str, hold_ms: int) -> None:
        """No transaction ends from now on, and none is being ended. Raises ApiError if that can't be had."""
        if self._name not in ("", name):
            raise ConcurrentTransactions("Another backup holds the transactions of this node.")
        found = self._node.transactions.all()
        for coordinator in found:
            coordinator.check_loaded()
        self._end()
        self._name, self._held = name, found
        for coordinator in found:
            coordinator.hold()
        self._timer = self._node.loop.call_later(min(hold_ms, HOLD_MS_MAX) / 1000, self._end)
        deadline = self._node.loop.time() + QUIET_S
        while any(coordinator.is_ending for coordinator in found):
            if self._node.loop.time() >= deadline:
                self._end()
                raise RequestTimedOut("Transactions that are being ended have not ended in time.")
            await asyncio.sleep(LOOK_S)
        if self._name != name:
            raise CoordinatorLoadInProgress("The hold was over before it began.")

    def release(self, name: str) -> bool:
        """Whether the hold of this name has lasted until now; it is over."""
        unbroken = bool(name) and self._name == name and self._node.transactions.all() == self._held
        unbroken = unbroken and all(coordinator.is_held for coordinator in self._held)
        if self._name == name:
            self._end()
        return unbroken

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        held, self._held, self._name = self._held, [], ""
        for coordinator in held:
            coordinator.release()
