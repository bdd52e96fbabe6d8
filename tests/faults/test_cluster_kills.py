"""kill -9 of leaders under load, three replicas: clients go on, nothing is lost, bytes are equal at rest."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.cli import main
from postroad.testing import RunningCluster, cluster

from .load import (
    PARTITIONS,
    TOPIC,
    Bookmarks,
    Load,
    assert_all_there_once_in_order,
    committed,
    running_threads,
)

LOAD_S = 1.0  # between two kills; when in it the kill comes is drawn from a seed


def survive_kills(running: RunningCluster, kills: int, seed: int) -> None:
    """Leaders are killed under load and return; nothing that was acknowledged is lost."""
    random_ = random.Random(seed)
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(60)
    producer, bookmarks = Load(running, "producer"), Bookmarks(running)
    with running_threads(producer, bookmarks):
        for number in range(kills):
            running.wait_until_whole()
            time.sleep(LOAD_S * (0.5 + random_.random() / 2))
            killed = running.leader(TOPIC, number % PARTITIONS)
            killed.kill()
            acknowledged = len(producer.acknowledged)
            running.leader(TOPIC, number % PARTITIONS)
            deadline = time.monotonic() + 60
            while len(producer.acknowledged) <= acknowledged:
                assert time.monotonic() < deadline, "producers go on without the killed node"
                time.sleep(0.01)
            killed.start()
        running.wait_until_whole()
    assert_all_there_once_in_order(running, [producer], sent_min=10 * kills)
    assert bookmarks.acknowledged <= committed(running) <= bookmarks.tried
    running.wait_until_whole()


def assert_equal_at_rest(running: RunningCluster) -> None:
    """L12: the replicas of stopped nodes hold the same bytes, up to the same end."""
    directories = [str(node.data_dir) for node in running.nodes]
    compared = CliRunner().invoke(main, ["log", "compare", "--json", *directories])
    assert compared.exit_code == 0, compared.output
    logs = json.loads(compared.stdout)["logs"]
    assert len(logs) >= PARTITIONS
    assert all(log["replicas"] == 3 for log in logs)


def test_clients_go_on_through_the_kill_of_a_leader(tmp_path: Path) -> None:
    with cluster(nodes=3, settings={"topics.replicas": 3}, directory=tmp_path) as running:
        survive_kills(running, kills=1, seed=1)
    assert_equal_at_rest(running)


@pytest.mark.slow
@pytest.mark.cluster_slow
@pytest.mark.parametrize("etcd", [False, True], ids=["own store", "etcd"])
def test_twenty_kills_of_leaders_lose_nothing(tmp_path: Path, etcd: bool) -> None:
    with cluster(nodes=3, settings={"topics.replicas": 3}, etcd=etcd, directory=tmp_path) as running:
        survive_kills(running, kills=20, seed=2)
    assert_equal_at_rest(running)
