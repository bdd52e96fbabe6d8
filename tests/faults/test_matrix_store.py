"""The failure matrix: etcd loses its leader or its quorum, is restarted, or comes from an old backup."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.testing import NodeFailed, RunningCluster, cluster
from tests.clients.wait import until

from . import figures
from .load import PARTITIONS, TOPIC
from .loaded_cluster import loaded_cluster

pytestmark = [pytest.mark.slow, pytest.mark.cluster_slow]

AWAY_S = 60.0  # without a quorum
DOWN_S = 5.0  # without any member
MEMBERS = 3


def create_after(running: RunningCluster, name: str) -> float:
    """How long it takes until a topic can be created again."""
    began = time.monotonic()
    admin = AdminClient({"bootstrap.servers": running.bootstrap})

    def created() -> bool:
        try:
            admin.create_topics([NewTopic(name, 3, 3)], operation_timeout=5)[name].result(10)
        except Exception:  # whichever error says that it is too early
            return False
        return True

    until(created, "a topic can be created", 60)
    return time.monotonic() - began


def test_the_leader_of_etcd_is_killed(tmp_path: Path) -> None:
    with loaded_cluster(tmp_path, etcd=MEMBERS) as (running, load):
        assert running.etcd is not None
        running.wait_until_whole()
        at = time.monotonic()
        running.etcd.leader().kill()
        created = create_after(running, "afterwards")
        load.wait_for_progress()
        gap = load.gap(range(PARTITIONS), at)
        running.etcd.start()
        assert not registered_anew(running)
    figures.note("etcd's leader killed", gap=gap, create_after=created)


def test_the_quorum_of_etcd_is_lost_for_a_while(tmp_path: Path) -> None:
    with loaded_cluster(tmp_path, etcd=MEMBERS) as (running, load):
        assert running.etcd is not None
        running.wait_until_whole()
        at = time.monotonic()
        for member in running.etcd.members[:2]:
            member.kill()
        time.sleep(AWAY_S)
        gap = load.gap(range(PARTITIONS), at)
        running.etcd.start()
        created = create_after(running, "afterwards")
        load.wait_for_progress()
        lost = registered_anew(running)
    figures.note("etcd's quorum lost for 60 s", gap=gap, create_after=created, leases_lost=lost)


def test_all_members_of_etcd_are_restarted(tmp_path: Path) -> None:
    with loaded_cluster(tmp_path, etcd=MEMBERS) as (running, load):
        assert running.etcd is not None
        running.wait_until_whole()
        at = time.monotonic()
        for member in running.etcd.members:
            member.kill()
        time.sleep(DOWN_S)
        gap = load.gap(range(PARTITIONS), at)
        running.etcd.start()
        created = create_after(running, "afterwards")
        load.wait_for_progress()
        lost = registered_anew(running)
    figures.note("etcd restarted as a whole", gap=gap, create_after=created, leases_lost=lost)


def registered_anew(running: RunningCluster) -> int:
    """How often a node lost its lease."""
    return sum(node.log_file.read_text().count("registering anew") for node in running.nodes)


def test_a_node_refuses_to_start_with_an_etcd_from_an_old_backup(tmp_path: Path) -> None:
    """What happened since is not in it: nobody knows who leads, nor which topics there are."""
    backup = tmp_path / "backup"
    with cluster(nodes=3, settings={"topics.replicas": 3}, etcd=1, directory=tmp_path) as running:
        assert running.etcd is not None
        (member,) = running.etcd.members
        member.stop()
        shutil.copytree(member.data_dir, backup)
        running.etcd.start()
        create_after(running, TOPIC)
        running.wait_until_whole()
        for node in running.nodes:
            node.stop()
        member.stop()
        shutil.rmtree(member.data_dir)
        shutil.copytree(backup, member.data_dir)
        running.etcd.start()
        with pytest.raises(NodeFailed, match="older"):
            running.node(1).start()
        assert list((running.node(1).data_dir / "logs").iterdir()), "nothing was deleted"
