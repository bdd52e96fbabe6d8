"""Clusters for users' tests: real nodes that share a store, killed and started again at will."""

from __future__ import annotations

import os
import urllib.request
from pathlib import Path

import pytest

from postroad.client import Client, Producer
from postroad.testing import NodeFailed, RunningCluster, cluster
from tests.testing.test_node import publish, values


async def test_messages_outlive_the_node_that_led_them(postroad_cluster: RunningCluster) -> None:
    running = postroad_cluster
    assert [node.id for node in running.nodes] == [1, 2, 3]
    assert running.bootstrap == ",".join(node.bootstrap for node in running.nodes)
    await publish(running.bootstrap, b"one")
    running.wait_until_whole()
    first = running.leader("t")
    bootstrap = first.bootstrap
    first.kill()
    second = running.leader("t")
    assert second is not first
    await publish(running.bootstrap, b"two")
    first.start()
    assert first.bootstrap == bootstrap
    running.wait_until_whole()
    assert await values(running.bootstrap, 2) == [b"one", b"two"]


async def test_a_paused_node_loses_its_leadership_and_follows_when_it_goes_on(
    postroad_cluster: RunningCluster,
) -> None:
    running = postroad_cluster
    await publish(running.bootstrap, b"one")
    running.wait_until_whole()
    paused = running.leader("t")
    paused.pause()
    others = ",".join(node.bootstrap for node in running.nodes if node is not paused)
    running.wait_until(lambda seen: paused.id not in seen.nodes, "the paused node counts as gone")
    assert running.leader("t") is not paused
    async with Client(others) as client, Producer(client) as producer:
        await producer.send("t", b"two")
    paused.resume()
    running.wait_until_whole()


def test_a_cluster_on_etcd_has_one_gateway_and_leaves_nothing_behind() -> None:
    with cluster(nodes=2, settings={"http.enabled": True, "topics.partitions": 2}, etcd=True) as running:
        assert running.etcd is not None
        with urllib.request.urlopen(f"{running.http}/readyz", timeout=30) as answer:
            assert answer.status == 200
        home, pids = running.home, [node.pid for node in running.nodes]
    assert not home.exists()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_wrong_setting_is_an_error_that_shows_what_a_node_said(tmp_path: Path) -> None:
    with (
        pytest.raises(NodeFailed, match=r"exit code 1 instead of starting[\s\S]*topics\.auto_creates"),
        cluster(settings={"topics.auto_creates": False}, directory=tmp_path),
    ):
        pass
    assert (tmp_path / "coordination.sqlite").exists()
