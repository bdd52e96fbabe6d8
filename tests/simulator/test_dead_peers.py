"""Nodes that die are found by their peers, long before their leases end; nodes that live are left alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.simulator.simulated_cluster import LEASE_MS, SimulatedCluster, host_of, simulated_cluster

FOUND_S = 0.5
assert FOUND_S * 1000 < LEASE_MS


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with simulated_cluster(topics_replicas=3) as running:
        running.create_led_by("jobs", 1, 2, 3)
        running.until(running.is_complete)
        yield running


def lose_connections(cluster: SimulatedCluster, number: int) -> None:
    for other in cluster.machines.keys() - {number}:
        cluster.network.reset_between(host_of(number), host_of(other))


def test_another_node_leads_before_the_lease_of_a_killed_one_ends(cluster: SimulatedCluster) -> None:
    cluster.kill(1)
    cluster.until(lambda: cluster.state("jobs").leader in (2, 3), FOUND_S)


def test_a_node_that_still_takes_connections_while_it_dies_is_found_dead(cluster: SimulatedCluster) -> None:
    lose_connections(cluster, 1)
    cluster.run_for(0.02)  # peers have asked once, and were answered
    cluster.kill(1)
    cluster.until(lambda: cluster.state("jobs").leader in (2, 3), FOUND_S)


def test_a_node_that_lost_its_connections_and_lives_leads_on(cluster: SimulatedCluster) -> None:
    epoch = cluster.state("jobs").leader_epoch
    lose_connections(cluster, 1)
    cluster.run_for(LEASE_MS / 1000)
    assert cluster.state("jobs").leader == 1
    assert cluster.state("jobs").leader_epoch == epoch


def test_a_node_that_stops_is_not_taken_for_dead(
    cluster: SimulatedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    process = cluster.machines[1].process
    assert process is not None
    stopping = process.start(cluster.nodes[1].stop())
    cluster.until(stopping.done)
    cluster.run_for(1.0)
    assert "is dead" not in caplog.text
