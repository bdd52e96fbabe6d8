"""Metadata that are asked for while a leader dies: they name one that lives, or are answered all the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from postroad.broker.leader_checks import ELECTION_S, HOLD_S
from postroad.broker.orphans import LISTED_S, PAUSE_S
from postroad.cluster import leadership
from postroad.errors import LeaderNotAvailable
from tests.faults.raw import metadata_of
from tests.simulator.simulated_cluster import LEASE_MS, SimulatedCluster, host_of, simulated_cluster

AT_ONCE_S = 0.05
STALE_S = LEASE_MS / 1000 + ELECTION_S


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with simulated_cluster(topics_replicas=3) as running:
        running.create_led_by("jobs", 1, 2, 3)
        running.until(running.is_complete)
        yield running


def ask(cluster: SimulatedCluster, at: int, topic: str = "jobs") -> tuple[Any, float]:
    """The answer, and how long it took."""
    with cluster.connect(at) as connection:
        began = cluster.world.now
        return metadata_of(connection, topic, create=False), cluster.world.now - began


def leader_of(answer: Any) -> int:
    return int(answer.topics[0].partitions[0].leader_id)


@pytest.mark.parametrize("asked", [2, 3])
def test_who_asks_the_moment_a_leader_dies_hears_of_the_death_and_then_of_the_successor(
    cluster: SimulatedCluster, asked: int
) -> None:
    cluster.kill(1)
    answer, took_s = ask(cluster, asked)
    assert [node.node_id for node in answer.brokers] == [2, 3]
    assert leader_of(answer) == -1
    assert answer.topics[0].partitions[0].error_code == LeaderNotAvailable.code
    cluster.run_for(PAUSE_S)
    answer, took_again_s = ask(cluster, asked)
    assert leader_of(answer) == cluster.state("jobs").leader in (2, 3)
    assert took_s + took_again_s < HOLD_S


def test_a_successor_is_not_named_in_the_moment_of_the_death_however_quick_the_election(
    cluster: SimulatedCluster,
) -> None:
    cluster.kill(1)
    cluster.until(lambda: 1 not in cluster.nodes[2].image.nodes)
    died = cluster.world.now
    cluster.until(lambda: cluster.nodes[2].image.topics["jobs"].partitions[0].leader in (2, 3))
    assert cluster.world.now < died + PAUSE_S
    answer, _ = ask(cluster, 2)
    assert leader_of(answer) == -1


def test_partitions_of_others_keep_their_leader_in_metadata_while_a_node_dies(
    cluster: SimulatedCluster,
) -> None:
    cluster.create_led_by("others", 2, 3, 1)
    cluster.kill(1)
    cluster.until(lambda: 1 not in cluster.nodes[3].image.nodes)
    answer, _ = ask(cluster, 3, "others")
    assert leader_of(answer) == 2


def test_the_leader_that_is_named_knows_that_it_leads(cluster: SimulatedCluster) -> None:
    cluster.kill(1)
    ask(cluster, 3)
    cluster.run_for(PAUSE_S)
    answer, _ = ask(cluster, 3)
    assert cluster.leads(leader_of(answer), "jobs")


def test_a_node_that_died_is_listed_no_more(cluster: SimulatedCluster) -> None:
    """Or a client would try to reach it, less and less often, and find it late when it is back."""
    cluster.kill(1)
    answer, _ = ask(cluster, 2)
    assert [node.node_id for node in answer.brokers] == [2, 3]


def test_a_silent_leader_holds_metadata_up_for_a_moment_only(cluster: SimulatedCluster) -> None:
    for number in (1, 2, 3):
        cluster.cut_from_store(number)  # so nobody can be elected
    for other in (2, 3):
        cluster.network.cut(host_of(1), host_of(other))
    answer, took_s = ask(cluster, 2)
    assert leader_of(answer) == 1
    assert HOLD_S <= took_s < HOLD_S + AT_ONCE_S
    cluster.run_for(STALE_S)
    answer, took_s = ask(cluster, 2)
    assert (leader_of(answer), took_s < AT_ONCE_S) == (1, True)


def test_a_node_that_is_cut_off_from_the_store_holds_no_metadata_up(cluster: SimulatedCluster) -> None:
    """Answers keep their order: a producer that was sent away would hear of that a second late."""
    cluster.create_led_by("others", 2, 3, 1)
    cluster.cut_from_store(1)
    cluster.until(lambda: cluster.state("jobs").leader in (2, 3))
    answer, took_s = ask(cluster, 1, "others")
    assert (leader_of(answer), took_s < AT_ONCE_S) == (2, True)


def test_a_leader_that_was_silent_is_waited_for_again_once_it_has_answered(cluster: SimulatedCluster) -> None:
    cluster.network.cut(host_of(1), host_of(2))
    ask(cluster, 2)
    cluster.run_for(STALE_S)
    cluster.network.heal()
    cluster.run_for(5.0)  # until the question that it never heard has timed out
    ask(cluster, 2)
    cluster.run_for(1.0)
    cluster.network.cut(host_of(1), host_of(2))
    _, took_s = ask(cluster, 2)
    assert took_s >= HOLD_S


def test_nobody_waits_where_nobody_can_be_elected(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("alone", 3)
    cluster.kill(3)
    cluster.until(lambda: cluster.state("alone").leader == -1)
    answer, took_s = ask(cluster, 1, "alone")
    assert (leader_of(answer), took_s < AT_ONCE_S) == (-1, True)


def fall_silent(cluster: SimulatedCluster, number: int) -> None:
    for other in {1, 2, 3} - {number}:
        cluster.network.cut(host_of(number), host_of(other))
    cluster.cut_from_store(number)


@pytest.mark.parametrize("asked", [2, 3])
def test_the_successor_of_a_node_that_fell_silent_is_named_at_once_while_that_node_is_still_listed(
    cluster: SimulatedCluster, asked: int
) -> None:
    """Or librdkafka forgets the silent node and its successor with it, and waits for a timer."""
    fall_silent(cluster, 1)
    cluster.until(lambda: 1 not in cluster.nodes[asked].image.nodes)
    answer, took_s = ask(cluster, asked)
    assert (leader_of(answer) in (2, 3), took_s < PAUSE_S) == (True, True)
    assert [node.node_id for node in answer.brokers] == [1, 2, 3]
    silent, entry = answer.brokers[0], cluster.nodes[1].registration.me
    assert (silent.host, silent.port) == (entry.host, entry.port)


def test_who_asks_just_before_the_lease_of_a_silent_leader_ends_hears_of_the_successor_first(
    cluster: SimulatedCluster,
) -> None:
    fall_silent(cluster, 1)
    cluster.run_for(LEASE_MS / 1000 - HOLD_S / 2)
    assert cluster.state("jobs").leader == 1
    answer, took_s = ask(cluster, 2)
    assert (leader_of(answer) in (2, 3), took_s < HOLD_S) == (True, True)
    assert [node.node_id for node in answer.brokers] == [1, 2, 3]


def test_a_node_that_fell_silent_is_listed_no_more_after_a_moment(cluster: SimulatedCluster) -> None:
    """Or a client would wait for it as long as for an answer."""
    fall_silent(cluster, 1)
    cluster.until(lambda: 1 not in cluster.nodes[2].image.nodes)
    cluster.run_for(LISTED_S)
    answer, _ = ask(cluster, 2)
    assert [node.node_id for node in answer.brokers] == [2, 3]


@pytest.mark.parametrize("asked", [1, 2])
def test_a_node_that_was_silent_for_a_moment_is_listed_once(cluster: SimulatedCluster, asked: int) -> None:
    """Also by itself, when it hears that its lease has ended and when it has registered anew."""
    fall_silent(cluster, 1)
    cluster.until(lambda: 1 not in cluster.nodes[2].image.nodes)
    cluster.network.heal()
    cluster.store.heal()
    cluster.until(lambda: 1 not in cluster.nodes[asked].image.nodes)
    answer, _ = ask(cluster, asked)
    assert [node.node_id for node in answer.brokers] == [1, 2, 3]
    cluster.until(lambda: 1 in cluster.nodes[asked].image.nodes)
    answer, _ = ask(cluster, asked)
    assert [node.node_id for node in answer.brokers] == [1, 2, 3]


def test_a_node_that_has_stopped_is_listed_no_more(cluster: SimulatedCluster) -> None:
    process = cluster.machines[1].process
    assert process is not None
    stopping = process.start(cluster.nodes[1].stop())
    cluster.until(stopping.done)
    answer, _ = ask(cluster, 2)
    assert [node.node_id for node in answer.brokers] == [2, 3]
    assert leader_of(answer) in (2, 3)


@pytest.mark.parametrize("asked", [1, 2, 3])
def test_who_asks_while_a_leader_hands_over_hears_of_its_successor(
    cluster: SimulatedCluster, asked: int
) -> None:
    """Wherever it asks, as soon as it was told that the old leader does not lead any more."""
    process = cluster.machines[1].process
    assert process is not None
    cluster.store.faults.latency_s = 0.2
    move = leadership.Move(cluster.nodes[1].image.topics["jobs"].id, 0, 0, to=2)
    process.start(cluster.nodes[1].handover.move([move]))
    cluster.until(lambda: not cluster.leads(1, "jobs"))
    assert cluster.state("jobs").leader == 1, "the commit is on its way"
    answer, took_s = ask(cluster, asked)
    assert (leader_of(answer), took_s < HOLD_S) == (2, True)
    assert cluster.leads(2, "jobs")


def test_a_node_that_stops_leads_nothing_any_more_when_it_stops_to_listen(
    cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it hears of its own commits late."""
    cluster.create_led_by("more", 1, 3, 2)
    cluster.store.faults.watch_lag_s = 0.3
    node, process = cluster.nodes[1], cluster.machines[1].process
    assert process is not None
    seen: list[set[int]] = []
    stop_accepting = node.listener.stop_accepting

    def note_and_stop() -> None:
        seen.append({cluster.state(name).leader for name in ("jobs", "more")})
        stop_accepting()

    monkeypatch.setattr(node.listener, "stop_accepting", note_and_stop)
    stopping = process.start(node.stop())
    cluster.until(stopping.done)
    assert seen[0] == {2, 3}
