"""Which replica a consumer should read, so that its messages stay in its rack (KIP-392).

The leader says so, and keeps to replicas that are in sync: they have all that is committed, or will have it
in a moment. A consumer without a rack, or in a rack without such a replica, reads from the leader.
"""

from __future__ import annotations

from postroad.cluster import keys
from postroad.cluster.image import Image
from postroad.cluster.keys import PartitionState


def replica_near(image: Image, state: PartitionState, index: int, rack: str) -> int | None:
    """The replica for a consumer in this rack; None: the leader, which asks.

    Where several are in the rack, the partitions of a topic are spread over them.
    """
    leader = image.nodes.get(state.leader)
    if not rack or leader is None or leader.rack == rack:
        return None
    near = [node for node in sorted(state.isr) if _reads(image, node) and image.nodes[node].rack == rack]
    return near[index % len(near)] if near else None


def _reads(image: Image, node: int) -> bool:
    entry = image.nodes.get(node)
    return entry is not None and entry.reads and entry.state == keys.SERVING
