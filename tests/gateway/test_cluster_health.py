"""What a gateway in front of three nodes tells of them: metrics, and readiness for a load balancer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.cli import main
from postroad.gateway import health, metrics
from postroad.testing import RunningCluster, cluster

from .conftest import RunningGateway, gateway_in_thread
from .processes import eventually, get
from .test_metrics import read

PARTITIONS = 13  # of a topic that node 2 leads, and of __consumer_offsets
ALONE = "alone"  # a topic that node 2 alone has


@pytest.fixture(scope="module")
def running() -> Iterator[RunningCluster]:
    with cluster(nodes=3, settings={"topics.replicas": 3, "topics.internal_replicas": 3}) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap})
        for name, replicas in (("orders", [2, 1, 3]), (ALONE, [2])):
            admin.create_topics([NewTopic(name, 1, replica_assignment=[replicas])])[name].result(60)
        yield started


@pytest.fixture(scope="module")
def gateway(running: RunningCluster) -> Iterator[RunningGateway]:
    with gateway_in_thread(running.bootstrap, [health.routes, metrics.routes]) as started:
        yield started


def sums(gateway: RunningGateway) -> dict[str, float]:
    """Each metric, summed over nodes and all other labels."""
    found: dict[str, float] = {}
    for (name, _), number in read(get(gateway.url + "/metrics")[1]).items():
        found[name] = found.get(name, 0.0) + number
    return found


def test_metrics_tell_of_a_node_that_dies_and_comes_back(
    running: RunningCluster, gateway: RunningGateway
) -> None:
    running.wait_until_whole()
    eventually(lambda: sums(gateway)["postroad_isr_joins_total"] >= 12, "replicas were not made")
    eventually(lambda: sums(gateway)["postroad_partitions_moving"] == 0, "they do not come into sync")
    well = sums(gateway)
    assert well["postroad_cluster_controller"] == 1
    assert well["postroad_cluster_nodes"] == 9
    assert well["postroad_store_current"] == 3
    assert well.keys() >= {"postroad_store_renewal_seconds", "postroad_store_renewals_failed_total"}
    assert well["postroad_partitions_led"] == PARTITIONS + 1
    for wrong in ("leaderless", "below_minimum", "under_replicated", "offline"):
        assert well[f"postroad_partitions_{wrong}"] == 0
    victim = running.node(2)
    victim.kill()

    def is_told() -> bool:
        now = sums(gateway)
        return (
            now["postroad_partitions_under_replicated"] == PARTITIONS
            and now["postroad_isr_leaves_total"] > 0
            and now["postroad_partitions_led"] == PARTITIONS
            and now["postroad_partitions_leaderless"] == 1
            and now["postroad_partitions_below_minimum"] == 0
            and now["postroad_elections_total"] > 0
        )

    eventually(is_told, "nobody tells of the node that died")
    running.node(3).kill()
    eventually(lambda: sums(gateway)["postroad_partitions_below_minimum"] == PARTITIONS, "enough are left")
    victim.start()
    running.node(3).start()
    running.wait_until_whole()
    eventually(lambda: sums(gateway)["postroad_partitions_under_replicated"] == 0, "it counts as away")
    eventually(lambda: sums(gateway)["postroad_replica_lag_messages"] == 0, "it lags")
    assert sums(gateway)["postroad_isr_joins_total"] > 0


def cluster_command(running: RunningCluster, *arguments: str) -> None:
    done = CliRunner().invoke(main, ["cluster", *arguments, "--bootstrap", running.bootstrap])
    assert done.exit_code == 0, done.output


def test_metrics_tell_how_far_a_move_is(running: RunningCluster, gateway: RunningGateway) -> None:
    running.wait_until_whole()
    producer = Producer({"bootstrap.servers": running.bootstrap})
    for _ in range(2):
        producer.produce(ALONE, bytes(500_000), partition=0)
    assert producer.flush(60) == 0
    cluster_command(running, "rate", "1000")
    cluster_command(running, "reassign", ALONE, "0", "1", "--no-wait")
    what = {"topic": ALONE, "partition": "0", "replica": "1"}

    def is_told() -> bool:
        page = read(get(gateway.url + "/metrics")[1])
        left = [
            number
            for (name, labels), number in page.items()
            if name == "postroad_replica_lag_messages" and what.items() <= dict(labels).items()
        ]
        return left == [2] and sums(gateway)["postroad_partitions_moving"] == 1

    eventually(is_told, "nobody tells of the move")
    assert sums(gateway)["postroad_partitions_under_replicated"] == 0
    cluster_command(running, "rate", "--reset")
    eventually(lambda: sums(gateway)["postroad_partitions_moving"] == 0, "it does not end")
    assert sums(gateway)["postroad_replica_lag_messages"] == 0


def test_a_gateway_is_not_ready_while_a_node_that_counts_does_not_answer(
    running: RunningCluster, gateway: RunningGateway
) -> None:
    running.wait_until_whole()
    eventually(lambda: get(gateway.url + "/readyz") == (200, "ready\n"), "it is not ready")
    silent = running.node(3)
    silent.pause()
    try:
        expected = (503, "not ready: node 3 does not answer\n")
        eventually(lambda: get(gateway.url + "/readyz") == expected, "it says ready")
        eventually(lambda: get(gateway.url + "/readyz")[0] == 200, "nobody counts node 3 any more")
    finally:
        silent.resume()
    running.wait_until_whole()
    eventually(lambda: get(gateway.url + "/readyz")[0] == 200, "it is not ready")
