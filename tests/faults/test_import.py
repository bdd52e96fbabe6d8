"""One node becomes three under load: its store is imported, others join, partitions get replicas, it dies."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.cli import main
from postroad.client.metadata import Cluster
from postroad.testing import ClusterNode, RunningCluster
from postroad.testing.etcd import etcd
from postroad.testing.nodes import LEASE_MS, store_process
from tests.clients.wait import until
from tests.spark import plain

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

LOAD_S = 0.5
MESSAGES = 300
SETTINGS = {"cluster.lease_ms": LEASE_MS}


def command(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, ["cluster", *arguments])
    assert done.exit_code == code, f"{done.output}\n{done.exception!r}"
    return done


@contextmanager
def a_store(home: Path, is_etcd: bool) -> Iterator[str]:
    if is_etcd:
        with etcd() as running:
            yield running.url()
    else:
        with store_process(home) as url:
            yield url


@contextmanager
def ending(running: RunningCluster) -> Iterator[None]:
    try:
        yield
        running.stop()
    finally:
        running.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    "is_etcd",
    [pytest.param(False, id="own store"), pytest.param(True, id="etcd", marks=pytest.mark.cluster_slow)],
)
def test_one_node_becomes_three_under_load_and_nothing_is_lost(tmp_path: Path, is_etcd: bool) -> None:
    with a_store(tmp_path, is_etcd) as store:
        running = RunningCluster(tmp_path, 3, store, SETTINGS)
        first = running.node(1)
        first.configure(SETTINGS)  # for now it is alone, with a store of its own
        with ending(running):
            first.start()
            admin = AdminClient({"bootstrap.servers": first.bootstrap})
            admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(60)
            producer, bookmarks = Load(first, "producer"), Bookmarks(first)
            with running_threads(producer):
                with running_threads(bookmarks):
                    time.sleep(LOAD_S)
                    import_into(store, first)
                    first.configure({**SETTINGS, "cluster.store": store})
                    first.start()
                    for node in running.nodes[1:]:
                        node.start()
                    command("rebalance", "--replicas", "3", "--yes", "--observe", "0", "-b", first.bootstrap)
                    running.wait_until_whole()
                    # Clients that were told of one node hear of the others when their leaders change.
                    running.wait_until(leaders_are_spread, "the new nodes lead")
                    producer.wait_until_heard()  # else it may know of nobody but the node that dies
                later = Bookmarks(running)
                later.tried, later.acknowledged = bookmarks.tried, bookmarks.acknowledged
                with running_threads(later):
                    first.kill()
                    time.sleep(LOAD_S)
            assert_all_there_once_in_order(running.node(2), [producer], sent_min=50)
            assert later.acknowledged <= committed(running.node(2)) <= later.tried
            first.start()
            running.wait_until_whole()
    assert_equal_at_rest(running.nodes)


def leaders_are_spread(cluster: Cluster) -> bool:
    return len({partition.leader for partition in cluster.topics[TOPIC].partitions}) == PARTITIONS


def import_into(store: str, node: ClusterNode) -> None:
    arguments = ["import", "--data", str(node.data_dir), "--store", store]
    assert "in use by another postroad process" in command(*arguments, code=1).stderr
    node.stop()
    assert "imported" in command(*arguments).stdout
    assert "imported before" in command(*arguments, code=1).stderr


@pytest.mark.slow
def test_the_nodes_of_one_command_are_taken_into_a_store_of_their_own_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    home = tmp_path / "data"
    settings = {"topics.replicas": 3, "kafka.port": 0, "http.enabled": "false"}
    with store_process(tmp_path) as store:
        arguments = ["import", "--data", str(home), "--store", store]
        with served_nodes(home, settings) as bootstrap:
            fill(bootstrap)
            assert "in use by another postroad process" in command(*arguments, code=1).stderr
        told = command(*arguments).stdout
        assert all(f"{home}/node-{number} --store {store}" in told for number in (1, 2, 3))
        assert "imported before" in command(*arguments, code=1).stderr
        with pytest.raises(AssertionError, match="it has ended"), served_nodes(home, settings):
            pass  # it would begin anew, beside the others
        running = RunningCluster(tmp_path, 3, store, {"topics.replicas": 3})
        for node in running.nodes:
            (home / f"node-{node.id}").rename(node.data_dir)
        with ending(running):
            running.start()
            running.wait_until_whole()
            running.node(1).kill()
            found = [int(row.value or b"-1") for row in plain.read_all(running.node(2).bootstrap, TOPIC)]
            assert sorted(found) == list(range(MESSAGES))
            running.node(1).start()
            running.wait_until_whole()
    assert_equal_at_rest(running.nodes)


def fill(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(60)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(MESSAGES):
        producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(60) == 0


@contextmanager
def served_nodes(home: Path, settings: Mapping[str, object]) -> Iterator[str]:
    """`serve --nodes 3`; where its nodes are."""
    told = home.parent / "ready.json"
    told.unlink(missing_ok=True)
    given = [text for name, value in settings.items() for text in ("--set", f"{name}={value}")]
    start = [sys.executable, "-m", "postroad", "serve", "--nodes", "3", "--data", str(home), *given]
    with (home.parent / "log").open("ab") as log:
        running = subprocess.Popen([*start, "--ready-file", str(told)], stdout=log, stderr=log)
        try:
            until(lambda: told.exists() or running.poll() is not None, "the nodes serve", patience_s=90)
            assert running.poll() is None, "it has ended"
            yield json.loads(told.read_bytes())["kafka"]
        finally:
            running.terminate()
            running.wait(60)


def test_a_node_that_was_imported_does_not_start_alone(tmp_path: Path) -> None:
    with store_process(tmp_path) as store:
        node = ClusterNode(tmp_path, 1, SETTINGS)
        node.start()
        node.stop()
        command("import", "--data", str(node.data_dir), "--store", store)
        with pytest.raises(Exception, match="coordination store is empty"):
            node.start()
        command("import", "--data", str(tmp_path / "nowhere"), "--store", store, code=1)
        command("import", "--data", str(node.data_dir), "--store", "redis://here", code=2)
