"""A leader that is cut off from the store sends producers away when its followers have left, not before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from postroad.errors import NotLeaderOrFollower
from postroad.wire.messages import delete_records, list_offsets
from postroad.wire.records import Record, encode_batch
from tests.faults.raw import send_batch
from tests.simulator.simulated_cluster import LEASE_MS, SimulatedCluster, host_of, simulated_cluster

ANSWER_S = 2.0


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with simulated_cluster(topics_replicas=3) as running:
        running.create_led_by("jobs", 1, 2, 3)
        running.publish("jobs", b"before")
        yield running


def send_to(cluster: SimulatedCluster, number: int) -> int:
    """The error code of an acks=all produce to this node."""
    with cluster.connect(number) as connection:
        answer = send_batch(
            connection, "jobs", encode_batch([Record(0, 1_000, b"key", b"value", [])]), acks=-1
        )
    return int(answer.error_code)


def test_a_leader_that_was_replaced_and_does_not_know_sends_producers_away(cluster: SimulatedCluster) -> None:
    cluster.cut_from_store(1)
    cluster.until(lambda: cluster.nodes[2].image.topics["jobs"].partitions[0].leader != 1)
    assert cluster.leads(1, "jobs"), "it does not know"
    before = cluster.world.now
    assert send_to(cluster, 1) == NotLeaderOrFollower.code
    assert cluster.world.now - before < ANSWER_S
    end = cluster.replica_end(1, "jobs")
    assert send_to(cluster, 1) == NotLeaderOrFollower.code
    assert cluster.replica_end(1, "jobs") == end, "what is refused at once is not appended"


def test_producers_are_served_while_the_store_is_away_for_all(cluster: SimulatedCluster) -> None:
    for number in cluster.machines:
        cluster.cut_from_store(number)
    cluster.run_for(3 * LEASE_MS / 1000)
    for _ in range(3):
        assert send_to(cluster, 1) == 0
        cluster.run_for(1.0)


def test_a_leader_that_was_replaced_and_does_not_know_tells_where_its_log_begins(
    cluster: SimulatedCluster,
) -> None:
    """As its reads, that is what held when it was replaced; a deletion since then is not known to it."""
    cluster.until(lambda: all(cluster.replica_end(number, "jobs") == 1 for number in (1, 2, 3)))
    for other in (2, 3):
        cluster.network.cut(host_of(1), host_of(other))
    cluster.cut_from_store(1)
    cluster.until(lambda: cluster.leads(2, "jobs"))
    cluster.until(lambda: cluster.partition(2, "jobs").high_watermark == 1)
    partition = delete_records.DeleteRecordsPartition(partition_index=0, offset=1)
    topic = delete_records.DeleteRecordsTopic(name="jobs", partitions=[partition])
    request = delete_records.DeleteRecordsRequest(topics=[topic], timeout_ms=5_000)
    answer = cluster.call(2, delete_records, 2, request)
    assert answer.topics[0].partitions[0].low_watermark == 1
    assert cluster.leads(1, "jobs"), "it does not know"
    assert (earliest(cluster, 1), earliest(cluster, 2)) == (0, 1)


def earliest(cluster: SimulatedCluster, number: int) -> int:
    """Where the log begins, as this node tells it."""
    partition = list_offsets.ListOffsetsPartition(timestamp=-2)
    topic = list_offsets.ListOffsetsTopic(name="jobs", partitions=[partition])
    answer = cluster.call(number, list_offsets, 6, list_offsets.ListOffsetsRequest(topics=[topic]))
    return int(answer.topics[0].partitions[0].offset)
