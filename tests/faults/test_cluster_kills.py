"""kill -9 of leaders under load, three replicas: clients go on, nothing is lost, bytes are equal at rest.

All rows of the failure matrix are in `test_matrix_*.py`, for `make faults`; these two are its smallest.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

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
from .loaded_cluster import loaded_cluster
from .replicas_at_rest import assert_equal_at_rest

KILLS = 20
LOAD_S = 1.0  # between two kills; when in it the kill comes is drawn from a seed


@pytest.mark.slow
def test_all_clients_go_on_through_the_kill_of_a_leader(tmp_path: Path) -> None:
    """On a real etcd: producer, consumer group, share consumers and boto3 through the gateway."""
    with loaded_cluster(tmp_path) as (running, load):
        running.wait_until_whole()
        victim = running.leader(TOPIC)
        victim.kill()
        load.wait_for_progress()
        victim.start()


@pytest.mark.slow
@pytest.mark.cluster_slow
def test_twenty_kills_of_leaders_lose_nothing_on_the_own_store(tmp_path: Path) -> None:
    with cluster(nodes=3, settings={"topics.replicas": 3}, directory=tmp_path) as running:
        survive_kills(running, seed=2)
    assert_equal_at_rest(running)


def survive_kills(running: RunningCluster, seed: int) -> None:
    """Leaders are killed under load and return; nothing that was acknowledged is lost."""
    random_ = random.Random(seed)
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(60)
    producer, bookmarks = Load(running, "producer"), Bookmarks(running)
    with running_threads(producer, bookmarks):
        for number in range(KILLS):
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
    assert_all_there_once_in_order(running, [producer], sent_min=10 * KILLS)
    assert bookmarks.acknowledged <= committed(running) <= bookmarks.tried
    running.wait_until_whole()
