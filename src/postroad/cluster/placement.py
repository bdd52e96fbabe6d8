"""Which nodes hold a partition: round robin, as even as it gets without moving anything."""

from __future__ import annotations

from collections.abc import Sequence


def place(nodes: Sequence[int], partitions: range, replicas: int, start: int) -> list[tuple[int, ...]]:
    """The replicas of each partition, the preferred leader first.

    Partition p begins `start + p` nodes along the sorted list and goes on from there. With a start that
    differs from topic to topic the many small topics don't all land on the first node.
    """
    ring = sorted(nodes)
    assert 0 < replicas <= len(ring)
    return [
        tuple(ring[(start + partition + step) % len(ring)] for step in range(replicas))
        for partition in partitions
    ]
