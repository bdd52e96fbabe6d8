"""`postroad cluster reassign`, `rebalance`, `drain` and `remove`, with real nodes and a stock client."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from postroad.cli import main
from postroad.testing import RunningCluster, cluster
from tests.clients.wait import until

from .conftest import read_json

RATE = "follower.replication.throttled.rate"
SLOW = 10_000  # bytes a second: what is copied takes longer than the test


def call(running: RunningCluster, *arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, [*arguments, "-b", running.bootstrap])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


def held(running: RunningCluster) -> dict[int, tuple[str, int]]:
    status = read_json(call(running, "cluster", "status", "--json").stdout)
    return {node["node"]: (node["state"], node["replicas"]) for node in status["nodes"]}


def replicas(running: RunningCluster, topic: str) -> list[list[int]]:
    described: dict[str, Any] = read_json(call(running, "topic", "describe", topic, "--json").stdout)
    return [partition["replicas"] for partition in described["partitions"]]


def test_partitions_move_and_nodes_are_drained_and_removed_by_commands() -> None:
    with cluster(nodes=3, settings={"topics.replicas": 2, "topics.internal_replicas": 2}) as running:
        call(running, "topic", "create", "orders", "--partitions", "4")
        call(running, "publish", "orders", *"abcdefgh")
        running.wait_until_whole()
        before = held(running)

        planned = call(running, "cluster", "drain", "3", "--dry-run")
        assert "nothing was changed" in planned.stderr
        assert held(running) == before

        assert "node 3 is empty" in call(running, "cluster", "drain", "3").stdout
        assert held(running)[3] == ("drained", 0)
        refused = call(running, "cluster", "remove", "3", code=1)
        assert "Node 3 is running" in refused.stderr
        call(running, "topic", "create", "later", "--partitions", "3")
        assert all(3 not in each for each in replicas(running, "later"))

        call(running, "cluster", "drain", "3", "--cancel")
        assert (
            "nothing was changed"
            in call(running, "cluster", "rebalance", "--dry-run", "--observe", "100ms").stderr
        )
        assert held(running)[3] == ("serving", 0)
        assert "moved" in call(running, "cluster", "rebalance", "--yes", "--observe", "0").stdout
        counts = [count for _, count in held(running).values()]
        assert max(counts) - min(counts) <= 1
        assert "balanced" in call(running, "cluster", "rebalance", "--yes", "--observe", "0").stdout
        assert "0 partitions are moving" in call(running, "cluster", "rebalance", "--cancel").stdout

        call(running, "cluster", "reassign", "orders", "0", "1,3")
        assert replicas(running, "orders")[0] == [1, 3]
        assert (
            "not being moved"
            in call(running, "cluster", "reassign", "orders", "0", "--cancel", code=1).stderr
        )
        assert (
            "there is no partition" in call(running, "cluster", "reassign", "none", "0", "1", code=1).stderr
        )
        call(running, "cluster", "reassign", "orders", "0", "1,x", code=2)
        call(running, "cluster", "reassign", "orders", "0", code=2)
        assert "no node 9" in call(running, "cluster", "drain", "9", code=1).stderr

        move_by_a_stock_client(running)

        call(running, "cluster", "drain", "2")
        running.node(2).stop()
        assert "removed node 2" in call(running, "cluster", "remove", "2").stdout
        assert sorted(held(running)) == [1, 3]
        read = call(running, "consume", "orders", "--from", "earliest", "--count", "8")
        assert sorted(read.stdout.split()) == list("abcdefgh")


def move_by_a_stock_client(running: RunningCluster) -> None:
    admin = KafkaAdminClient(bootstrap_servers=running.bootstrap)
    try:
        partition = TopicPartition("orders", 0)
        assert admin.alter_partition_reassignments({partition: [2, 3]}) == {partition: None}
        deadline = time.monotonic() + 60
        while admin.list_partition_reassignments():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        refused = admin.alter_partition_reassignments({partition: None})
        assert refused[partition].errno == 85
    finally:
        admin.close()
    assert replicas(running, "orders")[0] == [2, 3]


def test_moves_that_take_long_are_cancelled_together() -> None:
    settings = {"topics.replicas": 1, "topics.internal_replicas": 1, "cluster.catch_up_bytes_per_s": SLOW}
    with cluster(nodes=2, settings=settings) as running:
        call(running, "topic", "create", "orders", "--partitions", "2")
        payload = "x" * 500_000
        call(running, "publish", "orders", *(f"{key}{payload}" for key in "abcd"))
        before = replicas(running, "orders")
        for index, (on,) in enumerate(before):
            call(running, "cluster", "reassign", "orders", str(index), str(3 - on), "--no-wait")
        planned = call(running, "cluster", "rebalance", "--cancel", "--dry-run")
        assert "2 partitions are moving" in planned.stdout
        assert replicas(running, "orders") != before
        assert "cancelled 2 moves" in call(running, "cluster", "rebalance", "--cancel", "--yes").stdout
        assert replicas(running, "orders") == before
        read = call(running, "consume", "orders", "--from", "earliest", "--count", "4")
        assert sorted(line[0] for line in read.stdout.split()) == list("abcd")


def test_the_rate_of_copies_is_changed_while_they_are_made() -> None:
    """By the command, by Kafka's tools, for one node or all; what waits under the old one goes on at once."""
    settings = {"topics.replicas": 1, "topics.internal_replicas": 1}
    with cluster(nodes=2, settings=settings) as running:
        assert rates(running) == {1: ("no limit", "by default"), 2: ("no limit", "by default")}
        call(running, "cluster", "rate", str(SLOW))
        call(running, "cluster", "rate", "1KiB", "--node", "2")
        assert rates(running) == {1: (SLOW, "for all nodes"), 2: (1024, "for this node")}
        call(running, "cluster", "rate", "--reset", "--node", "2")
        call(running, "topic", "create", "orders", "--partitions", "2")
        for partition in "01":
            call(running, "publish", "orders", "-p", partition, "a" * 500_000, "b" * 500_000)
        before = replicas(running, "orders")
        for index, (on,) in enumerate(before):
            call(running, "cluster", "reassign", "orders", str(index), str(3 - on), "--no-wait")
        until(lambda: replicas(running, "orders") != before, "the moves have begun")
        assert (
            "2 partitions are moving" in call(running, "cluster", "rebalance", "--cancel", "--dry-run").stdout
        )
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        entry = ConfigEntry(RATE, "0", incremental_operation=AlterConfigOpType.SET)
        for node in ("1", "2"):
            one = ConfigResource(ConfigResource.Type.BROKER, node, incremental_configs=[entry])
            admin.incremental_alter_configs([one])[one].result(30)
        until(lambda: replicas(running, "orders") == before[::-1], "both have moved", patience_s=60)
        assert rates(running) == {1: ("no limit", "for this node"), 2: ("no limit", "for this node")}


