"""Replicas that were away copy whatever their leader has, wherever its log starts by then."""

from __future__ import annotations

from postroad.client import topics
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.wire.records import Record, encode_batch
from tests.faults.raw import send_batch
from tests.simulator.cluster_client import run
from tests.simulator.simulated_cluster import SimulatedCluster, host_of, simulated_cluster

JOBS = TopicPartition("jobs", 0)


def publish_together(cluster: SimulatedCluster, count: int) -> None:
    """Send `count` messages in one batch."""
    records = [Record(number, 1_000, b"key", b"%d" % number, []) for number in range(count)]
    with cluster.connect(cluster.state("jobs").leader) as connection:
        answer = send_batch(connection, "jobs", encode_batch(records))
        assert answer.error_code == 0, answer.error_message


def delete_before(cluster: SimulatedCluster, offset: int) -> None:
    async def delete(client: Client) -> None:
        assert await topics.delete_before(client, {JOBS: offset}) == {JOBS: offset}

    run(cluster, delete)


def is_whole(cluster: SimulatedCluster) -> bool:
    return len(cluster.state("jobs").isr) == 3


def test_an_empty_replica_copies_a_log_that_starts_inside_of_a_batch() -> None:
    with simulated_cluster() as cluster:
        cluster.create_led_by("jobs", 1, 2, 3)
        cluster.kill(3)
        cluster.until(lambda: len(cluster.state("jobs").isr) == 2)
        publish_together(cluster, 5)
        delete_before(cluster, 3)
        cluster.start(3)
        cluster.until(lambda: is_whole(cluster))
        assert cluster.replica_end(3, "jobs") == 5


def test_a_replica_that_ends_where_the_leaders_log_starts_copies_a_batch_from_its_middle() -> None:
    """What it has itself is deleted at the leader, so that nothing of it is kept."""
    with simulated_cluster() as cluster:
        cluster.create_led_by("jobs", 1, 2, 3)
        cluster.publish("jobs", b"one", b"two")
        cluster.until(lambda: cluster.replica_end(3, "jobs") == 2)
        cluster.kill(3)
        cluster.until(lambda: len(cluster.state("jobs").isr) == 2)
        publish_together(cluster, 5)
        delete_before(cluster, 4)
        cluster.start(3)
        cluster.until(lambda: is_whole(cluster))
        assert cluster.replica_end(3, "jobs") == 7


def test_deleted_records_stay_deleted_when_another_node_leads() -> None:
    with simulated_cluster() as cluster:
        cluster.create_led_by("jobs", 1, 2, 3)
        cluster.publish("jobs", b"one", b"two", b"three")
        delete_before(cluster, 2)
        cluster.kill(1)
        cluster.until(lambda: cluster.state("jobs").leader in (2, 3))
        leader = cluster.state("jobs").leader
        cluster.until(lambda: cluster.leads(leader, "jobs"))
        assert cluster.partition(leader, "jobs").log.start_offset == 2


def test_a_deletion_waits_until_a_replica_that_does_not_follow_may_not_be_elected() -> None:
    with simulated_cluster(cluster_replica_lag_ms=1000) as cluster:
        cluster.create_led_by("jobs", 1, 2, 3)
        cluster.publish("jobs", b"one", b"two", b"three")
        for other in (1, 2):
            cluster.network.cut(host_of(other), host_of(3))
        cluster.publish("jobs", b"four", acks=1)  # so that node 3 is seen to lag
        delete_before(cluster, 2)
        assert 3 not in cluster.state("jobs").isr
