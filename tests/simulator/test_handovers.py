"""A leader that hands over while producers write: what they hear, and what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from postroad.broker.handover import COMMIT_S
from postroad.cluster.leadership import Move
from postroad.wire.messages import produce
from postroad.wire.records import Record, encode_batch
from tests.faults.raw import produce_request, send_batch

from .simulated_cluster import SimulatedCluster, host_of, simulated_cluster
from .simulated_node import SimulatedConnection

DONE, NOT_LEADER, NOT_ENOUGH_REPLICAS = 0, 6, 19
PRODUCER = 7


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with simulated_cluster(durability_flush="os", cluster_replica_lag_ms=30_000) as cluster:
        cluster.create_led_by("jobs", 1, 2, 3)
        yield cluster


def numbered(sequence: int) -> bytearray:
    record = Record(0, 1_000, b"key", b"%d" % sequence, [])
    return encode_batch([record], producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence)


def send(connection: SimulatedConnection, sequence: int) -> tuple[int, int]:
    answer = send_batch(connection, "jobs", numbered(sequence))
    return answer.error_code, answer.base_offset


def hand_over(cluster: SimulatedCluster, to: int) -> Any:
    """The old leader begins to hand over to this node; the task."""
    state = cluster.state("jobs")
    process = cluster.machines[state.leader].process
    assert process is not None
    node = cluster.nodes[state.leader]
    move = Move(node.image.topics["jobs"].id, 0, state.leader_epoch, to)
    return process.start(node.handover.move([move]))


@pytest.mark.parametrize("acks", [1, -1])
def test_what_a_leader_has_taken_is_committed_before_another_one_leads(
    cluster: SimulatedCluster, acks: int
) -> None:
    """A producer that is told "not the leader" for what is stored sends it twice once its epoch changes."""
    with cluster.connect(1) as connection:
        answered = connection.begin(produce, 9, produce_request("jobs", numbered(0), acks=acks))
        cluster.until(lambda: cluster.partition(1, "jobs").log.end_offset == 1)
        assert cluster.partition(1, "jobs").high_watermark == 0, "it is on its way to the followers"
        hand_over(cluster, to=2)
        cluster.until(lambda: cluster.leads(2, "jobs"))
        [partition] = answered().responses[0].partition_responses
        assert (partition.error_code, partition.base_offset) == (DONE, 0)
    assert cluster.partition(2, "jobs").log.end_offset == 1


def test_what_comes_while_a_leader_hands_over_is_stored_nowhere(cluster: SimulatedCluster) -> None:
    for follower in (2, 3):
        cluster.network.cut(host_of(1), host_of(follower))
    with cluster.connect(1) as connection, cluster.connect(1) as second:
        first = connection.begin(produce, 9, produce_request("jobs", numbered(0)))
        cluster.until(lambda: cluster.partition(1, "jobs").log.end_offset == 1)
        moving = hand_over(cluster, to=2)
        cluster.run_for(COMMIT_S / 5)
        assert send(second, 1) == (NOT_LEADER, -1)
        assert cluster.partition(1, "jobs").log.end_offset == 1
        cluster.until(moving.done)  # the followers are cut off: it is not waited for them for ever
        assert first().responses[0].partition_responses[0].error_code == NOT_LEADER
    cluster.network.heal()


def test_a_batch_after_one_that_was_refused_is_asked_for_again(cluster: SimulatedCluster) -> None:
    """A node begins to lead between two batches of one producer: the second must not be out of order.

    librdkafka would take a new epoch then, and send again under it what it has no answer for.
    """
    with cluster.connect(1) as connection:
        assert send(connection, 0) == (DONE, 0)
    with cluster.connect(2) as connection:
        assert send(connection, 1) == (NOT_LEADER, -1)
        hand_over(cluster, to=2)
        cluster.until(lambda: cluster.leads(2, "jobs"))
        assert send(connection, 2) == (NOT_ENOUGH_REPLICAS, -1)
        assert [send(connection, sequence) for sequence in (0, 1, 2)] == [(DONE, 0), (DONE, 1), (DONE, 2)]
