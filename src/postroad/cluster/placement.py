"""Which nodes hold a partition: striped over racks, as even as it gets without moving anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import Final

ONE_RACK: Final[Mapping[int, str]] = {}


def place(
    nodes: Sequence[int],
    partitions: range,
    replicas: int,
    start: int,
    racks: Mapping[int, str] = ONE_RACK,
) -> list[tuple[int, ...]]:
    """The replicas of each partition, the preferred leader first.

    Partition p begins `start + p` nodes along a ring in which racks alternate. With a start that differs from
    topic to topic the many small topics don't all land on the first node. With each round of the ring the
    followers begin one node further, so that the partitions of a node that dies fall to many others.
    The replicas of a partition are in as many racks as there are, and no rack has two more than another.
    """
    ring = _ring(nodes, racks)
    assert 0 < replicas <= len(ring)
    striped = len({racks.get(node, "") for node in ring}) > 1
    held = dict.fromkeys(ring, 0)
    placed = []
    for turn in range(start + partitions.start, start + partitions.stop):
        order = _order(ring, turn)
        chosen = _striped(order, replicas, racks, held) if striped else order[:replicas]
        for node in chosen:
            held[node] += 1
        placed.append(tuple(chosen))
    return placed


def replacement(
    beside: Sequence[int],
    taken: Collection[int],
    held: Mapping[int, int],
    racks: Mapping[int, str] = ONE_RACK,
) -> int | None:
    """The node of those in `held` that is best for one more replica, None if all are `taken`.

    One in a rack where none `beside` it is, if there is one; of these the one that holds the fewest.
    """
    used = {racks.get(node, "") for node in beside}
    free = [node for node in held if node not in taken]
    return min(free, key=lambda node: (racks.get(node, "") in used, held[node], node), default=None)


def _ring(nodes: Sequence[int], racks: Mapping[int, str]) -> list[int]:
    by_rack: dict[str, list[int]] = {}
    for node in sorted(nodes):
        by_rack.setdefault(racks.get(node, ""), []).append(node)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [node for nodes_of_round in rounds for node in nodes_of_round if node is not None]


def _order(ring: Sequence[int], turn: int) -> list[int]:
    """All nodes, the leader first, in the order in which they are asked to follow it."""
    round_, first = divmod(turn, len(ring))
    others = [ring[(first + step) % len(ring)] for step in range(1, len(ring))]
    shift = round_ % len(others) if others else 0
    return [ring[first], *others[shift:], *others[:shift]]


def _striped(
    order: Sequence[int], replicas: int, racks: Mapping[int, str], held: Mapping[int, int]
) -> list[int]:
    """The leader, then each time the node that holds the fewest, of the rack with the fewest replicas."""
    chosen, free = [order[0]], list(order[1:])
    taken = Counter([racks.get(order[0], "")])
    while len(chosen) < replicas:
        best = min(free, key=lambda node: (taken[racks.get(node, "")], held[node]))
        free.remove(best)
        chosen.append(best)
        taken[racks.get(best, "")] += 1
    return chosen
