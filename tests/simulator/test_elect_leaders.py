"""ElectLeaders: preferred leaders lead again, and an operator may choose whoever is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from postroad.wire.messages import elect_leaders as api
from tests.simulator.simulated_cluster import SimulatedCluster, simulated_cluster

UNKNOWN_TOPIC, NOT_CONTROLLER, INVALID_REQUEST = 3, 41, 42
PREFERRED_NOT_AVAILABLE, ELIGIBLE_NOT_AVAILABLE, NOT_NEEDED = 80, 83, 84
PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with simulated_cluster(durability_flush="os") as running:
        yield running


def ask(
    cluster: SimulatedCluster, at: int, topic: str | None, kind: int = PREFERRED, version: int = 2
) -> Any:
    topics = None if topic is None else [api.TopicPartitions(topic, [0])]
    request = api.ElectLeadersRequest(election_type=kind, topic_partitions=topics)
    return cluster.call(at, api, version, request)


def error_of(answer: Any) -> int:
    [topic] = answer.replica_election_results
    [partition] = topic.partition_result
    return int(partition.error_code)


def come_back(cluster: SimulatedCluster, topic: str, number: int) -> None:
    """The preferred leader dies and returns, and another one leads: nothing moves by itself for a while."""
    cluster.kill(number)
    cluster.until(lambda: cluster.state(topic).leader not in (number, -1))
    cluster.start(number)
    cluster.until(lambda: number in cluster.state(topic).isr)
    assert cluster.state(topic).leader != number


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_whichever_node_is_asked_the_preferred_leader_leads_again(
    cluster: SimulatedCluster, at: int, version: int
) -> None:
    cluster.create_led_by("preferred", 2, 1, 3)
    come_back(cluster, "preferred", 2)
    epoch = cluster.state("preferred").leader_epoch
    assert error_of(ask(cluster, at, "preferred", version=version)) == 0
    assert cluster.nodes[at].image.topics["preferred"].partitions[0].leader == 2
    assert cluster.state("preferred").leader_epoch == epoch + 1
    cluster.until(lambda: cluster.leads(2, "preferred"))
    assert cluster.publish("preferred", b"0") == 0
    assert error_of(ask(cluster, at, "preferred", version=version)) == NOT_NEEDED


def test_without_a_list_only_partitions_that_needed_it_are_answered(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("stays", 1, 3)
    cluster.create_led_by("comes-back", 2, 1, 3)
    come_back(cluster, "comes-back", 2)
    answer = ask(cluster, 1, None)
    told = {topic.topic: topic.partition_result[0].error_code for topic in answer.replica_election_results}
    assert told["comes-back"] == 0
    assert "stays" not in told


def test_a_preferred_leader_that_is_dead_is_refused_and_the_leader_stays(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("away", 2, 1, 3)
    cluster.kill(2)
    cluster.until(lambda: cluster.state("away").leader not in (2, -1))
    leader = cluster.state("away").leader
    assert error_of(ask(cluster, 1, "away")) == PREFERRED_NOT_AVAILABLE
    assert cluster.leads(leader, "away")


def test_unknown_topics_and_elections_are_refused(cluster: SimulatedCluster) -> None:
    assert error_of(ask(cluster, 1, "nothing")) == UNKNOWN_TOPIC
    assert ask(cluster, 1, None, kind=7).error_code == INVALID_REQUEST


def test_an_unclean_election_takes_whoever_is_left_and_only_where_nobody_leads(
    cluster: SimulatedCluster,
) -> None:
    cluster.create_led_by("lost", 2, 3)
    cluster.publish("lost", b"0")
    cluster.kill(3)
    cluster.until(lambda: cluster.state("lost").isr == (2,))
    cluster.publish("lost", b"1")
    cluster.kill(2)
    cluster.until(lambda: cluster.state("lost").leader == -1)
    cluster.until(lambda: cluster.nodes[1].image.controller == 1)
    assert error_of(ask(cluster, 1, "lost", kind=UNCLEAN)) == ELIGIBLE_NOT_AVAILABLE
    cluster.start(3)
    assert ask(cluster, 3, "lost", kind=UNCLEAN).error_code == NOT_CONTROLLER
    assert error_of(ask(cluster, 1, "lost", kind=UNCLEAN)) == 0
    assert (cluster.state("lost").leader, cluster.state("lost").isr) == (3, (3,))
    cluster.until(lambda: cluster.leads(3, "lost"))
    assert cluster.publish("lost", b"2") == 1, "what only the dead one had is gone"
    assert error_of(ask(cluster, 1, "lost", kind=UNCLEAN)) == NOT_NEEDED
