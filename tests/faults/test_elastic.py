"""A cluster is updated, grows, shrinks, loses a node and is restarted under one load, with a stock client.

What it must show of an elastic cluster in one run; each step by itself is tested elsewhere.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, Message

from postroad.cli import main
from postroad.client.metadata import Cluster
from postroad.testing import ClusterNode
from postroad.testing.etcd import etcd
from tests.clients.wait import until

from . import figures
from .load import Bookmarks, Load, assert_all_there_once_in_order, committed, running_threads
from .test_moves import assert_equal_at_rest, create_on, wait_until_held_by
from .versions import BEFORE, VersionedCluster, producer_settings, source_of

SETTINGS = {"topics.replicas": 3, "topics.internal_replicas": 3, "cluster.heal_after_ms": 5_000}
PAUSE_S = 1.0  # between two steps
EVEN_S = 30.0
ROUNDS = 3


class TimedLoad(Load):
    """Notes how long each message took to be acknowledged."""

    def __init__(self, running: VersionedCluster, name: str) -> None:
        super().__init__(running, name, {"linger.ms": 0, **producer_settings(running.source)})
        self.waits: list[float] = []
        self._sent_at: dict[tuple[int, int], float] = {}

    def _send(self, partition: int) -> None:
        number = self.sent[partition]
        self._sent_at.setdefault((partition, number), time.monotonic())
        super()._send(partition)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        super()._delivered(error, message)
        key = message.partition(), int(message.value().split()[1])
        self.waits.append(time.monotonic() - self._sent_at.pop(key))

    def _pause(self) -> None:
        self.producer.poll(0.01)


class Operator:
    """What an operator does, one step after the other, and which wait each of them cost."""

    def __init__(self, running: VersionedCluster, load: TimedLoad) -> None:
        self._running = running
        self._load = load

    def command(self, *arguments: str) -> None:
        done = CliRunner().invoke(
            main, ["cluster", *arguments, "-b", self._running.bootstrap, "--timeout", "60"]
        )
        assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"

    def step(self, name: str, work: Callable[[], None]) -> None:
        before, began = len(self._load.waits), time.monotonic()
        work()
        took = time.monotonic() - began
        time.sleep(PAUSE_S)
        waits = self._load.waits[before:]
        figures.note(f"elastic: {name}", took=took, p99=quantiles(waits, n=100)[98], max=max(waits))

    def restart(self, node: ClusterNode) -> None:
        node.stop()
        node.start()
        self.wait_until_in_sync()

    def wait_until_in_sync(self) -> None:
        alive = sum(node.is_serving for node in self._running.nodes)
        self._running.wait_until(lambda seen: is_whole(seen, alive), "all replicas are in sync")


def is_whole(cluster: Cluster, nodes: int) -> bool:
    partitions = [each for topic in cluster.topics.values() for each in topic.partitions]
    return len(cluster.nodes) == nodes and all(
        sorted(each.isr) == sorted(each.replicas) and each.leader in cluster.nodes for each in partitions
    )


def are_leaders_even(cluster: Cluster) -> bool:
    """Whether no node leads two partitions more than another."""
    leads = Counter(dict.fromkeys(cluster.nodes, 0))
    leads.update(each.leader for topic in cluster.topics.values() for each in topic.partitions)
    return max(leads.values()) - min(leads.values()) <= 1


@pytest.mark.slow
@pytest.mark.cluster_slow
def test_a_cluster_is_updated_grows_shrinks_and_heals_under_load(tmp_path: Path) -> None:
    source = source_of(BEFORE, tmp_path / "old")
    with etcd() as store:
        running = VersionedCluster(tmp_path, 5, store.url(), SETTINGS, source)
        others = running.nodes[3:]
        try:
            for node in running.nodes:
                node.start()
            for node in others:  # they have their ports now, which clients are told of
                node.stop()
            create_on(running, [1, 2, 3])
            producer, bookmarks = TimedLoad(running, "producer"), Bookmarks(running)
            with running_threads(producer, bookmarks):
                operate(running, producer, others)
            figures.note(
                "elastic: all",
                messages=len(producer.waits),
                p50=quantiles(producer.waits, n=100)[49],
                p99=quantiles(producer.waits, n=100)[98],
                max=max(producer.waits),
            )
            assert_all_there_once_in_order(running, [producer], sent_min=500)
            assert bookmarks.acknowledged <= committed(running) <= bookmarks.tried
            for node in running.nodes:
                node.stop()
        finally:
            running.kill()
    assert_equal_at_rest([node for node in running.nodes if node.id != 4])


def operate(running: VersionedCluster, load: TimedLoad, others: list[ClusterNode]) -> None:
    operator = Operator(running, load)
    time.sleep(PAUSE_S)

    def grow() -> None:
        for node in others:
            running.set_version(node.id, None)
            node.start()
        operator.command("rebalance", "--yes", "--observe", "0")
        operator.wait_until_in_sync()

    def drain() -> None:
        for number in (1, 2):
            operator.command("drain", str(number))
        wait_until_held_by(running, {3, 4, 5})

    def lose() -> None:
        for number in (1, 2):
            operator.command("drain", str(number), "--cancel")
        running.node(4).kill()
        wait_until_held_by(running, {1, 2, 3, 5})

    def restart() -> None:
        for _ in range(ROUNDS):
            for node in staying(running):
                operator.restart(node)

    def update() -> None:
        for node in running.nodes[:3]:
            running.set_version(node.id, None)
            operator.restart(node)

    operator.step("rolling update", update)
    operator.step("3 → 5 nodes, rebalanced", grow)
    operator.step("two drained", drain)
    operator.step("one lost and healed", lose)
    operator.step(f"rolling restart × {ROUNDS}", restart)
    operator.command("rebalance", "--yes", "--observe", "0")
    began = time.monotonic()
    until(
        lambda: are_leaders_even(running.wait_until(lambda _: True, "a node answers")),
        "leaders are even",
        EVEN_S,
    )
    figures.note("elastic: leaders even", after=time.monotonic() - began)


def staying(running: VersionedCluster) -> list[ClusterNode]:
    return [node for node in running.nodes if node.id != 4]
