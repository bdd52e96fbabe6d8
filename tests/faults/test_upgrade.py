"""A rolling upgrade under load: nodes of two versions work together, and nothing is lost or doubled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.cli import main
from postroad.client.metadata import Cluster
from postroad.cluster import keys
from postroad.testing.nodes import store_process
from postroad.testing.process import NodeFailed

from .load import (
    PARTITIONS,
    TOPIC,
    Bookmarks,
    Load,
    assert_all_there_once_in_order,
    committed,
    running_threads,
)
from .test_moves import assert_equal_at_rest
from .versions import BEFORE, VersionedCluster, producer_settings, source_of

LOAD_S = 1.0
MOVES_WITHIN_S = 30.0
SETTINGS = {"topics.replicas": 3, "topics.internal_replicas": 3}
BEFORE_MOVES = "27ed224^"  # it understands level 1: replicas, but no moves


@contextmanager
def old_cluster(home: Path, commit: str) -> Iterator[VersionedCluster]:
    source = source_of(commit, home / "old")
    with store_process(home) as store:
        running = VersionedCluster(home, 3, store, SETTINGS, source)
        try:
            running.start()
            admin = AdminClient({"bootstrap.servers": running.bootstrap})
            turns = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, replica_assignment=turns)])[TOPIC].result(60)
            running.wait_until(is_load_whole, "the topic's replicas are in sync")
            yield running
            running.stop()
        finally:
            running.kill()


def is_load_whole(cluster: Cluster) -> bool:
    """Replicas of the nodes' own topics may lag here: old versions had a defect that kept some out."""
    partitions = cluster.topics[TOPIC].partitions
    return len(cluster.nodes) == 3 and all(sorted(each.isr) == [1, 2, 3] for each in partitions)


def reassign(running: VersionedCluster) -> Result:
    """Ask for another preferred leader of a partition, which is a move."""
    arguments = ["cluster", "reassign", TOPIC, "0", "2,1,3", "-b", running.bootstrap]
    return CliRunner().invoke(main, arguments)


def reassign_soon(running: VersionedCluster) -> None:
    """The controller notes that all nodes understand moves soon after the last of them has started."""
    deadline = time.monotonic() + MOVES_WITHIN_S
    while (done := reassign(running)).exit_code:
        assert time.monotonic() < deadline, f"{done.output}\n{done.exception!r}"
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "commit",
    [
        pytest.param(BEFORE, id="the commit before"),
        pytest.param(BEFORE_MOVES, id="before moves", marks=pytest.mark.cluster_slow),
    ],
)
def test_nodes_are_updated_one_after_the_other_under_load(tmp_path: Path, commit: str) -> None:
    with old_cluster(tmp_path, commit) as running:
        producer, bookmarks = Load(running, "producer", producer_settings(running.source)), Bookmarks(running)
        with running_threads(producer, bookmarks):
            for number in (1, 2, 3):
                time.sleep(LOAD_S)
                if commit == BEFORE_MOVES and number > 1:
                    refused = reassign(running)
                    assert refused.exit_code == 1
                    assert "runs a version that can't move partitions" in refused.stderr
                if number == 3:
                    die_and_come_back(running)
                running.node(number).stop()
                running.set_version(number, None)
                running.node(number).start()
                running.wait_until(is_load_whole, "the topic's replicas are in sync")
            running.wait_until_whole()
            reassign_soon(running)
            time.sleep(LOAD_S)
        assert_all_there_once_in_order(running, [producer], sent_min=50)
        assert bookmarks.acknowledged <= committed(running) <= bookmarks.tried
        if commit == BEFORE_MOVES:
            refuse_an_old_node(running, tmp_path / "old" / "src")
    assert_equal_at_rest(running.nodes)


def die_and_come_back(running: VersionedCluster) -> None:
    """The last node of the old version dies, and is taken back as it is: nobody has counted on its update."""
    running.node(3).kill()
    running.wait_until(lambda seen: 3 not in seen.nodes, "node 3 counts as dead")
    time.sleep(LOAD_S)  # in which the controller looks what all nodes understand
    running.node(3).start()
    running.wait_until(is_load_whole, "the topic's replicas are in sync")


def refuse_an_old_node(running: VersionedCluster, source: Path) -> None:
    """It would drop what the others have written since."""
    running.node(3).stop()
    running.set_version(3, source)
    with pytest.raises(NodeFailed, match=f"updated to level {keys.LEVEL}"):
        running.node(3).start()
    running.set_version(3, None)
    running.node(3).start()
    running.wait_until_whole()
