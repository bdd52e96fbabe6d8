"""Nodes whose coordination store is not their own: etcd's, or that of another process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroad.cluster.sqlite import SqliteStore
from postroad.cluster.store_server import StoreServer
from postroad.testing.etcd import Etcd, etcd
from tests.broker.harness import Running, running_node, until


@pytest.fixture(scope="module")
def server() -> Iterator[Etcd]:
    with etcd() as running:
        yield running


def test_a_node_finds_its_topics_in_etcd_after_a_restart(server: Etcd, tmp_path: Path) -> None:
    with running_node(tmp_path, cluster_store=server.url("/restart")) as running:
        topic_id = running.create("known")
        running.publish("known", b"hello")
    with running_node(tmp_path, cluster_store=server.url("/restart")) as running:
        assert running.node.topics.image.topic("known").id == topic_id
        assert running.partition("known").high_watermark == 1
    assert not list(tmp_path.glob("*.sqlite*"))


def test_nodes_on_one_etcd_know_each_other_and_their_topics(server: Etcd, tmp_path: Path) -> None:
    url = server.url("/two")
    with (
        running_node(tmp_path / "1", cluster_store=url) as first,
        running_node(tmp_path / "2", cluster_store=url, node_id=2) as second,
    ):
        assert second.node.topics.image.nodes.keys() == {1, 2}
        first.create("shared")
        until(lambda: "shared" in second.node.topics.image.topics, "the other node knows the topic")


def test_a_neighbour_in_the_same_etcd_holds_up_no_creation(server: Etcd, tmp_path: Path) -> None:
    with (
        running_node(tmp_path / "ours", cluster_store=server.url("/ours")) as ours,
        running_node(tmp_path / "theirs", cluster_store=server.url("/theirs")) as theirs,
    ):
        for number in range(3):
            theirs.create(f"theirs{number}")
            ours.create(f"ours{number}")
            snapshot = ours.run(ours.node.store.list(""))
            ours.run(ours.node.topics.reach(snapshot.revision))
        assert ours.node.topics.image.topics.keys() >= {"ours0", "ours1", "ours2"}
        assert "theirs0" not in ours.node.topics.image.topics


async def test_nodes_share_the_store_of_another_process(tmp_path: Path) -> None:
    owned = await SqliteStore.open(tmp_path / "coordination.sqlite")
    served = await StoreServer.open(owned, tmp_path / "store.sock")
    first, second = (
        Running(tmp_path / str(number), node_id=number, cluster_store=f"unix://{tmp_path}/store.sock")
        for number in (1, 2)
    )
    for running in (first, second):
        await asyncio.to_thread(running.start)
    assert second.node.topics.image.nodes.keys() == {1, 2}
    await asyncio.to_thread(first.create, "shared")
    await asyncio.to_thread(until, lambda: "shared" in second.node.topics.image.topics, "it is known")
    for running in (first, second):
        await asyncio.to_thread(running.stop)
    await served.close()
    await owned.close()


def test_without_etcd_messages_go_on_and_with_it_creations_too(tmp_path: Path) -> None:
    with etcd() as alone, running_node(tmp_path, cluster_store=alone.url()) as running:
        running.create("known")
        lease = running.node.registration.lease
        alone.members[0].kill()
        assert running.publish("known", b"one", b"two") == 1
        alone.start()
        running.create("later")
        assert running.node.registration.lease == lease
