"""A ledger is opened by one task at a time: two logs over one file would overwrite each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import msgspec
import pytest

from postroad.broker.replicas import Opening, Replicas
from postroad.cluster.image import Topic
from tests.simulator.simulated_cluster import SimulatedCluster, simulated_cluster

FOLLOWER = 2


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with simulated_cluster(topics_replicas=3) as running:
        running.create_led_by("jobs", 1, FOLLOWER, 3)
        running.publish("jobs", b"first")
        running.until(lambda: running.replica_end(FOLLOWER, "jobs") == 1)
        yield running


def on_the_follower(cluster: SimulatedCluster, work: Callable[[Replicas, Topic], Awaitable[None]]) -> None:
    """Run it on the node's own loop, with the topic as it is when its partition has got a ledger."""
    node = cluster.nodes[FOLLOWER]
    topic = node.image.topics["jobs"]
    named = [msgspec.structs.replace(state, ledger=True) for state in topic.partitions]
    named_topic = msgspec.structs.replace(topic, partitions=named)

    async def run() -> None:
        await work(node.replicas, named_topic)

    process = cluster.machines[FOLLOWER].process
    assert process is not None
    task = process.start(run())
    cluster.until(task.done)
    task.result()


def test_a_ledger_that_is_named_again_while_it_is_opened_is_opened_once(cluster: SimulatedCluster) -> None:
    async def name_twice(replicas: Replicas, topic: Topic) -> None:
        openings: list[Opening] = replicas._add_ledgers(topic, clean=False)
        openings += replicas._add_ledgers(topic, clean=False)
        assert len(openings) == 1
        await asyncio.gather(*openings)
        assert replicas._add_ledgers(topic, clean=False) == []

    on_the_follower(cluster, name_twice)


def test_a_replica_that_begins_anew_while_its_ledger_is_opened_keeps_its_messages(
    cluster: SimulatedCluster,
) -> None:
    async def begin_anew(replicas: Replicas, topic: Topic) -> None:
        partition = cluster.nodes[FOLLOWER].partitions.replica(topic.id, 0)
        assert partition is not None
        openings = replicas._add_ledgers(topic, clean=False)
        replicas.begin_anew(partition)
        await asyncio.gather(*openings)

    on_the_follower(cluster, begin_anew)
    cluster.until(lambda: len(cluster.state("jobs").isr) == 3)
    cluster.run_for(1.0)
    home = f"/data/logs/{cluster.nodes[1].image.topics['jobs'].id_text}-0"
    disk = cluster.nodes[FOLLOWER].runtime.disk
    assert "00000000000000000000.log" in disk.list(home)
    assert cluster.replica_end(FOLLOWER, "jobs") == 1
