"""`Orphans`: partitions whose leader died a moment ago. Metadata name no leader for them yet (docs/adr/0018).

librdkafka dissolves its handle of a node as soon as metadata list it no more. If the same answer names the
next leader of a partition, that is lost now and then between the two, and the client waits for a timer of a
second. So it is told of the death first, and of the successor when it asks again a tenth of a second later.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from postroad.cluster.image import Changes

PAUSE_S: Final = 0.075  # librdkafka asks again at once, and then after 0.1 s, at least 0.08

NONE: Final[Container[tuple[bytes, int]]] = frozenset()


class Orphans:
    def __init__(self) -> None:
        self._died_s: dict[int, float] = {}
        self._left_until_s: dict[tuple[bytes, int], float] = {}

    def changed(self, changes: Changes, now_s: float) -> None:
        """The image has changed: nodes may be gone, and partitions may have been given other leaders."""
        if self._died_s:
            self._forget(now_s)
        for node in changes.nodes_changed:
            if node.after is None:
                self._died_s[node.id] = now_s
        if self._died_s:
            for change in changes.partitions:
                self._note(change.topic.id, change.index, change.before.leader, change.after.leader)

    def _note(self, topic_id: bytes, index: int, before: int, after: int) -> None:
        if before != after and before in self._died_s:
            self._left_until_s[topic_id, index] = self._died_s[before] + PAUSE_S

    def _forget(self, now_s: float) -> None:
        self._died_s = {node: at_s for node, at_s in self._died_s.items() if now_s < at_s + PAUSE_S}
        self._left_until_s = {key: at_s for key, at_s in self._left_until_s.items() if now_s < at_s}

    def has_just_died(self, node: int, now_s: float) -> bool:
        return node in self._died_s and now_s < self._died_s[node] + PAUSE_S

    def at(self, now_s: float) -> Container[tuple[bytes, int]]:
        """Topic id and index of each partition that has been given another leader already."""
        if not self._left_until_s:
            return NONE
        self._forget(now_s)
        return self._left_until_s
