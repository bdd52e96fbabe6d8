"""Starts on a coordination store that others use, too: entries of processes that have died, and races."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from postroad.broker import joining
from postroad.broker.runtime import SystemRuntime
from postroad.cluster import controller, keys
from postroad.cluster.ids import id_text, make_id
from postroad.cluster.image import Image
from postroad.cluster.internal_topics import INTERNAL_TOPICS, OFFSETS_TOPIC
from postroad.cluster.store import Compare, Operation, Put, Store
from postroad.errors import NodeIdTaken, StoreUnavailable
from tests.broker.harness import Running
from tests.broker.store_behind import StoreBehind


class WithEntry(SystemRuntime):
    """Another process is registered as node 1, with this data directory."""

    directory = ""

    async def open_store(self, path: Path, address: str) -> Store:
        store = await super().open_store(path, address)
        value = keys.encode(keys.NodeValue("elsewhere", 9092, "other", self.directory))
        await store.commit([], [Put(keys.node_key(1), value, await store.grant(600_000))])
        return store


def contents(path: Path) -> dict[str, bytes]:
    """All files but the embedded store's, which stands for one that all nodes share."""
    files = [found for found in path.rglob("*") if found.is_file() and "sqlite" not in found.name]
    return {str(found.relative_to(path)): found.read_bytes() for found in files if found.name != "lock"}


def test_a_node_takes_over_from_its_own_last_process(start: Callable[..., Running]) -> None:
    running = start()
    running.create("kept")
    running.publish("kept", b"x")
    running.stop()
    identity = json.loads((running.node.directory.path / "node.json").read_bytes())

    class Killed(WithEntry):
        directory = identity["directory"]

    running.runtime = Killed
    running.start()
    [me] = running.node.image.nodes.values()
    assert (me.host, me.directory) == ("127.0.0.1", identity["directory"])
    assert running.fetch("kept", 0).high_watermark == 1


def test_a_start_under_an_id_that_is_taken_changes_nothing(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    running.create("kept")
    running.publish("kept", b"x")
    running.stop()
    before = contents(running.node.directory.path)
    assert "clean-shutdown" in before
    monkeypatch.setattr(joining, "LATE_S", -10.0)  # it waits no longer than it has to
    running.runtime = WithEntry
    with pytest.raises(NodeIdTaken, match=r"node\.id 1 is taken by the node at elsewhere:9092"):
        running.start()
    assert contents(running.node.directory.path) == before
    running.runtime = SystemRuntime
    running.start()
    assert running.fetch("kept", 0).high_watermark == 1


def test_a_start_without_a_store_changes_nothing(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Away(StoreBehind):
        async def grant(self, ttl_ms: int) -> int:
            raise StoreUnavailable()

    class Cluster(SystemRuntime):
        async def open_store(self, path: Path, address: str) -> Store:
            return Away(await super().open_store(path, address))

    running = start()
    running.stop()
    before = contents(running.node.directory.path)
    monkeypatch.setattr(joining, "LATE_S", -10.0)
    running.runtime = Cluster
    with pytest.raises(StoreUnavailable):
        running.start()
    assert contents(running.node.directory.path) == before
    running.runtime = SystemRuntime
    running.start()


THEIRS = b"16 random bytes."


class Faster(StoreBehind):
    """Another node that starts creates the cluster and its topic of offsets a moment before."""

    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> int | None:
        written = [operation.key for operation in operations]
        image = Image()
        image.catch_up(await self.store.list(""))
        if keys.CLUSTER in written and image.cluster_id is None:
            await self.store.commit(*controller.create_cluster(image, THEIRS))
        if keys.topic_key(OFFSETS_TOPIC) in written and OFFSETS_TOPIC not in image.topics:
            config, topic_id = INTERNAL_TOPICS[OFFSETS_TOPIC], make_id(THEIRS)
            theirs = controller.create_topic(
                image, OFFSETS_TOPIC, topic_id, nodes=[1], partitions=3, config=config, internal=True
            )
            await self.store.commit(*theirs)
        return await self.store.commit(compares, operations)


def test_a_node_that_comes_second_joins_what_the_first_one_made(tmp_path: Path) -> None:
    class Cluster(SystemRuntime):
        async def open_store(self, path: Path, address: str) -> Store:
            return Faster(await super().open_store(path, address))

    running = Running(tmp_path)
    running.runtime = Cluster
    running.start()
    try:
        assert running.node.image.cluster_id == id_text(make_id(THEIRS))
        assert len(running.node.image.topics[OFFSETS_TOPIC].partitions) == 3
        running.create("known")
        assert running.publish("known", b"x") == 0
    finally:
        running.stop()
