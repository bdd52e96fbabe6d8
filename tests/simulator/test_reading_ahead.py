"""Followers go on copying while their disks sync, and promise what is synced."""

from __future__ import annotations

from tests.simulator.simulated_cluster import simulated_cluster

FOLLOWER = 3


def test_a_follower_copies_on_while_it_syncs() -> None:
    with simulated_cluster(cluster_read_ahead_bytes=0) as cluster:
        cluster.create_led_by("jobs", 1, 2, FOLLOWER)
        cluster.publish("jobs", b"zero")
        leader, copy = cluster.partition(1, "jobs"), cluster.replica(FOLLOWER, "jobs")
        assert copy is not None
        drive = cluster.machines[FOLLOWER].drive
        drive.stall_rate, drive.stall_s = 1.0, (1.0, 1.0)
        cluster.publish("jobs", b"one", b"two", b"three", acks=1)
        cluster.until(lambda: copy.log.written_offset == 4)
        assert copy.log.synced_offset == leader.high_watermark == 1
        cluster.until(lambda: leader.high_watermark == 4)
        assert copy.log.synced_offset == 4
