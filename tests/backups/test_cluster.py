"""A backup of three nodes under load, restored into a new cluster after all their disks are lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from postroad.testing import cluster
from postroad.testing.etcd import etcd
from postroad.testing.nodes import ClusterNode
from postroad.testing.process import Setting
from tests.backups.lags import call
from tests.backups.load import JOBS, LEFT, ORDERS, RIGHT, Load
from tests.backups.restored import check_restored
from tests.backups.test_under_load import back_up_slowly, has_grown, prepare
from tests.clients.wait import PATIENCE_S, until


@pytest.mark.cluster_slow
def test_three_nodes_come_back_in_a_new_cluster(tmp_path: Path) -> None:
    where, lost = str(tmp_path / "backups"), tmp_path / "lost"
    with cluster(3, {"topics.replicas": 3}, directory=lost) as running:
        prepare(running.bootstrap)
        load = Load(running.bootstrap)
        with load.running():
            until(lambda: has_grown(load, None), "all clients are at work", PATIENCE_S)
            call("backup", "create", where, bootstrap=running.bootstrap)
            between = load.told()
            until(lambda: has_grown(load, between), "all clients go on", PATIENCE_S)
            before = load.told()
            back_up_slowly(running.bootstrap, where, load)
            after = load.told()
            until(lambda: has_grown(load, after), "all clients go on after it", PATIENCE_S)
        for node in running.nodes:
            node.kill()
    shutil.rmtree(lost)
    with etcd() as store:
        settings: dict[str, Setting] = {"cluster.store": store.url(), "cluster.lease_ms": 2000}
        nodes = []
        for number in (1, 2, 3):
            home = tmp_path / f"node-{number}"
            home.mkdir()
            nodes.append(ClusterNode(home, number, settings))
        try:
            call("backup", "restore", where, "--data", str(nodes[0].data_dir))
            call("cluster", "import", "--data", str(nodes[0].data_dir), "--store", store.url())
            for node in nodes:
                node.start()
            bootstrap = ",".join(node.bootstrap for node in nodes)
            call("cluster", "rebalance", "--replicas", "3", "--yes", bootstrap=bootstrap)
            until(lambda: is_whole(bootstrap), "all partitions have three replicas", 2 * PATIENCE_S)
            nodes[0].kill()
            until(lambda: leads_nothing(1, bootstrap), "others lead what it led", PATIENCE_S)
            counted = check_restored(bootstrap, before, after)
            assert min(counted["orders"], counted["jobs"], counted["pairs"]) > 0, counted
        finally:
            for node in nodes:
                node.kill()
                node.release_ports()


def described_by(bootstrap: str) -> list[Any]:
    names = (ORDERS, JOBS, LEFT, RIGHT, "__consumer_offsets", "__transaction_state")
    return [json.loads(call("topic", "describe", name, "--json", bootstrap=bootstrap)) for name in names]


def leads_nothing(node: int, bootstrap: str) -> bool:
    return all(
        partition["leader"] not in (node, -1, None)
        for topic in described_by(bootstrap)
        for partition in topic["partitions"]
    )


def is_whole(bootstrap: str) -> bool:
    described = described_by(bootstrap)
    return all(len(partition["in_sync"]) == 3 for topic in described for partition in topic["partitions"])
