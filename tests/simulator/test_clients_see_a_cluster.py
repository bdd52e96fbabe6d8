"""What clients are told by a cluster: who is there, who leads, and whom to ask instead."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from postroad.client.client import Client
from postroad.client.fetcher import Fetcher
from postroad.client.metadata import NO_LEADER, TopicPartition
from postroad.client.producer import Producer
from postroad.wire.messages import (
    create_topics,
    describe_cluster,
    describe_topic_partitions,
    fetch,
    list_offsets,
    metadata,
    produce,
)
from postroad.wire.messages import offset_for_leader_epoch as epochs
from postroad.wire.records import Record, encode_batch
from simulator.process import Process
from simulator.runtime import ClientRuntime
from tests.faults.raw import batch_of, fetch_at, fetch_request, metadata_of, produce_request, send_batch
from tests.simulator.simulated_cluster import SimulatedCluster, host_of, simulated_cluster

LEADER_NOT_AVAILABLE, NOT_LEADER, INVALID_REPLICATION, INVALID_ASSIGNMENT = 5, 6, 38, 39
OFFSET_NOT_AVAILABLE, OUT_OF_RANGE = 78, 1
FENCED, UNKNOWN_EPOCH = 74, 75
LATEST, EARLIEST = -1, -2


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with simulated_cluster(durability_flush="os") as running:
        yield running


def partition_of(cluster: SimulatedCluster, at: int, topic: str) -> Any:
    with cluster.connect(at) as connection:
        return metadata_of(connection, topic, create=False).topics[0].partitions[0]


def latest(cluster: SimulatedCluster, at: int, topic: str, version: int = 7, timestamp: int = LATEST) -> Any:
    wanted = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = list_offsets.ListOffsetsRequest(
        replica_id=-1, topics=[list_offsets.ListOffsetsTopic(name=topic, partitions=[wanted])]
    )
    return cluster.call(at, list_offsets, version, request).topics[0].partitions[0]


def test_every_node_names_all_nodes_with_their_racks_and_the_same_controller(
    cluster: SimulatedCluster,
) -> None:
    everybody = [(number, host_of(number), 9092, f"rack-{number}") for number in (1, 2, 3)]
    controllers = set()
    for at in (1, 2, 3):
        told = cluster.call(at, metadata, 12, metadata.MetadataRequest(topics=[]))
        assert [(n.node_id, n.host, n.port, n.rack) for n in told.brokers] == everybody
        described = cluster.call(at, describe_cluster, 1, describe_cluster.DescribeClusterRequest())
        assert [(n.broker_id, n.host, n.port, n.rack) for n in described.brokers] == everybody
        controllers |= {told.controller_id, described.controller_id}
    assert len(controllers) == 1


def test_a_dead_follower_is_an_offline_replica_and_is_offered_no_more(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("offline", 1, 2, 3)
    cluster.kill(3)
    cluster.until(lambda: cluster.state("offline").isr == (1, 2))
    told = partition_of(cluster, 1, "offline")
    assert (told.error_code, told.leader_id, list(told.isr_nodes)) == (0, 1, [1, 2])
    assert (list(told.replica_nodes), list(told.offline_replicas)) == ([1, 2, 3], [3])
    assert len(cluster.call(2, metadata, 12, metadata.MetadataRequest(topics=[])).brokers) == 2


def test_a_topic_is_created_while_a_node_is_down_which_joins_when_it_returns(
    cluster: SimulatedCluster,
) -> None:
    cluster.kill(3)
    cluster.until(lambda: 3 not in cluster.nodes[1].image.nodes)
    result = cluster.create("meanwhile", num_partitions=3, replication_factor=3)
    assert result.error_code == 0, result.error_message
    assert all(set(cluster.state("meanwhile", index).isr) == {1, 2} for index in range(3))
    cluster.publish("meanwhile", b"x")
    cluster.start(3)
    cluster.until(lambda: all(len(cluster.state("meanwhile", index).isr) == 3 for index in range(3)))
    cluster.until(lambda: cluster.replica_end(3, "meanwhile") == 1)


def test_a_partition_whose_only_replica_is_dead_has_no_leader(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("leaderless", 3)
    cluster.kill(3)
    cluster.until(lambda: cluster.state("leaderless").leader == -1)
    told = partition_of(cluster, 1, "leaderless")
    assert (told.error_code, told.leader_id) == (LEADER_NOT_AVAILABLE, -1)
    assert (list(told.replica_nodes), list(told.offline_replicas)) == ([3], [3])


def test_replicas_that_may_be_elected_are_described(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("eligible", 1, 2, 3)
    for number in (2, 3):
        cluster.kill(number)
    cluster.until(lambda: cluster.state("eligible").isr == (1,))
    request = describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=[describe_topic_partitions.TopicRequest("eligible")]
    )
    [told] = cluster.call(1, describe_topic_partitions, 0, request).topics[0].partitions
    assert (told.error_code, told.leader_id, list(told.isr_nodes)) == (0, 1, [1])
    assert list(told.eligible_leader_replicas) == list(cluster.state("eligible").elr) != []
    assert list(told.offline_replicas) == [2, 3]


@pytest.mark.parametrize("short_ways", [True, False])
def test_whoever_asks_the_wrong_node_hears_where_the_leader_is(short_ways: bool) -> None:
    with simulated_cluster(durability_flush="os", kafka_short_ways=str(short_ways).lower()) as cluster:
        cluster.create_led_by("hinted", 2, 3)
        epoch = cluster.state("hinted").leader_epoch
        sent = cluster.call(1, produce, 10, produce_request("hinted", batch_of(b"x")))
        refused = sent.responses[0].partition_responses[0]
        assert refused.error_code == NOT_LEADER
        assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (2, epoch)
        assert [(n.node_id, n.host, n.port, n.rack) for n in sent.node_endpoints] == [
            (2, host_of(2), 9092, "rack-2")
        ]
        request = fetch_request("hinted", 0)
        request.topics[0].topic_id = cluster.nodes[1].image.topics["hinted"].id
        fetched = cluster.call(3, fetch, 16, request)  # a follower
        refused = fetched.responses[0].partitions[0]
        assert refused.error_code == NOT_LEADER
        assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (2, epoch)
        assert [(n.node_id, n.host) for n in fetched.node_endpoints] == [(2, host_of(2))]
        with cluster.connect(3) as connection:
            assert fetch_at(connection, "hinted", 0).error_code == NOT_LEADER


def test_what_is_well_answered_has_no_hints(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("plain", 2, 3)
    batch = encode_batch([Record(0, 1_000, b"key", b"x", [])])
    sent = cluster.call(2, produce, 10, produce_request("plain", batch, acks=-1))
    assert sent.responses[0].partition_responses[0].error_code == 0
    assert list(sent.node_endpoints) == []


def test_a_new_leader_tells_no_end_before_it_has_committed_what_it_found() -> None:
    with simulated_cluster(durability_flush="os", cluster_replica_lag_ms=30_000) as cluster:
        cluster.create_led_by("ends", 1, 2, 3)
        cluster.publish("ends", b"0")
        cluster.network.cut(host_of(1), host_of(3))
        cluster.publish("ends", b"1", acks=1)
        cluster.until(lambda: cluster.replica_end(2, "ends") == 2)
        cluster.network.cut(host_of(2), host_of(3))
        cluster.kill(1)
        cluster.until(lambda: cluster.leads(2, "ends"))
        assert latest(cluster, 2, "ends").error_code == OFFSET_NOT_AVAILABLE
        assert latest(cluster, 2, "ends", version=4).error_code == LEADER_NOT_AVAILABLE
        assert latest(cluster, 2, "ends", timestamp=5_000).error_code == OFFSET_NOT_AVAILABLE
        found = latest(cluster, 2, "ends", timestamp=500)
        assert (found.error_code, found.offset) == (0, 0)
        assert latest(cluster, 2, "ends", timestamp=EARLIEST).offset == 0
        cluster.network.heal()
        cluster.until(lambda: latest(cluster, 2, "ends").error_code == 0)
        assert latest(cluster, 2, "ends").offset == 2


def test_the_end_is_told_in_time_though_nothing_is_committed(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("bounded", 1, 2, 3)
    cluster.publish("bounded", b"0")
    for number in (2, 3):
        cluster.network.cut(host_of(1), host_of(number))
    cluster.publish("bounded", b"1", acks=1)
    began = cluster.world.now
    assert latest(cluster, 1, "bounded").offset in (-1, 1)
    assert cluster.world.now - began < 5


def test_a_fetch_between_the_watermark_and_the_end_waits(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("between", 1, 2, 3)
    cluster.publish("between", b"0")
    for number in (2, 3):
        cluster.network.cut(host_of(1), host_of(number))
    cluster.publish("between", b"1", b"2", acks=1)
    with cluster.connect(1) as connection:
        answer = fetch_at(connection, "between", 2)
        assert (answer.error_code, answer.high_watermark, answer.records) == (0, 1, b"")
        assert fetch_at(connection, "between", 4).error_code == OUT_OF_RANGE


def test_topics_get_the_replicas_that_were_asked_for(cluster: SimulatedCluster) -> None:
    created = cluster.create("placed", num_partitions=6, replication_factor=2)
    assert (created.error_code, created.num_partitions, created.replication_factor) == (0, 6, 2)
    states = [cluster.state("placed", index) for index in range(6)]
    assert all(len(set(state.replicas)) == 2 for state in states)
    assert {state.leader for state in states} == {1, 2, 3}


def test_replicas_by_hand_are_taken_in_their_order(cluster: SimulatedCluster) -> None:
    assignments = [create_topics.CreatableReplicaAssignment(index, [3, 1 + index]) for index in (0, 1)]
    created = cluster.create("by-hand", num_partitions=-1, replication_factor=-1, assignments=assignments)
    assert created.error_code == 0, created.error_message
    assert [cluster.state("by-hand", index).replicas for index in (0, 1)] == [(3, 1), (3, 2)]
    assert cluster.state("by-hand").leader == 3


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"replication_factor": 4}, INVALID_REPLICATION),
        ({"replication_factor": 0}, INVALID_REPLICATION),
        (
            {"assignments": [create_topics.CreatableReplicaAssignment(0, [1, 9])], "replication_factor": -1}
            | {"num_partitions": -1},
            INVALID_ASSIGNMENT,
        ),
        (
            {"assignments": [create_topics.CreatableReplicaAssignment(0, [1, 1])], "replication_factor": -1}
            | {"num_partitions": -1},
            INVALID_ASSIGNMENT,
        ),
    ],
)
def test_replicas_that_can_not_be_placed_are_refused(
    cluster: SimulatedCluster, given: dict[str, Any], error: int
) -> None:
    refused = cluster.create("refused", **given)
    assert refused.error_code == error
    assert refused.error_message


def test_the_default_number_of_replicas_counts(cluster: SimulatedCluster) -> None:
    with simulated_cluster(topics_replicas=2, durability_flush="os") as other:
        created = other.create("default", replication_factor=-1)
        assert (created.error_code, created.replication_factor) == (0, 2)
        with other.connect(3) as connection:
            [topic] = metadata_of(connection, "on-demand").topics
        assert len(topic.partitions[0].replica_nodes) == 2


def test_own_producers_and_consumers_go_on_when_a_leader_dies(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("goes-on", 3, 1, 2)
    seen: list[bytes | None] = []
    sent: list[float] = []

    async def work(client: Client) -> None:
        async with Producer(client) as producer:
            for number in range(40):
                await (await producer.send("goes-on", b"%d" % number, partition=0))
                sent.append(cluster.world.now)
                await asyncio.sleep(0.1)
        fetcher = Fetcher(client, reset=None)
        fetcher.seek({TopicPartition("goes-on", 0): 0})
        while len(seen) < 40:
            for fetched in await fetcher.next(5.0):
                seen.extend(record.value for record in fetched.records)
        await fetcher.close()

    process = Process(cluster.world, "own-client")

    async def run() -> None:
        bootstrap = ",".join(f"{host_of(number)}:9092" for number in (3, 1))
        async with Client(bootstrap, runtime=ClientRuntime(process, cluster.network)) as client:
            await work(client)

    task = process.start(run())
    cluster.until(lambda: len(sent) == 10)
    cluster.kill(3)
    cluster.until(task.done, 60.0)
    task.result()
    assert seen == [b"%d" % number for number in range(40)]
    gap_s = max(after - before for before, after in pairwise(sent))
    assert gap_s < 4.5, "a lease of 2 s, an election, and no long pause of the client's own"


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_created_topic_can_be_used_at_its_leaders_at_once(cluster: SimulatedCluster, at: int) -> None:
    created = cluster.create("usable", at=at, num_partitions=6, replication_factor=2)
    assert created.error_code == 0
    for index in range(6):
        batch = encode_batch([Record(0, 1_000, b"key", b"x", [])])
        with cluster.connect(cluster.state("usable", index).leader) as connection:
            assert send_batch(connection, "usable", batch, partition=index, acks=1).error_code == 0


def test_where_an_epoch_ended_is_told_by_the_leader_to_those_who_know_its_epoch(
    cluster: SimulatedCluster,
) -> None:
    cluster.create_led_by("epochs", 1, 2, 3)
    cluster.publish("epochs", b"0", b"1")
    first = cluster.state("epochs").leader_epoch
    cluster.kill(1)
    cluster.until(lambda: any(cluster.leads(number, "epochs") for number in (2, 3)))
    leader, epoch = cluster.state("epochs").leader, cluster.state("epochs").leader_epoch
    cluster.publish("epochs", b"2")

    def ask(at: int, known: int) -> Any:
        wanted = epochs.OffsetForLeaderPartition(partition=0, current_leader_epoch=known, leader_epoch=first)
        request = epochs.OffsetForLeaderEpochRequest(
            topics=[epochs.OffsetForLeaderTopic(topic="epochs", partitions=[wanted])]
        )
        return cluster.call(at, epochs, 4, request).topics[0].partitions[0]

    told = ask(leader, epoch)
    assert (told.error_code, told.leader_epoch, told.end_offset) == (0, first, 2)
    assert ask(leader, epoch - 1).error_code == FENCED
    assert ask(leader, epoch + 1).error_code == UNKNOWN_EPOCH
    assert ask(5 - leader, epoch).error_code == NOT_LEADER, "a follower"


@pytest.mark.parametrize("silent", ["leader", "all but the leader's machine are asked"])
def test_a_silent_leader_costs_seconds_and_no_time_out(cluster: SimulatedCluster, silent: str) -> None:
    """A machine without power says no goodbye: a request that waits there is sent to the next leader."""
    cluster.create_led_by("silent", 3, 1, 2)
    first = 1 if silent == "leader" else 3  # where the client asks for metadata before
    sent: list[float] = []

    async def work() -> None:
        bootstrap = ",".join(f"{host_of(number)}:9092" for number in dict.fromkeys((first, 1, 2, 3)))
        runtime = ClientRuntime(process, cluster.network)
        async with Client(bootstrap, runtime=runtime) as client, Producer(client) as producer:
            for number in range(60):
                await (await producer.send("silent", b"%d" % number, partition=0))
                sent.append(cluster.world.now)
                await asyncio.sleep(0.1)

    process = Process(cluster.world, "own-client")
    task = process.start(work())
    cluster.until(lambda: len(sent) == 10)
    for other in (host_of(1), host_of(2), process.host):
        cluster.network.cut(host_of(3), other)
    cluster.cut_from_store(3)
    cluster.until(task.done, 60.0)
    task.result()
    gap_s = max(after - before for before, after in pairwise(sent))
    assert gap_s < 7.0, "a lease, an election, and a few looks around"


def test_a_node_that_takes_connections_and_answers_nothing_is_passed_over(cluster: SimulatedCluster) -> None:
    """A process that SIGSTOP has stopped is such a node: its kernel still takes connections."""
    cluster.create_led_by("passed", 2, 3)
    paused = cluster.machines[1].process
    assert paused is not None
    paused.pause(600.0)
    process = Process(cluster.world, "own-client")

    async def work() -> list[int]:
        bootstrap = ",".join(f"{host_of(number)}:9092" for number in (1, 2, 3))
        async with Client(bootstrap, runtime=ClientRuntime(process, cluster.network)) as client:
            return [part.leader for part in (await client.topic("passed")).partitions]

    task = process.start(work())
    cluster.until(task.done, 20.0)
    assert task.result() == [2]


def test_a_partition_that_was_chosen_is_waited_for_while_nobody_leads_it(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("chosen", 3)
    cluster.kill(3)
    cluster.until(lambda: partition_of(cluster, 1, "chosen").leader_id == NO_LEADER)
    process = Process(cluster.world, "own-client")

    async def work() -> int:
        bootstrap = ",".join(f"{host_of(number)}:9092" for number in (1, 2))
        runtime = ClientRuntime(process, cluster.network)
        async with Client(bootstrap, runtime=runtime) as client, Producer(client) as producer:
            return (await (await producer.send("chosen", b"x", partition=0))).offset

    task = process.start(work())
    cluster.run_for(1.0)
    cluster.start(3)
    cluster.until(task.done)
    assert task.result() == 0
