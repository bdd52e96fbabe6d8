"""Nodes are added, drained and lost for good under load: nothing is lost or doubled, bytes are equal."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.cli import main
from postroad.testing import ClusterNode, RunningCluster, cluster

from .load import (
    PARTITIONS,
    TOPIC,
    Bookmarks,
    Load,
    assert_all_there_once_in_order,
    committed,
    running_threads,
)

LOAD_S = 0.5  # between two steps
WITHIN_S = 120.0


def command(running: RunningCluster, *arguments: str) -> str:
    done = CliRunner().invoke(main, ["cluster", *arguments, "-b", running.bootstrap, "--timeout", "60"])
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    time.sleep(LOAD_S)
    return done.stdout


def create_on(running: RunningCluster, nodes: Sequence[int]) -> None:
    """The topic of the load, on these nodes only, each of which leads a partition."""
    turns = [[*nodes[turn:], *nodes[:turn]] for turn in range(PARTITIONS)]
    topic = NewTopic(TOPIC, PARTITIONS, replica_assignment=turns)
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    admin.create_topics([topic])[TOPIC].result(60)


def wait_until_held_by(running: RunningCluster, nodes: set[int]) -> None:
    """Until these nodes hold all replicas, and all of them are in sync."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        seen = running.wait_until(lambda cluster: TOPIC in cluster.topics, "there is the topic")
        partitions = seen.topics[TOPIC].partitions
        if all(set(each.replicas) == set(each.isr) <= nodes for each in partitions):
            return
        assert time.monotonic() < deadline, partitions
        time.sleep(0.05)


def assert_held_by(running: RunningCluster, nodes: set[int]) -> None:
    """Every partition of every topic lies on these nodes, and all of its replicas are in sync."""
    seen = running.wait_until(lambda cluster: TOPIC in cluster.topics, "there is the topic")
    for topic in seen.topics.values():
        for each in topic.partitions:
            assert set(each.replicas) == set(each.isr) <= nodes, (topic, each)


def check(running: RunningCluster, producer: Load, bookmarks: Bookmarks) -> None:
    assert_all_there_once_in_order(running, [producer], sent_min=50)
    assert bookmarks.acknowledged <= committed(running) <= bookmarks.tried


def assert_equal_at_rest(nodes: Sequence[ClusterNode]) -> None:
    """L12: the replicas of stopped nodes hold the same bytes."""
    compared = CliRunner().invoke(main, ["log", "compare", "--json", *[str(node.data_dir) for node in nodes]])
    assert compared.exit_code == 0, compared.output
    assert len(json.loads(compared.stdout)["logs"]) >= PARTITIONS


def test_a_node_gets_its_part_and_another_is_drained_under_load(tmp_path: Path) -> None:
    with cluster(nodes=4, settings={"topics.replicas": 3}, directory=tmp_path) as running:
        create_on(running, [1, 2, 3])
        producer, bookmarks = Load(running, "producer"), Bookmarks(running)
        with running_threads(producer, bookmarks):
            time.sleep(LOAD_S)
            command(running, "rebalance", "--yes", "--observe", "1s")
            # By what lies where alone: another second of load is another load, and may be worth another plan.
            assert "balanced" in command(running, "rebalance", "--yes", "--observe", "0")
            assert "node 1 is empty" in command(running, "drain", "1")
            assert_held_by(running, {2, 3, 4})
        check(running, producer, bookmarks)
    assert_equal_at_rest(running.nodes)


@pytest.mark.slow
@pytest.mark.cluster_slow
@pytest.mark.parametrize("etcd", [False, True], ids=["own store", "etcd"])
def test_three_nodes_become_five_two_are_drained_and_one_is_lost(tmp_path: Path, etcd: bool) -> None:
    settings = {"topics.replicas": 3, "cluster.heal_after_ms": 5_000}
    with cluster(nodes=5, settings=settings, etcd=etcd, directory=tmp_path) as running:
        for number in (4, 5):
            running.node(number).stop()
        create_on(running, [1, 2, 3])
        producer, bookmarks = Load(running, "producer"), Bookmarks(running)
        with running_threads(producer, bookmarks):
            for number in (4, 5):
                running.node(number).start()
            running.wait_until_whole()
            command(running, "rebalance", "--yes", "--observe", "1s")
            for number in (1, 2):
                command(running, "drain", str(number))
            wait_until_held_by(running, {3, 4, 5})
            for number in (1, 2):
                command(running, "drain", str(number), "--cancel")
            running.node(4).kill()
            wait_until_held_by(running, {1, 2, 3, 5})
        check(running, producer, bookmarks)
    assert_equal_at_rest([node for node in running.nodes if node.id != 4])
