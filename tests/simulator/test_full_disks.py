"""Nobody waits for a node whose disk is full: it hands over, leaves ISRs, and joins when it has room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from postroad.wire.records import Record, encode_batch
from tests.faults.raw import send_batch
from tests.simulator.simulated_cluster import SimulatedCluster, simulated_cluster

STORAGE_ERROR = 56
HANDED_OVER_S = 1.0
BATCH = encode_batch([Record(0, 1_000, b"key", b"x" * 8192, [])])


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with simulated_cluster(topics_replicas=3) as running:
        running.create_led_by("jobs", 1, 2, 3)
        running.until(lambda: len(running.state("jobs").isr) == 3)
        yield running


def fill(cluster: SimulatedCluster, number: int) -> None:
    drive = cluster.machines[number].drive
    drive.capacity = sum(len(file.content) for _, file in drive.files())


def free(cluster: SimulatedCluster, number: int) -> None:
    cluster.machines[number].drive.capacity = None


def send(cluster: SimulatedCluster, at: int) -> int:
    with cluster.connect(at) as connection:
        return int(send_batch(connection, "jobs", BATCH, acks=-1).error_code)


def test_another_replica_leads_as_soon_as_the_disk_refuses(cluster: SimulatedCluster) -> None:
    fill(cluster, 1)
    assert send(cluster, 1) == STORAGE_ERROR
    cluster.until(lambda: cluster.state("jobs").leader == 2, HANDED_OVER_S)
    assert cluster.state("jobs").isr == (2, 3), "nobody waits for what the full disk can't take"
    cluster.until(lambda: cluster.leads(2, "jobs"))
    assert send(cluster, 2) == 0


def test_it_joins_again_when_there_is_room(cluster: SimulatedCluster) -> None:
    fill(cluster, 1)
    send(cluster, 1)
    cluster.until(lambda: cluster.leads(2, "jobs"))
    send(cluster, 2)
    cluster.run_for(2.0)
    assert cluster.state("jobs").isr == (2, 3)
    free(cluster, 1)
    cluster.until(lambda: len(cluster.state("jobs").isr) == 3)
    assert cluster.replica_end(1, "jobs") == cluster.replica_end(2, "jobs") == 1


def test_a_follower_whose_disk_refuses_is_not_waited_for(cluster: SimulatedCluster) -> None:
    """Not for the time after which it would count as lagging."""
    fill(cluster, 3)
    began = cluster.world.now
    assert send(cluster, 1) == 0
    assert cluster.world.now - began < HANDED_OVER_S
    assert cluster.state("jobs").isr == (1, 2)
    cluster.run_for(2.0)
    assert cluster.state("jobs").isr == (1, 2)
    free(cluster, 3)
    cluster.until(lambda: len(cluster.state("jobs").isr) == 3)


def test_where_all_disks_are_full_leaderships_do_not_go_round_and_round(cluster: SimulatedCluster) -> None:
    for number in (1, 2, 3):
        fill(cluster, number)
    epoch = cluster.state("jobs").leader_epoch
    for _ in range(20):
        assert send(cluster, cluster.state("jobs").leader) != 0
        cluster.run_for(0.4)
    assert cluster.state("jobs").leader_epoch <= epoch + 3, "each node has handed over once"
    for number in (1, 2, 3):
        free(cluster, number)
    cluster.until(lambda: len(cluster.state("jobs").isr) == 3)
    assert send(cluster, cluster.state("jobs").leader) == 0
