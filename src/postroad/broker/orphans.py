"""`Orphans`: partitions whose leader went a moment ago, and what metadata say meanwhile (docs/adr/0018).

librdkafka dissolves its handle of a node as soon as metadata no longer list it. If the same answer names the
next leader of a partition, that is lost now and then between the two, and the client waits for a timer of a
second. What helps depends on how the node went:

- It was found dead. Connections to it have ended, and clients ask until they are told of a leader. So they
  are told of the death first, and of the successor when they ask again a tenth of a second later.
- It fell silent, and its lease ran out. A client asks once, when a request has timed out, and again only when
  its timer runs out. So it is told of the successor at once, and the node stays listed for a moment: the
  client moves its partitions while it still has the handle.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final

from postroad.cluster import keys
from postroad.cluster.image import Changes, NodeChange, NodeEntry

PAUSE_S: Final = 0.075  # librdkafka asks again at once, and then after 0.1 s, at least 0.08
LISTED_S: Final = 3.0  # clients whose requests time out a little later than a lease ask within it

NONE: Final[Container[tuple[bytes, int]]] = frozenset()


class Orphans:
    def __init__(self, is_refusing: Callable[[int], bool]) -> None:
        """`is_refusing`: whether a node has refused a connection a moment ago."""
        self._is_refusing = is_refusing
        self._died_s: dict[int, float] = {}
        self._left_until_s: dict[tuple[bytes, int], float] = {}
        self._silent: dict[int, tuple[NodeEntry, float]] = {}  # and until when it is listed

    def changed(self, changes: Changes, now_s: float) -> list[NodeEntry]:
        """The image has changed: nodes may be gone, and partitions may have been given other leaders.

        Returns the nodes that are taken for silent from now on.
        """
        if self._died_s or self._silent:
            self._forget(now_s)
        for node in changes.nodes_changed:
            self._note_node(node, now_s)
        if self._died_s:
            for change in changes.partitions:
                self._note(change.topic.id, change.index, change.before.leader, change.after.leader)
        return [node.before for node in changes.nodes_changed if node.before and node.id in self._silent]

    def found_dead(self, node: int) -> None:
        """It was taken for silent, and listens no more: it is not listed any longer."""
        self._silent.pop(node, None)

    def _note_node(self, node: NodeChange, now_s: float) -> None:
        self._silent.pop(node.id, None)
        if node.after is not None:
            return
        if node.before is None or node.before.state != keys.SERVING or self._is_refusing(node.id):
            self._died_s[node.id] = now_s
        else:
            self._silent[node.id] = (node.before, now_s + LISTED_S)

    def _note(self, topic_id: bytes, index: int, before: int, after: int) -> None:
        if before != after and before in self._died_s:
            self._left_until_s[topic_id, index] = self._died_s[before] + PAUSE_S

    def _forget(self, now_s: float) -> None:
        self._died_s = {node: at_s for node, at_s in self._died_s.items() if now_s < at_s + PAUSE_S}
        self._left_until_s = {key: at_s for key, at_s in self._left_until_s.items() if now_s < at_s}
        self._silent = {node: found for node, found in self._silent.items() if now_s < found[1]}

    def has_just_died(self, node: int, now_s: float) -> bool:
        return node in self._died_s and now_s < self._died_s[node] + PAUSE_S

    def at(self, now_s: float) -> Container[tuple[bytes, int]]:
        """Topic id and index of each partition that has been given another leader already."""
        if not self._left_until_s:
            return NONE
        self._forget(now_s)
        return self._left_until_s

    def silent_at(self, now_s: float) -> list[NodeEntry]:
        """The nodes that are gone, and listed all the same."""
        return [entry for entry, until_s in self._silent.values() if now_s < until_s]