@pytest.mark.parametrize(
    "arguments", [["fast"], ["-1"], ["1MiB", "--reset"], ["1MiB", "--node", "x"]], ids=" ".join
)
def test_wrong_rates_are_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, ["cluster", "rate", *arguments]).exit_code == 2


def rates(running: RunningCluster) -> dict[int, tuple[object, str]]:
    rows = json.loads(call(running, "cluster", "rate", "--json").stdout)
    return {row["node"]: (row["bytes_a_second"], row["set"]) for row in rows}


def test_leaderships_of_busy_partitions_are_told_from_idle_ones() -> None:
    with cluster(nodes=2, settings={"topics.replicas": 2, "topics.internal_replicas": 2}) as running:
        admin = KafkaAdminClient(bootstrap_servers=running.bootstrap)
        admin.create_topics(
            [
                NewTopic("busy", replica_assignments={0: [1, 2], 1: [1, 2]}),
                NewTopic("idle", replica_assignments={0: [2, 1], 1: [2, 1]}),
            ]
        )
        admin.close()
        running.wait_until_whole()
        with writing(running, "busy"):
            planned = call(running, "cluster", "rebalance", "--dry-run", "--observe", "2s")
        changed = [line.split()[0] for line in planned.stdout.splitlines()]
        assert changed.count("busy") == 1, planned.stdout
        assert "0 bytes are copied" in planned.stdout


@contextmanager
def writing(running: RunningCluster, topic: str) -> Iterator[None]:
    """Some megabytes a second to both partitions."""
    done = threading.Event()
    producer = Producer({"bootstrap.servers": running.bootstrap, "linger.ms": 5})

    def work() -> None:
        while not done.is_set():
            for partition in (0, 1):
                for _ in range(20):
                    producer.produce(topic, bytes(10_000), partition=partition)
            producer.flush(10)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(30)
