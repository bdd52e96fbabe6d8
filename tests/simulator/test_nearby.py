"""Consumers in the rack of a follower: they are sent there, and served what is committed, or sent back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.metadata import TopicPartition
from postroad.wire.messages import delete_records, fetch
from simulator.campaign import Campaign, play_apart
from simulator.process import Process
from simulator.runtime import ClientRuntime
from tests.faults.raw import fetch_request
from tests.simulator.caught import is_caught
from tests.simulator.simulated_cluster import SimulatedCluster, host_of, simulated_cluster

OUT_OF_RANGE, NOT_LEADER, FENCED, UNKNOWN_EPOCH, OFFSET_NOT_AVAILABLE = 1, 6, 74, 75, 78
TOPIC = "orders"


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with simulated_cluster(durability_flush="os") as running:
        running.create_led_by(TOPIC, 1, 2, 3)
        running.publish(TOPIC, b"a", b"b", b"c")
        running.until(lambda: watermark(running, 2) == 3)
        yield running


def watermark(cluster: SimulatedCluster, node: int) -> int:
    found = cluster.nodes[node].partitions.replica(cluster.nodes[node].image.topics[TOPIC].id, 0)
    return -1 if found is None else found.high_watermark


def fetched(
    cluster: SimulatedCluster, at: int, offset: int, rack: str, *, wait_ms: int = 0, epoch: int = -1
) -> Any:
    request = fetch_request(TOPIC, offset, max_wait_ms=wait_ms)
    request.rack_id = rack
    request.topics[0].partitions[0].current_leader_epoch = epoch
    return cluster.call(at, fetch, 12, request).responses[0].partitions[0]


def test_a_leader_names_the_replica_in_the_consumers_rack_without_records(cluster: SimulatedCluster) -> None:
    answer = fetched(cluster, 1, 0, "rack-2", wait_ms=5_000)
    assert (answer.error_code, answer.preferred_read_replica, bool(answer.records)) == (0, 2, False)
    for rack in ("rack-1", "", "rack-9"):
        answer = fetched(cluster, 1, 0, rack)
        assert (answer.preferred_read_replica, bool(answer.records)) == (-1, True)
    assert fetched(cluster, 1, 7, "rack-2").error_code == OUT_OF_RANGE, "the leader itself knows best"


def test_a_follower_serves_consumers_of_its_rack_only(cluster: SimulatedCluster) -> None:
    answer = fetched(cluster, 2, 0, "rack-2")
    assert (answer.error_code, answer.high_watermark, bool(answer.records)) == (0, 3, True)
    assert fetched(cluster, 2, 0, "").error_code == NOT_LEADER
    assert fetched(cluster, 2, 0, "rack-3").error_code == NOT_LEADER


def test_a_follower_fences_epochs_as_a_leader_does(cluster: SimulatedCluster) -> None:
    epoch = cluster.state(TOPIC).leader_epoch
    assert fetched(cluster, 2, 0, "rack-2", epoch=epoch).error_code == 0
    assert fetched(cluster, 2, 0, "rack-2", epoch=epoch + 1).error_code == UNKNOWN_EPOCH


def test_an_offset_above_the_followers_watermark_is_waited_for_then_not_available(
    cluster: SimulatedCluster,
) -> None:
    assert fetched(cluster, 2, 4, "rack-2").error_code == OFFSET_NOT_AVAILABLE
    before = cluster.world.now
    assert fetched(cluster, 2, 4, "rack-2", wait_ms=400).error_code == OFFSET_NOT_AVAILABLE
    assert cluster.world.now - before >= 0.4
    cluster.publish(TOPIC, b"d", b"e")
    answer = fetched(cluster, 2, 4, "rack-2", wait_ms=2_000)
    assert (answer.error_code, bool(answer.records)) == (0, True)


def test_an_offset_below_the_start_is_out_of_range_at_a_follower(cluster: SimulatedCluster) -> None:
    partition = delete_records.DeleteRecordsPartition(partition_index=0, offset=2)
    topic = delete_records.DeleteRecordsTopic(name=TOPIC, partitions=[partition])
    cluster.call(1, delete_records, 2, delete_records.DeleteRecordsRequest(topics=[topic], timeout_ms=5_000))
    assert fetched(cluster, 2, 0, "rack-2").error_code == OUT_OF_RANGE
    assert fetched(cluster, 2, 2, "rack-2").error_code == 0


def test_what_is_not_committed_is_not_served_by_a_follower(cluster: SimulatedCluster) -> None:
    cluster.network.cut(host_of(1), host_of(3))  # node 3 counts as in sync for now, and has not the next one
    cluster.publish(TOPIC, b"d", acks=1)
    cluster.until(lambda: cluster.replica_end(2, TOPIC) == 4)
    cluster.run_for(1.0)
    answer = fetched(cluster, 2, 3, "rack-2")
    assert (answer.error_code, answer.high_watermark, bool(answer.records)) == (0, 3, False)


def test_a_follower_that_hears_nothing_of_its_leader_sends_consumers_back(cluster: SimulatedCluster) -> None:
    cluster.network.cut(host_of(1), host_of(2))
    cluster.run_for(6.0)
    assert fetched(cluster, 2, 0, "rack-2").error_code == NOT_LEADER


def test_a_consumer_that_waits_at_a_follower_gets_what_is_committed_within_moments(
    cluster: SimulatedCluster,
) -> None:
    process = Process(cluster.world, "reader")
    came: dict[bytes, float] = {}

    async def read() -> None:
        bootstrap = f"{host_of(1)}:9092"
        async with (
            Client(bootstrap, runtime=ClientRuntime(process, cluster.network)) as client,
            Consumer(client, rack="rack-2") as consumer,
        ):
            await consumer.assign({TopicPartition(TOPIC, 0): 0})
            while len(came) < 9:
                for _, records, _ in await consumer.poll(1.0):
                    assert {near.node for near in consumer.near.values()} == {2}
                    came.update({record.value or b"": cluster.world.now for record in records})

    reading = process.start(read())
    cluster.until(lambda: len(came) == 3)
    cluster.run_for(1.0)
    for number in range(6):
        cluster.publish(TOPIC, value := b"%d" % number)
        committed_at = cluster.world.now
        cluster.until(lambda value=value: value in came)  # type: ignore[misc]
        assert came[value] - committed_at < 0.05
        cluster.run_for(0.3)
    cluster.until(reading.done)
    reading.result()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_seed_with_readers_in_racks_breaks_no_promise(seed: int) -> None:
    result = play_apart(Campaign(nodes=3, workloads=("nearby",)), seed)
    assert [str(violation) for violation in result.violations] == []
    assert result.sometimes["nearby: records came while a replica nearby was read"] > 0


def test_a_follower_that_serves_what_is_not_committed_is_caught() -> None:
    kinds = ("power", "sag", "kill")  # what is not committed is lost at times
    assert is_caught(
        Campaign(nodes=3, kinds=kinds, workloads=("nearby",), mutant="follower-reads-uncommitted")
    )
