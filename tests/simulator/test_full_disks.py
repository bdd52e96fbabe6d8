"""Nobody waits for a node whose disk is full: it hands over, leaves ISRs, and joins when it has room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from postroad.broker.replicas import REOPEN_S
from postroad.client import topics
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.wire.messages import delete_records
from postroad.wire.records import Record, encode_batch
from tests.faults.raw import send_batch
from tests.simulator.cluster_client import run
from tests.simulator.simulated_cluster import SimulatedCluster, host_of, simulated_cluster

STORAGE_ERROR = 56
HANDED_OVER_S = 1.0
BATCH = encode_batch([Record(0, 1_000, b"key", b"x" * 8192, [])])


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with simulated_cluster(topics_replicas=3, cluster_replica_lag_ms=1000) as running:
        running.create_led_by("jobs", 1, 2, 3)
        running.until(lambda: len(running.state("jobs").isr) == 3)
        yield running


def fill(cluster: SimulatedCluster, number: int) -> None:
    drive = cluster.machines[number].drive
    drive.capacity = sum(len(file.content) for _, file in drive.files())


def free(cluster: SimulatedCluster, number: int) -> None:
    cluster.machines[number].drive.capacity = None


def send(cluster: SimulatedCluster, at: int) -> int:
    with cluster.connect(at) as connection:
        return int(send_batch(connection, "jobs", BATCH, acks=-1).error_code)


def test_another_replica_leads_as_soon_as_the_disk_refuses(cluster: SimulatedCluster) -> None:
    fill(cluster, 1)
    assert send(cluster, 1) == STORAGE_ERROR
    cluster.until(lambda: cluster.state("jobs").leader == 2, HANDED_OVER_S)
    assert cluster.state("jobs").isr == (2, 3), "nobody waits for what the full disk can't take"
    cluster.until(lambda: cluster.leads(2, "jobs"))
    assert send(cluster, 2) == 0


def test_it_joins_again_when_there_is_room(cluster: SimulatedCluster) -> None:
    fill(cluster, 1)
    send(cluster, 1)
    cluster.until(lambda: cluster.leads(2, "jobs"))
    send(cluster, 2)
    cluster.run_for(2.0)
    assert cluster.state("jobs").isr == (2, 3)
    free(cluster, 1)
    cluster.until(lambda: len(cluster.state("jobs").isr) == 3)
    assert cluster.replica_end(1, "jobs") == cluster.replica_end(2, "jobs") == 1


def test_a_follower_whose_disk_refuses_is_not_waited_for(cluster: SimulatedCluster) -> None:
    """Not for the time after which it would count as lagging."""
    fill(cluster, 3)
    began = cluster.world.now
    assert send(cluster, 1) == 0
    assert cluster.world.now - began < HANDED_OVER_S
    assert cluster.state("jobs").isr == (1, 2)
    cluster.run_for(2.0)
    assert cluster.state("jobs").isr == (1, 2)
    free(cluster, 3)
    cluster.until(lambda: len(cluster.state("jobs").isr) == 3)


def test_where_all_disks_are_full_leaderships_do_not_go_round_and_round(cluster: SimulatedCluster) -> None:
    for number in (1, 2, 3):
        fill(cluster, number)
    epoch = cluster.state("jobs").leader_epoch
    for _ in range(20):
        assert send(cluster, cluster.state("jobs").leader) != 0
        cluster.run_for(0.4)
    assert cluster.state("jobs").leader_epoch <= epoch + 3, "each node has handed over once"
    for number in (1, 2, 3):
        free(cluster, number)
    cluster.until(lambda: len(cluster.state("jobs").isr) == 3)
    assert send(cluster, cluster.state("jobs").leader) == 0


def test_a_log_that_cannot_be_cut_for_want_of_room_is_tried_now_and_then_only(
    cluster: SimulatedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """It is closed and opened each time, which heals nothing, and each time an error is logged."""
    cluster.network.cut(host_of(1), host_of(3))
    cluster.network.cut(host_of(2), host_of(3))
    fill(cluster, 3)
    cluster.create_led_by("late", 1, 2, 3)  # there is no room to write down where a log begins
    cluster.publish("late", b"one", acks=1)  # so that node 3 is seen to lag
    cluster.until(lambda: len(cluster.state("late").isr) == 2)
    delete_all(cluster, "late")
    cluster.network.heal()
    cluster.run_for(4 * REOPEN_S)
    tries = [line for line in caplog.messages if line.startswith("late-0 can't follow its leader: ")]
    assert 2 <= len(tries) <= 6
    free(cluster, 3)
    cluster.until(lambda: len(cluster.state("late").isr) == 3)


def test_what_a_full_disk_could_not_take_can_be_deleted(cluster: SimulatedCluster) -> None:
    """The follower waits to fetch it again when it hears that it is gone."""
    fill(cluster, 3)
    assert send(cluster, 1) == 0
    assert cluster.state("jobs").isr == (1, 2)
    partition = delete_records.DeleteRecordsPartition(partition_index=0, offset=1)
    topic = delete_records.DeleteRecordsTopic(name="jobs", partitions=[partition])
    request = delete_records.DeleteRecordsRequest(topics=[topic], timeout_ms=5_000)
    answer = cluster.call(1, delete_records, 2, request)
    assert answer.topics[0].partitions[0].low_watermark == 1
    free(cluster, 3)
    cluster.until(lambda: len(cluster.state("jobs").isr) == 3)
    assert cluster.replica_end(3, "jobs") == 1


def delete_all(cluster: SimulatedCluster, topic: str) -> None:
    async def delete(client: Client) -> None:
        end, part = cluster.replica_end(1, topic), TopicPartition(topic, 0)
        assert await topics.delete_before(client, {part: end}) == {part: end}

    run(cluster, delete)
