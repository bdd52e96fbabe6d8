"""Evidence that this node still leads what it believes to lead.

Appends need none: a write is committed by the other replicas, which follow the new leader once there is one.
Answers that nobody else has a say in do: deliveries of a subscription, heartbeats, committed offsets that are
read. For them the only evidence is the node's own lease. Nobody else is elected before it has ended, so it
counts from before the keep-alive was sent. That followers have fetched lately is none: an elected one may
have begun just now.

Where a partition has one replica nobody else can lead it, and no evidence is asked for: a node that is alone
goes on while its coordination store is in trouble.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from postroad.broker.partition import Partition
from postroad.errors import NotLeaderOrFollower

if TYPE_CHECKING:
    from postroad.broker.node import Node


class Evidence:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._me = node.settings.node.id

    def covers(self, partition: Partition) -> bool:
        """Whether this node leads the partition for certain; only for one that it believes to lead."""
        return partition.leadership is None or self._is_current()

    def check(self, partition: Partition) -> None:
        """Raise NotLeaderOrFollower if another node may lead the partition by now."""
        if partition.leadership is not None and not self._is_current():
            raise NotLeaderOrFollower("This node has lost touch with the cluster: another may lead by now.")

    def _is_current(self) -> bool:
        """The lease has not ended, and the image has heard of what happened before it began."""
        registration, image = self._node.registration, self._node.image
        return (
            registration.is_current(self._node.clock.monotonic_ms())
            and image.revision >= registration.revision
            and self._me in image.nodes
        )
