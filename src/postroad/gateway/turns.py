"""Which of a subscription's nodes are asked next, so that queues on all of them move on alike.

A node that has less than is wanted is always asked: it answers when something comes. Of those that have more,
as many are asked as there are callers, and they take turns: what a second one gave would be for nobody.
"""

from __future__ import annotations

from collections.abc import Container, Iterable


class Turns:
    def __init__(self) -> None:
        self._full: dict[int, None] = {}  # nodes that gave all that was wanted, in turn

    def next(self, nodes: Iterable[int], under_way: Container[int], callers: int) -> list[int]:
        """Nodes to ask now, without those that are being asked."""
        nodes = list(nodes)
        full = [node for node in self._full if node in nodes]
        free = callers - sum(node in under_way for node in full)
        turn = [node for node in full if node not in under_way][: max(0, free)]
        for node in turn:
            del self._full[node]
            self._full[node] = None
        return [n for n in nodes if n in turn or (n not in under_way and n not in self._full)]

    def may_have(self, nodes: Iterable[int], under_way: Container[int]) -> bool:
        """Whether a node that is not being asked is likely to have messages."""
        return any(node in self._full and node not in under_way for node in nodes)

    def has_rivals(self, node: int) -> bool:
        """Whether it is this node's turn, while others have messages as well: it should not wait for any."""
        return node in self._full and len(self._full) > 1

    def answered(self, node: int, is_full: bool) -> None:
        """What the node gave was all that was wanted, or less."""
        if not is_full:
            self._full.pop(node, None)
        elif node not in self._full:
            self._full[node] = None
