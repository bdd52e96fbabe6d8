"""A leader that resigns answers nobody as if it led."""

from __future__ import annotations

from postroad.errors import NotLeaderOrFollower
from postroad.wire.messages import list_offsets
from tests.simulator.simulated_cluster import host_of, simulated_cluster

LATEST = -1


def test_who_waits_for_the_end_of_a_log_is_told_that_its_leader_resigned() -> None:
    """What the leader alone has is not committed, so the question for the end waits. Afterwards the old
    leader no longer knows whether others have shown a higher end."""
    with simulated_cluster(cluster_replica_lag_ms=1000) as cluster:
        cluster.create_led_by("jobs", 1, 2, 3)
        cluster.publish("jobs", b"one")
        for other in (2, 3):
            cluster.network.cut(host_of(1), host_of(other))
        cluster.publish("jobs", b"two", acks=1)
        asked = list_offsets.ListOffsetsPartition(0, -1, LATEST)
        topic = list_offsets.ListOffsetsTopic("jobs", [asked])
        answer = cluster.call(1, list_offsets, 5, list_offsets.ListOffsetsRequest(-1, 0, [topic]))
        found = answer.topics[0].partitions[0]
        assert (found.error_code, found.offset) == (NotLeaderOrFollower.code, -1)
        cluster.until(lambda: cluster.state("jobs").leader != 1)
