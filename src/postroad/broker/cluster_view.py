"""The cluster as clients are told of it: the nodes they may ask, who leads a partition, who leads instead.

A node that answers offers itself whatever the coordination store says of it. Another node is offered from the
moment on that it serves until it is gone; one that is starting would refuse connections.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from postroad.cluster import keys
from postroad.cluster.image import NO_LEADER, Image, NodeEntry, Topic
from postroad.cluster.keys import PartitionState
from postroad.errors import ApiError, FencedLeaderEpoch, LeaderNotAvailable, NotLeaderOrFollower
from postroad.wire.leader_hints import CurrentLeader, NodeEndpoint

# Errors that a client gets because it asked the wrong node, or has heard of another leader (KIP-951).
WRONG_LEADER: Final = (NotLeaderOrFollower.code, FencedLeaderEpoch.code)


class Leadership(NamedTuple):
    """A partition's leader as metadata tell it: NO_LEADER comes with an error."""

    error: int
    leader: int


LEADERLESS: Final = Leadership(LeaderNotAvailable.code, NO_LEADER)


class ClusterView:
    """What the image says, seen by the node whose entry is `me`, told to a client of the listener."""

    __slots__ = ("_image", "_listener", "_me")

    def __init__(self, image: Image, me: NodeEntry, listener: str) -> None:
        self._image = image
        self._me = me
        self._listener = listener

    def nodes(self) -> list[NodeEntry]:
        """The nodes that clients may ask, in the order of their ids."""
        entries = {**self._image.nodes, self._me.id: self._me}
        return [entry for _, entry in sorted(entries.items()) if self._is_offered(entry)]

    def node(self, node_id: int) -> NodeEntry | None:
        """The node, if clients may ask it."""
        entry = self._me if node_id == self._me.id else self._image.nodes.get(node_id)
        return None if entry is None or not self._is_offered(entry) else entry

    def address(self, entry: NodeEntry) -> tuple[str, int]:
        """Host and port at which this client finds the node."""
        return entry.address(self._listener)

    def controller(self) -> int:
        """The node that reconciles the cluster; while nobody does, this one.

        Clients send it their administrative requests, which any node can take.
        """
        controller = self._image.controller
        return self._me.id if controller is None or self.node(controller) is None else controller

    def leadership(self, state: PartitionState) -> Leadership:
        """LEADER_NOT_AVAILABLE while nobody leads, or whoever does is gone and nobody was elected yet."""
        if self.node(state.leader) is None:
            return LEADERLESS
        return Leadership(0, state.leader)

    def offline(self, state: PartitionState) -> list[int]:
        """The replicas whose nodes are not registered."""
        return [node for node in state.replicas if node not in self._image.nodes and node != self._me.id]

    def _is_offered(self, entry: NodeEntry) -> bool:
        return entry.id == self._me.id or entry.state != keys.STARTING

    # --- who leads instead (KIP-951)

    def leader_hint(self, topic: str | bytes, index: int, error: int) -> CurrentLeader | None:
        """The leader that a client should ask after this error; None if none is known.

        This node is named only to a client that was fenced because it knows an older epoch.
        """
        found = self._topic(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        state = found.partitions[index]
        if self.node(state.leader) is None:
            return None
        if state.leader == self._me.id and error != FencedLeaderEpoch.code:
            return None
        return CurrentLeader(state.leader, state.leader_epoch)

    def hint_after(self, topic_id: bytes, index: int, *errors: ApiError | None) -> CurrentLeader | None:
        """The leader to ask instead, if one of the errors says that it was not this node."""
        for error in errors:
            if error is not None and error.code in WRONG_LEADER:
                return self.leader_hint(topic_id, index, error.code)
        return None

    def endpoints(self, hints: Iterable[CurrentLeader]) -> list[NodeEndpoint]:
        """Where these leaders are, each once."""
        entries = (self.node(node_id) for node_id in sorted({hint.node_id for hint in hints}))
        return [
            NodeEndpoint(entry.id, *self.address(entry), entry.rack or None)
            for entry in entries
            if entry is not None
        ]

    def _topic(self, topic: str | bytes) -> Topic | None:
        if isinstance(topic, bytes):
            return self._image.topics_by_id.get(topic)
        return self._image.topics.get(topic)
