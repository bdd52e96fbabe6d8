"""A plan that spreads replicas and leaders over nodes and racks, and moves as little as it can.

Counts come first: each node holds as many replicas as the others, give or take one, as far as racks allow;
each topic is spread, too; and each is the preferred leader of as many partitions. Then come bytes and load:
where one node stores, copies or leads far more than another, partitions or leaderships are exchanged. Nothing
is moved for less than that: a plan that is carried out leaves nothing to plan while the load stays as it is.

Load is bytes a second, with each message counted as MESSAGE_BYTES more. A replica costs its node that much to
copy; the leader takes all of it from producers and hands it to followers and consumers, so leaderships are
levelled apart from replicas.

What lies on nodes that take no part (they are dead, or being drained) is left where it is.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from postroad.cluster.placement import replacement

UNEVEN: Final = 1.25  # a node with so many times the average gives some of it away
WORTH_BYTES: Final = 64 * 1024 * 1024  # for a smaller difference of what two nodes store nothing is copied
WORTH_LOAD: Final = 1024 * 1024  # a second: for a smaller difference of their load nothing is changed
MESSAGE_BYTES: Final = 1024  # a message costs a node as much as so many bytes do, besides its own
EXCHANGES_MAX: Final = 50  # each copies two partitions: a plan stays one that is done in the end
LOOKED_AT: Final = 40  # of the largest and the smallest partitions of two nodes, for one exchange


class Placed(msgspec.Struct, frozen=True):
    """A partition, and where it lies; the preferred leader comes first."""

    topic: str
    index: int
    replicas: tuple[int, ...]
    size: int = 0  # in bytes, of one replica
    bytes_per_s: float = 0.0  # that are appended to it
    messages_per_s: float = 0.0

    @property
    def load(self) -> float:
        return self.bytes_per_s + MESSAGE_BYTES * self.messages_per_s


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


def rebalance(partitions: Iterable[Placed], racks: Mapping[int, str], replicas: int = 0) -> list[Move]:
    """What to move so that these nodes, each with its rack, hold and lead the same.

    Partitions that have fewer than so many `replicas` get more, as far as there are nodes.
    """
    board = _Board(partitions, racks)
    board.widen(replicas)
    if len(racks) > 1:
        board.spread_racks()
        board.level_replicas()
        board.level_bytes()
        board.level_load()
        board.level_leaders()
        board.level_leaders_load()
    return board.moves()


def without(partitions: Iterable[Placed], racks: Mapping[int, str], leaving: Collection[int]) -> list[Move]:
    """What moves when nodes are drained, to the others of these, each with its rack."""
    stay = {node: rack for node, rack in racks.items() if node not in leaving}
    board = _Board(partitions, stay)
    board.leave(leaving)
    return board.moves()


class _Weights:
    """What partitions weigh, in bytes or in load, and how much of it each node has."""

    def __init__(self, of: Sequence[float], nodes: Iterable[int], worth: float) -> None:
        """`worth`: the least difference between two nodes for which something is moved."""
        self.of = of
        self.of_node: dict[int, float] = dict.fromkeys(sorted(nodes), 0)
        self._worth = worth

    def add(self, number: int, node: int) -> None:
        if node in self.of_node:
            self.of_node[node] += self.of[number]

    def remove(self, number: int, node: int) -> None:
        if node in self.of_node:
            self.of_node[node] -= self.of[number]

    def ascending(self) -> list[int]:
        return sorted(self.of_node, key=lambda node: self.of_node[node])

    def extremes(self) -> tuple[int, int]:
        """The nodes that have the most and the least."""
        by_weight = self.ascending()
        return by_weight[-1], by_weight[0]

    def is_uneven(self, most: int, least: int) -> bool:
        gap = self.of_node[most] - self.of_node[least]
        return gap >= self._worth and self.of_node[most] > UNEVEN * self._average

    def stays_level(self, one: int, other: int, given: int, taken: int) -> bool:
        """Whether the nodes may exchange two partitions, the first one for the second, and be no more uneven
        than they are, or than is worth a move."""
        shift = self.of[given] - self.of[taken]
        before = abs(self.of_node[one] - self.of_node[other])
        after = abs(self.of_node[one] - self.of_node[other] - 2 * shift)
        heavier = max(self.of_node[one] - shift, self.of_node[other] + shift)
        return after <= max(before, self._worth) or heavier <= UNEVEN * self._average

    @property
    def _average(self) -> float:
        return sum(self.of_node.values()) / len(self.of_node)


class _Board:
    """All partitions while the plan is made."""

    def __init__(self, partitions: Iterable[Placed], racks: Mapping[int, str]) -> None:
        self._racks = racks
        self._before = list(partitions)
        self._after = [list(placed.replicas) for placed in self._before]
        # by node: what it holds, as numbers of partitions, by topic
        self._held: dict[int, dict[str, dict[int, None]]] = {node: {} for node in sorted(racks)}
        self._count = dict.fromkeys(sorted(racks), 0)
        self._bytes = _Weights([placed.size for placed in self._before], racks, WORTH_BYTES)
        self._load = _Weights([placed.load for placed in self._before], racks, WORTH_LOAD)
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

    def widen(self, replicas: int) -> None:
        """Partitions have at least so many replicas."""
        for number, after in enumerate(self._after):
            while len(after) < replicas:
                chosen = replacement(after, after, self._count, self._racks)
                if chosen is None:
                    break
                after.append(chosen)
                self._take(number, chosen)

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
        """Nodes that store far more than the average exchange partitions with those that store the least."""
        self._level(self._bytes)

    def level_load(self) -> None:
        """The same for what they copy a second, as long as bytes stay level."""
        self._level(self._load, self._bytes)

    def _level(self, weights: _Weights, kept: _Weights | None = None) -> None:
        for _ in range(EXCHANGES_MAX):
            most, least = weights.extremes()
            if not weights.is_uneven(most, least) or not self._exchange(weights, most, least, kept):
                return

    def _exchange(self, weights: _Weights, most: int, least: int, kept: _Weights | None) -> bool:
        """Exchange the two partitions that bring the nodes closest together; False if none do."""
        gap = weights.of_node[most] - weights.of_node[least]
        best = min(
            (
                (abs(gap - 2 * (weights.of[given] - weights.of[taken])), given, taken)
                for given in self._sorted(weights, most, least)[-LOOKED_AT:]
                for taken in self._sorted(weights, least, most)[:LOOKED_AT]
                if kept is None or kept.stays_level(most, least, given, taken)
            ),
            default=None,
        )
        if best is None or best[0] >= 0.9 * gap:
            return False
        _, given, taken = best
        self._move(given, most, least)
        self._move(taken, least, most)
        return True

    def _sorted(self, weights: _Weights, node: int, other: int) -> list[int]:
        """What the node could give to the other, the lightest first."""
        held = (number for numbers in self._held[node].values() for number in numbers)
        fitting = [n for n in held if other not in self._after[n] and self._fits(n, node, other)]
        return sorted(fitting, key=lambda number: (weights.of[number], number))

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

    def level_leaders_load(self) -> None:
        """Nodes whose leaderships carry far more than the average exchange some, and no more than one node
        more or less leads than before."""
        led = _Weights([placed.load for placed in self._before], self._racks, WORTH_LOAD)
        for number, after in enumerate(self._after):
            led.add(number, after[0])
        for _ in range(EXCHANGES_MAX):
            most, least = led.extremes()
            if not led.is_uneven(most, least):
                return
            if not any(
                self._exchange_leaders(led, most, other) for other in led.ascending() if other != most
            ):
                return

    def _exchange_leaders(self, led: _Weights, most: int, least: int) -> bool:
        """Exchange the two leaderships that bring the nodes closest together; False if none do."""
        gap = led.of_node[most] - led.of_node[least]
        best = min(
            (
                (abs(gap - 2 * (led.of[given] - led.of[taken])), given, taken)
                for given in self._leads(most, least)
                for taken in self._leads(least, most)
            ),
            default=None,
        )
        if best is None or best[0] >= 0.9 * gap:
            return False
        for number, source, target in ((best[1], most, least), (best[2], least, most)):
            self._prefer(number, target)
            led.remove(number, source)
            led.add(number, target)
        return True

    def _leads(self, node: int, other: int) -> list[int]:
        """Partitions whose preferred leader is the node, and could be the other."""
        return [number for number, after in enumerate(self._after) if after[0] == node and other in after]

    # --- helpers

    def _take(self, number: int, node: int) -> None:
        if node in self._held:
            self._held[node].setdefault(self._before[number].topic, {})[number] = None
            self._count[node] += 1
            self._bytes.add(number, node)
            self._load.add(number, node)

    def _move(self, number: int, source: int, target: int) -> None:
        after = self._after[number]
        after[after.index(source)] = target
        if source in self._held:
            del self._held[source][self._before[number].topic][number]
            self._count[source] -= 1
            self._bytes.remove(number, source)
            self._load.remove(number, source)
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


def _walked(came: Mapping[int, tuple[int, int]], source: int, node: int) -> list[tuple[int, int]]:
    path = []
    while node != source:
        number, before = came[node]
        path.append((number, node))
        node = before
    return path
