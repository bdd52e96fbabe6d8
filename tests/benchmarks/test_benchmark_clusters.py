"""Clusters as servers of the benchmark: who is measured where, and a real one that answers the clients."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import report, runner
from benchmarks.clusters import KafkaCluster, PostroadCluster, PostroadTwo
from benchmarks.peers import PEERS
from benchmarks.process import free_ports
from benchmarks.results import ModeResults, ServerFacts
from benchmarks.servers import Kafka, Mode, Postroad
from benchmarks.session import Limits, Measurement, Session
from benchmarks.workload import Part
from benchmarks.workloads import WORKLOADS

SECONDS = 50  # a run ends by its count, however slow the machine is

needs_client = pytest.mark.skipif(
    not shutil.which("cc") or not Path("/usr/include/librdkafka/rdkafka.h").exists(),
    reason="no C compiler or no librdkafka here (Debian: gcc, libc6-dev, librdkafka-dev)",
)


def measured(server: type[Postroad | Kafka]) -> set[Part]:
    return {workload.part for workload in WORKLOADS if workload.fits(server)}


def test_cluster_is_measured_only_where_it_is_named() -> None:
    assert measured(PostroadCluster) == measured(KafkaCluster) == {Part.CLUSTER, Part.FAILOVER}
    assert measured(PostroadTwo) == {Part.TWO_NODES}
    assert Part.TRANSACTIONS in measured(Postroad)
    assert measured(Kafka) == {Part.LOGS, Part.TRANSACTIONS, Part.QUEUES}


def test_every_ratio_is_to_servers_that_exist() -> None:
    for part in Part:
        assert {part.ours, *part.against} <= PEERS.keys()


def test_clusters_and_killed_nodes_have_servers_of_their_own() -> None:
    chosen = command.chosen(["logs", "queues", "cluster", "failover", "two-nodes"], quick=False)
    groups = [{workload.part for workload in group} for group in runner.groups(chosen)]
    assert groups == [{Part.LOGS, Part.QUEUES}, {Part.CLUSTER}, {Part.FAILOVER}, {Part.TWO_NODES}]


def test_groups_of_one_mode_become_one_report() -> None:
    outcome, other = ModeResults(Mode.PAGE_CACHE), ModeResults(Mode.PAGE_CACHE)
    for results, key in ((outcome, "cluster-single"), (other, "failover")):
        results.servers = {
            name: ServerFacts("1.2.3", 0.5, 40.0) for name in ("postroad-cluster", "kafka-cluster")
        }
        results.results[key] = {
            "postroad-cluster": {1: Measurement((10.0,), 100, 1.0)},
            "kafka-cluster": {1: Measurement((2.0,), 100, 2.0)},
        }
    outcome.add(other)
    text = report.render([outcome], rounds=1)
    assert "5.00× (≥ 2.5 ✓)" in text
    assert "### Failover" in text
    assert text.count("## Acknowledged") == 1


def test_kafka_nodes_know_each_other_and_keep_three_replicas(tmp_path: Path) -> None:
    lines = KafkaCluster(Mode.SYNCED, tmp_path).properties(2, 9093, {1: 11, 2: 12, 3: 13})
    assert "controller.quorum.voters=1@127.0.0.1:11,2@127.0.0.1:12,3@127.0.0.1:13" in lines
    assert "listeners=PLAINTEXT://127.0.0.1:9093,CONTROLLER://127.0.0.1:12" in lines
    assert "min.insync.replicas=2" in lines
    assert "offsets.topic.replication.factor=3" in lines
    assert "log.flush.interval.messages=1" in lines


def test_ports_in_a_row_are_free() -> None:
    first = free_ports(3)
    for port in range(first, first + 3):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    server = PostroadCluster(Mode.PAGE_CACHE, tmp_path_factory.mktemp("data") / "postroad")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        try:
            server.start()
            yield Session(server, "test", Limits())
        finally:
            server.stop()


@needs_client
def test_cluster_takes_messages_for_all_partitions(session: Session) -> None:
    topic = session.topic("spread", partitions=2)
    figures, cpu = session.run("produce", topic, 3000, 100, SECONDS, 5, 2)
    assert figures["messages"] == 3000
    assert cpu > 0


@needs_client
def test_queue_of_a_cluster_gives_every_message_once(session: Session) -> None:
    queue = session.queue("spread-queue", partitions=6)
    figures, _ = session.run_queue("flow", queue, count=2000, consumers=4, acks="single", seconds=SECONDS)
    assert figures["messages"] == 1999  # the first one warms up


@needs_client
def test_leader_is_told_with_its_port(session: Session) -> None:
    found = session.leader(session.topic("led"))
    assert found["node"] in (1, 2, 3)
    assert found["port"] == session.server.port + found["node"] - 1
    assert 1 <= found["in_sync"] <= 3


@needs_client
def test_gap_is_the_longest_wait_for_an_acknowledgement(session: Session) -> None:
    figures, _ = session.run("gap", session.topic("gap"), 0, 100, 0.5, 100)
    assert figures["messages"] > 1
    assert figures["gap_ms"] > 0
