"""Which replica a consumer is sent to: one in its rack that is in sync, serves and knows how."""

from __future__ import annotations

from postroad.cluster import keys
from postroad.cluster.image import Image, NodeEntry
from postroad.cluster.keys import PartitionState
from postroad.cluster.nearby import replica_near


def entry(node: int, rack: str, state: str = keys.SERVING, reads: bool = True) -> NodeEntry:
    return NodeEntry(node, "host", 9092, "i", "d", state, rack, keys.LEVEL, reads)


def image_of(*entries: NodeEntry) -> Image:
    image = Image()
    image.nodes.update({each.id: each for each in entries})
    return image


THREE = image_of(entry(1, "a"), entry(2, "b"), entry(3, "b"), entry(4, "c"))
STATE = PartitionState(1, 0, (1, 2, 3, 4), (1, 2, 3))


def test_a_replica_in_the_rack_is_named_and_partitions_are_spread_over_them() -> None:
    assert [replica_near(THREE, STATE, index, "b") for index in range(4)] == [2, 3, 2, 3]


def test_the_leader_serves_its_own_rack_and_those_without_a_replica_in_sync() -> None:
    for rack in ("a", "", "c", "elsewhere"):
        assert replica_near(THREE, STATE, 0, rack) is None
    assert replica_near(image_of(entry(2, "b")), STATE, 0, "b") is None, "its leader is gone"


def test_nodes_that_stop_or_start_or_are_older_are_not_named() -> None:
    for second in (
        entry(2, "b", keys.DRAINING),
        entry(2, "b", keys.STARTING),
        entry(2, "b", reads=False),
    ):
        assert replica_near(image_of(entry(1, "a"), second), STATE, 0, "b") is None


def test_an_entry_of_an_older_version_says_that_consumers_can_not_read_there() -> None:
    value = keys.decode("nodes/1", b'{"host":"h","port":1,"incarnation":"i","rack":"b"}', keys.NodeValue)
    assert not value.reads
