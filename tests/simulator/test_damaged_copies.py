"""A replica that finds damage in its copy leads no more, and copies the log anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.raw import fetch_at
from tests.simulator.simulated_cluster import SimulatedCluster, simulated_cluster

CORRUPT_MESSAGE = 2
VALUES = [b"%d" % number * 50 for number in range(20)]


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with simulated_cluster(topics_replicas=3) as running:
        running.create_led_by("jobs", 1, 2, 3)
        running.publish("jobs", *VALUES)
        yield running


def stop(cluster: SimulatedCluster, number: int) -> None:
    process = cluster.machines[number].process
    assert process is not None
    stopping = process.start(cluster.nodes[number].stop())
    cluster.until(stopping.done)
    cluster.kill(number)


def segment(cluster: SimulatedCluster, number: int) -> Any:
    [file] = [
        file
        for path, file in cluster.machines[number].drive.files()
        if path.endswith(".log")
        and cluster.nodes[next(iter(cluster.nodes))].image.topics["jobs"].id_text in path
    ]
    return file


def flip_bit_of_stopped(cluster: SimulatedCluster, number: int) -> None:
    stop(cluster, number)
    file = segment(cluster, number)
    file.content[len(file.content) // 2] ^= 4
    cluster.start(number)


def read(cluster: SimulatedCluster, offset: int = 0) -> list[int]:
    """The error of each read from here to the log's end, at whoever leads."""
    with cluster.connect(cluster.state("jobs").leader) as connection:
        offsets = range(offset, len(VALUES))
        return [int(fetch_at(connection, "jobs", at).error_code) for at in offsets]


def is_whole(cluster: SimulatedCluster) -> bool:
    return len(cluster.state("jobs").isr) == 3


def make_leader(cluster: SimulatedCluster, number: int) -> None:
    """All others stop and come back."""
    stop(cluster, 1)
    cluster.until(lambda: cluster.leads(number, "jobs"))
    cluster.start(1)
    cluster.until(lambda: is_whole(cluster))


def test_damage_that_a_leader_finds_is_replaced_from_another_replica(cluster: SimulatedCluster) -> None:
    flip_bit_of_stopped(cluster, 2)
    cluster.until(lambda: is_whole(cluster))
    make_leader(cluster, 2)
    assert CORRUPT_MESSAGE in read(cluster), "never served"
    cluster.until(lambda: cluster.state("jobs").leader in (1, 3))
    cluster.until(lambda: cluster.leads(cluster.state("jobs").leader, "jobs"))
    assert set(read(cluster)) == {0}
    cluster.until(lambda: is_whole(cluster))
    assert bytes(segment(cluster, 2).content) == bytes(segment(cluster, 3).content)


def test_a_damaged_copy_that_too_few_others_could_replace_is_kept(cluster: SimulatedCluster) -> None:
    flip_bit_of_stopped(cluster, 2)
    cluster.until(lambda: is_whole(cluster))
    stop(cluster, 1)
    cluster.until(lambda: cluster.leads(2, "jobs"))
    cluster.until(lambda: cluster.state("jobs").isr == (2, 3))
    assert CORRUPT_MESSAGE in read(cluster)
    cluster.run_for(2.0)
    assert (cluster.state("jobs").leader, cluster.state("jobs").isr) == (2, (2, 3))
    cluster.start(1)
    cluster.until(lambda: is_whole(cluster))
    assert CORRUPT_MESSAGE in read(cluster)
    cluster.until(lambda: cluster.state("jobs").leader != 2)
    cluster.until(lambda: is_whole(cluster))
    assert bytes(segment(cluster, 2).content) == bytes(segment(cluster, 3).content)
