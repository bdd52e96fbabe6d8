"""`Orders`: changes that a group's coordinator asks other leaders for, so that none is made too late.

A coordinator may be cut off in the middle of a change. Its client asks the next one, which seeks or deletes;
when the first one's question comes through at last, members have gone on from there, and it must not be made
again. So each question has a number: the leader epoch in which its node coordinates the group, and how
many that node has asked by then. A leader makes no change after a later one, nor one of a former epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from postroad.errors import NotCoordinator
from postroad.wire.peer import NO_EPOCH

if TYPE_CHECKING:
    from postroad.broker.node import Node


class Order(NamedTuple):
    epoch: int = NO_EPOCH
    number: int = 0


class Orders:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._given = 0
        self._latest: dict[int, Order] = {}  # that came here, by the partition of `__consumer_offsets`

    def give(self, group_id: str) -> Order:
        """For a change that this node wants as the group's coordinator. Raises NotCoordinator."""
        self._node.groups.check_coordinates(group_id)
        self._given += 1
        return Order(self._node.groups.epoch_of(group_id), self._given)

    def admit(self, group_id: str, order: Order) -> None:
        """Raises NotCoordinator if what is asked for comes too late. A node of an earlier version says
        nothing of that."""
        if order.epoch == NO_EPOCH:
            return
        index, current = self._node.groups.index_of(group_id), self._node.groups.epoch_of(group_id)
        if order <= max(self._latest.get(index, Order()), Order(current)):
            raise NotCoordinator("Another request, or another coordinator, came before this change.")
        self._latest[index] = order
