"""A plan that spreads replicas and leaders over nodes and racks, and moves as little as it can.

Counts come first: each node holds as many replicas as the others, give or take one, as far as racks allow;
each topic is spread, too; and each is the preferred leader of as many partitions. Then comes load: where one
node holds far more bytes than another, partitions are exchanged. Nothing is moved for less than that.

What lies on nodes that take no part (they are dead, or being drained) is left where it is.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from postroad.cluster.placement import replacement

UNEVEN: Final = 1.25  # a node with so many times the bytes of the average gives some of them away
EXCHANGES_MAX: Final = 50  # each copies two partitions: a plan stays one that is done in the end
LOOKED_AT: Final = 40  # of the largest and the smallest partitions of two nodes, for one exchange


class Placed(msgspec.Struct, frozen=True):
    """A partition, and where it lies; the preferred leader comes first."""

    topic: str
    index: int
    replicas: tuple[int, ...]
    size: int = 0  # in bytes, of one replica


class Move(msgspec.Struct, frozen=True):
    """What a plan does to one partition."""

    topic: str
    index: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    size: int = 0

    @property
    def copied(self) -> int:
        """How many bytes are copied: none where only the preferred leader changes."""
        return len(set(self.after) - set(self.before)) * self.size


def rebalance(partitions: Iterable[Placed], racks: Mapping[int, str]) -> list[Move]:
    """What to move so that these nodes, each with its rack, hold and lead the same."""
    board = _Board(partitions, racks)
    if len(racks) > 1:
        board.spread_racks()
        board.level_replicas()
        board.level_bytes()
        board.level_leaders()
    return board.moves()


def without(partitions: Iterable[Placed], racks: Mapping[int, str], leaving: Collection[int]) -> list[Move]:
    """What moves when nodes are drained, to the others of these, each with its rack."""
    stay = {node: rack for node, rack in racks.items() if node not in leaving}
    board = _Board(partitions, stay)
    board.leave(leaving)
    return board.moves()


class _Board:
    """All partitions while the plan is made."""

    def __init__(self, partitions: Iterable[Placed], racks: Mapping[int, str]) -> None:
        self._racks = racks
        self._before = list(partitions)
        self._after = [list(placed.replicas) for placed in self._before]
        # by node: what it holds, as numbers of partitions, by topic
        self._held: dict[int, dict[str, dict[int, None]]] = {node: {} for node in sorted(racks)}
        self._count = dict.fromkeys(sorted(racks), 0)
        self._bytes = dict.fromkeys(sorted(racks), 0)
        for number, placed in enumerate(self._before):
            for node in placed.replicas:
                self._take(number, node)

    def moves(self) -> list[Move]:
        return [
            Move(placed.topic, placed.index, placed.replicas, tuple(after), placed.size)
            for placed, after in zip(self._before, self._after, strict=True)
            if tuple(after) != placed.replicas
        ]

    # --- steps

    def leave(self, leaving: Collection[int]) -> None:
        """Replicas go from these nodes to others, where there are any."""
        for number, after in enumerate(self._after):
            for node in [node for node in after if node in leaving]:
                stay = [other for other in after if other not in leaving]
                chosen = replacement(stay, after, self._count, self._racks)
                if chosen is not None:
                    self._move(number, node, chosen)

    def spread_racks(self) -> None:
        """Partitions with two replicas in one rack use racks where they have none."""
        for number, after in enumerate(self._after):
            for node in sorted(after, key=lambda node: -self._count.get(node, 0)):
                beside = [other for other in after if other != node]
                if node not in self._racks or self._racks[node] not in self._racks_of(beside):
                    continue
                chosen = replacement(beside, after, self._count, self._racks)
                if chosen is not None and self._racks[chosen] not in self._racks_of(beside):
                    self._move(number, node, chosen)

    def level_replicas(self) -> None:
        """No node holds two more than another, unless racks want it."""
        while self._level_once():
            pass

    def _level_once(self) -> bool:
        by_count = sorted(self._count, key=lambda node: (self._count[node], node))
        for source in reversed(by_count):
            for target in by_count:
                if self._count[source] - self._count[target] < 2:
                    break
                number = self._movable(source, target)
                if number is not None:
                    self._move(number, source, target)
                    return True
        return False

    def _movable(self, source: int, target: int) -> int | None:
        """A partition that the source can give to the target, of the topic that is spread worst."""
        mine, theirs = self._held[source], self._held[target]
        for topic in sorted(mine, key=lambda name: (len(theirs.get(name, ())) - len(mine[name]), name)):
            for number in mine[topic]:
                if number not in theirs.get(topic, {}) and self._fits(number, source, target):
                    return number
        return None

    def level_bytes(self) -> None:
        """Nodes with far more bytes than the average exchange partitions with those that have the fewest."""
        average = sum(self._bytes.values()) / len(self._bytes)
        for _ in range(EXCHANGES_MAX):
            most = max(self._bytes, key=lambda node: self._bytes[node])
            least = min(self._bytes, key=lambda node: self._bytes[node])
            if self._bytes[most] <= UNEVEN * average or not self._exchange(most, least):
                return

    def _exchange(self, most: int, least: int) -> bool:
        """Exchange the two partitions that bring the nodes closest together; False if none do."""
        gap = self._bytes[most] - self._bytes[least]
        large = self._by_size(most, least)[-LOOKED_AT:]
        small = self._by_size(least, most)[:LOOKED_AT]
        best = min(
            ((abs(gap - 2 * (self._size(a) - self._size(b))), a, b) for a in large for b in small),
            default=None,
        )
        if best is None or best[0] >= 0.9 * gap:
            return False
        _, given, taken = best
        self._move(given, most, least)
        self._move(taken, least, most)
        return True

    def _by_size(self, node: int, other: int) -> list[int]:
        """What the node could give to the other, the smallest first."""
        held = (number for numbers in self._held[node].values() for number in numbers)
        fitting = [n for n in held if other not in self._after[n] and self._fits(n, node, other)]
        return sorted(fitting, key=lambda number: (self._size(number), number))

    def level_leaders(self) -> None:
        """No node is the preferred leader of two more partitions than another that could be."""
        leads = Counter(dict.fromkeys(self._racks, 0))
        leads.update(after[0] for after in self._after if after[0] in self._racks)
        while True:
            for node in sorted(self._racks, key=lambda node: (-leads[node], node)):
                path = self._path(node, leads)
                if path:
                    break
            else:
                return
            for number, to in path:
                leads[self._after[number][0]] -= 1
                leads[to] += 1
                self._prefer(number, to)

    def _path(self, source: int, leads: Mapping[int, int]) -> list[tuple[int, int]]:
        """Partitions, each with its new leader, that take one leadership from the source to a node with two
        fewer, over as few others as it takes."""
        edges: dict[int, dict[int, int]] = {}
        for number, after in enumerate(self._after):
            for node in after[1:]:
                if node in self._racks:
                    edges.setdefault(after[0], {}).setdefault(node, number)
        came: dict[int, tuple[int, int]] = {}
        queue = deque([source])
        while queue:
            node = queue.popleft()
            if leads[node] <= leads[source] - 2:
                return _walked(came, source, node)
            for other, number in sorted(edges.get(node, {}).items()):
                if other not in came and other != source:
                    came[other] = number, node
                    queue.append(other)
        return []

    # --- helpers

    def _take(self, number: int, node: int) -> None:
        if node in self._held:
            self._held[node].setdefault(self._before[number].topic, {})[number] = None
            self._count[node] += 1
            self._bytes[node] += self._size(number)

    def _move(self, number: int, source: int, target: int) -> None:
        after = self._after[number]
        after[after.index(source)] = target
        if source in self._held:
            del self._held[source][self._before[number].topic][number]
            self._count[source] -= 1
            self._bytes[source] -= self._size(number)
        self._take(number, target)

    def _prefer(self, number: int, node: int) -> None:
        after = self._after[number]
        position = after.index(node)
        after[0], after[position] = node, after[0]

    def _fits(self, number: int, source: int, target: int) -> bool:
        """Whether the partition is in as many racks when it moves."""
        racks = self._racks_of([node for node in self._after[number] if node != source])
        return self._racks[target] not in racks or self._racks.get(source) in racks

    def _racks_of(self, nodes: Sequence[int]) -> set[str]:
        return {self._racks[node] for node in nodes if node in self._racks}

    def _size(self, number: int) -> int:
        return self._before[number].size


def _walked(came: Mapping[int, tuple[int, int]], source: int, node: int) -> list[tuple[int, int]]:
    path = []
    while node != source:
        number, before = came[node]
        path.append((number, node))
        node = before
    return path
