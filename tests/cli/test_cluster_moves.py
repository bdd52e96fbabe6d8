"""`postroad cluster reassign`, `rebalance`, `drain` and `remove`, with real nodes and a stock client."""

from __future__ import annotations

import time
from typing import Any

from click.testing import CliRunner, Result
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from postroad.cli import main
from postroad.testing import RunningCluster, cluster

from .conftest import read_json


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
        assert "nothing was changed" in call(running, "cluster", "rebalance", "--dry-run").stderr
        assert held(running)[3] == ("serving", 0)
        assert "moved" in call(running, "cluster", "rebalance", "--yes").stdout
        counts = [count for _, count in held(running).values()]
        assert max(counts) - min(counts) <= 1
        assert "balanced" in call(running, "cluster", "rebalance", "--yes").stdout

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
