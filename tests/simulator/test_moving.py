"""Partitions that move between real nodes on virtual time: messages, ledgers and files go with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from postroad.cluster.keys import PartitionState
from postroad.wire import nodes as nodes_api
from postroad.wire.messages import alter_partition_reassignments as alter_api
from postroad.wire.messages import list_partition_reassignments as list_api
from simulator.campaign import Campaign, play_apart
from simulator.checkers import p1_states
from simulator.cluster_history import Stated
from simulator.faults import KINDS
from simulator.mutants import moves
from tests.simulator.caught import is_caught
from tests.simulator.simulated_cluster import SimulatedCluster, simulated_cluster

INVALID_ASSIGNMENT, INVALID_FACTOR, NONE_IN_PROGRESS, UNKNOWN_TOPIC, POLICY = 39, 38, 85, 3, 44


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with simulated_cluster(nodes=4, durability_flush="os") as running:
        yield running


def alter(cluster: SimulatedCluster, topic: str, replicas: list[int] | None, at: int = 1, **more: Any) -> int:
    """Ask for a move; the error code."""
    wanted = alter_api.ReassignableTopic(topic, [alter_api.ReassignablePartition(0, replicas)])
    request = alter_api.AlterPartitionReassignmentsRequest(topics=[wanted], **more)
    answer = cluster.call(at, alter_api, 1, request)
    assert answer.error_code == 0
    return int(answer.responses[0].partitions[0].error_code)


def listed(cluster: SimulatedCluster, at: int = 1) -> dict[str, tuple[list[int], list[int], list[int]]]:
    """The moves of topics that are not the nodes' own, which get their replicas meanwhile."""
    answer = cluster.call(at, list_api, 0, list_api.ListPartitionReassignmentsRequest(topics=None))
    return {
        topic.name: (found.replicas, found.adding_replicas, found.removing_replicas)
        for topic in answer.topics
        if not topic.name.startswith("__")
        for found in topic.partitions
    }


def order(cluster: SimulatedCluster, what: Any, at: int = 1) -> Any:
    return cluster.call(at, nodes_api, 0, what)


def standing(cluster: SimulatedCluster, number: int) -> nodes_api.NodeStanding:
    [found] = [each for each in order(cluster, nodes_api.DescribeNodes()).nodes if each.id == number]
    return found


def has_moved(cluster: SimulatedCluster, topic: str, *replicas: int) -> bool:
    state = cluster.state(topic)
    return state.replicas == replicas and set(state.isr) == set(replicas)


def directories(cluster: SimulatedCluster, number: int, topic: str) -> list[tuple[str, int]]:
    node = cluster.nodes[number]
    id_text = node.image.topics[topic].id_text
    return [found for found in node.directory.partitions() if found[0] == id_text]


def values(cluster: SimulatedCluster, number: int, topic: str) -> int:
    return cluster.replica_end(number, topic)


def test_a_partition_moves_with_its_leader_and_its_files_are_deleted(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("orders", 1, 2, 3)
    cluster.publish("orders", b"0", b"1")
    assert alter(cluster, "orders", [4, 2, 3]) == 0
    cluster.until(lambda: has_moved(cluster, "orders", 4, 2, 3))
    cluster.until(lambda: cluster.leads(4, "orders"))
    assert cluster.publish("orders", b"2") == 2
    cluster.until(lambda: not directories(cluster, 1, "orders"))
    assert cluster.nodes[1].partitions.replica(cluster.nodes[1].image.topics["orders"].id, 0) is None
    assert [values(cluster, number, "orders") for number in (4, 2)] == [3, 3]
    assert listed(cluster) == {}


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_move_is_listed_while_its_new_replica_is_down_and_can_be_cancelled(
    cluster: SimulatedCluster, at: int
) -> None:
    cluster.create_led_by("orders", 1, 2, 3)
    cluster.publish("orders", b"0")
    cluster.network.cut("10.0.0.1", "10.0.0.4")
    assert alter(cluster, "orders", [4, 2, 3], at) == 0
    cluster.run_for(1)
    assert listed(cluster, at) == {"orders": ([4, 2, 3, 1], [4], [1])}
    assert alter(cluster, "orders", None, at) == 0
    cluster.network.heal("10.0.0.1", "10.0.0.4")
    cluster.until(lambda: has_moved(cluster, "orders", 1, 2, 3))
    assert listed(cluster, at) == {}
    assert alter(cluster, "orders", None, at) == NONE_IN_PROGRESS
    cluster.until(lambda: not directories(cluster, 4, "orders"))


def test_a_partition_that_comes_back_to_a_node_begins_anew_there(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("orders", 1, 2, 3)
    cluster.publish("orders", b"0")
    for replicas in ([1, 2], [1, 2, 3], [1, 2], [3, 1, 2]):
        assert alter(cluster, "orders", replicas) == 0
        cluster.until(lambda replicas=replicas: has_moved(cluster, "orders", *replicas))  # type: ignore[misc]
        cluster.publish("orders", b"x")
    cluster.until(lambda: cluster.replica_end(3, "orders") == 5)


def test_a_move_survives_the_death_of_controller_and_leader(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("orders", 2, 1, 3)
    cluster.publish("orders", b"0")
    assert alter(cluster, "orders", [4, 1, 3]) == 0
    for dead in {2, cluster.nodes[1].image.controller or 1} - {4}:
        cluster.kill(dead)
        cluster.run_for(1)
        cluster.start(dead)
    cluster.until(lambda: has_moved(cluster, "orders", 4, 1, 3))
    cluster.until(lambda: cluster.leads(4, "orders"))
    assert cluster.publish("orders", b"1") == 1


def test_a_node_that_was_down_while_its_partition_moved_away_deletes_it_later(
    cluster: SimulatedCluster,
) -> None:
    cluster.create_led_by("orders", 1, 2, 3)
    cluster.publish("orders", b"0")
    cluster.kill(3)
    assert alter(cluster, "orders", [1, 2, 4]) == 0
    cluster.until(lambda: has_moved(cluster, "orders", 1, 2, 4))
    cluster.start(3)
    assert directories(cluster, 3, "orders")
    cluster.until(lambda: not directories(cluster, 3, "orders"))


def test_what_can_not_be_moved_is_refused(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("orders", 1, 2, 3)
    assert alter(cluster, "nothing", [1]) == UNKNOWN_TOPIC
    assert alter(cluster, "orders", [1, 1]) == INVALID_ASSIGNMENT
    assert alter(cluster, "orders", [1, 9]) == INVALID_ASSIGNMENT
    assert alter(cluster, "orders", None) == NONE_IN_PROGRESS
    assert alter(cluster, "orders", [1, 2], allow_replication_factor_change=False) == INVALID_FACTOR


def test_a_topic_of_one_replica_moves_and_grows_without_a_gap(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("alone", 1)
    cluster.publish("alone", b"0")
    assert alter(cluster, "alone", [2]) == 0
    cluster.until(lambda: has_moved(cluster, "alone", 2) and cluster.leads(2, "alone"))
    assert cluster.publish("alone", b"1") == 1
    assert alter(cluster, "alone", [3, 4, 2]) == 0
    cluster.until(lambda: has_moved(cluster, "alone", 3, 4, 2) and cluster.leads(3, "alone"))
    assert cluster.publish("alone", b"2") == 2


# --- drains ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_dead", [False, True], ids=["alive", "dead"])
def test_a_drained_node_holds_nothing_in_the_end(cluster: SimulatedCluster, is_dead: bool) -> None:
    cluster.until(lambda: all(internal_replicas(cluster)))
    for number, replicas in enumerate([(1, 2, 3), (3, 4, 1), (2, 3, 4)]):
        cluster.create_led_by(f"topic{number}", *replicas)
        cluster.publish(f"topic{number}", b"0")
    if is_dead:
        cluster.kill(3)
    assert order(cluster, nodes_api.DrainNode(3)).error_code == 0
    assert standing(cluster, 3).drained
    cluster.until(lambda: standing(cluster, 3).replicas == 0, 120)
    assert all(cluster.publish(f"topic{number}", b"1") == 1 for number in range(3))
    assert order(cluster, nodes_api.RemoveNode(3)).error_code == (0 if is_dead else POLICY)
    assert (3 in [each.id for each in order(cluster, nodes_api.DescribeNodes()).nodes]) is not is_dead


def internal_replicas(cluster: SimulatedCluster) -> list[bool]:
    topics = cluster.nodes[1].image.topics.values()
    return [len(state.isr) >= 3 for topic in topics if topic.internal for state in topic.partitions]


def test_a_drained_node_gets_nothing_new_and_a_cancelled_drain_ends_that(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("stays", 1, 2, 3)
    assert order(cluster, nodes_api.DrainNode(4)).error_code == 0
    assert order(cluster, nodes_api.DrainNode(4)).error_code == 0
    assert cluster.create("new", replication_factor=4).error_code == INVALID_FACTOR
    assert cluster.create("new", num_partitions=4).error_code == 0
    assert all(4 not in cluster.state("new", index).replicas for index in range(4))
    assert alter(cluster, "stays", [4, 2, 3]) == INVALID_ASSIGNMENT
    assert order(cluster, nodes_api.CancelDrain(4)).error_code == 0
    assert alter(cluster, "stays", [4, 2, 3]) == 0
    assert order(cluster, nodes_api.DrainNode(9)).error_code != 0


def test_a_drained_node_that_was_restarted_is_in_sync_again_where_nobody_can_take_its_place(
    cluster: SimulatedCluster,
) -> None:
    """Otherwise the partition would have one replica less for as long as the drain stands."""
    cluster.create_led_by("everywhere", 1, 2, 3, 4)
    assert order(cluster, nodes_api.DrainNode(4)).error_code == 0
    cluster.kill(4)
    cluster.until(lambda: 4 not in cluster.state("everywhere").isr)
    cluster.start(4)
    cluster.until(lambda: 4 in cluster.state("everywhere").isr)


def test_what_no_other_node_can_take_is_told(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("everywhere", 1, 2, 3, 4)
    assert order(cluster, nodes_api.DrainNode(1)).error_code == 0
    cluster.until(lambda: standing(cluster, 1).stuck == 1 == standing(cluster, 1).replicas, 120)
    cluster.until(lambda: not cluster.leads(1, "everywhere"))
    assert order(cluster, nodes_api.RemoveNode(1)).error_code == POLICY


def test_a_node_that_is_lost_for_good_is_healed_and_one_that_is_away_is_not() -> None:
    with simulated_cluster(nodes=4, cluster_heal_after_ms=60_000, durability_flush="os") as cluster:
        cluster.create_led_by("orders", 1, 2, 3)
        cluster.publish("orders", b"0")
        cluster.kill(3)
        cluster.run_for(50)
        assert cluster.state("orders").replicas == (1, 2, 3)
        cluster.until(lambda: has_moved(cluster, "orders", 1, 2, 4))
        assert cluster.publish("orders", b"1") == 1


def test_a_node_counts_as_lost_from_when_this_controller_began_to_miss_it() -> None:
    """What it saw when it was the controller before says nothing: the node has been back since."""
    with simulated_cluster(nodes=4, cluster_heal_after_ms=60_000, durability_flush="os") as cluster:
        first = cluster.nodes[1].image.controller
        assert first is not None
        victim, second, spare = (number for number in cluster.nodes if number != first)
        cluster.create_led_by("orders", first, victim)
        cluster.kill(victim)
        cluster.run_for(5)
        cluster.cut_from_store(first)
        cluster.until(lambda: cluster.nodes[second].image.controller not in (first, None))
        cluster.start(victim)
        cluster.store.heal()
        cluster.until(cluster.is_complete)
        cluster.run_for(70)
        cluster.cut_from_store(spare)
        cluster.kill(victim)
        cluster.kill(second)
        cluster.until(lambda: cluster.nodes[first].image.controller == first)
        cluster.store.heal()
        cluster.run_for(30)
        assert spare in cluster.nodes[first].image.nodes
        assert cluster.state("orders").target == (first, victim)
        cluster.until(lambda: has_moved(cluster, "orders", first, spare), 60)


def test_internal_topics_are_whole_again_after_the_loss_of_a_node() -> None:
    with simulated_cluster(nodes=4, cluster_heal_after_ms=60_000) as cluster:
        cluster.until(lambda: all(internal_replicas(cluster)))
        cluster.kill(4)
        cluster.run_for(62)
        cluster.until(lambda: all(internal_replicas(cluster)), 60)
        cluster.until(
            lambda: all(
                4 not in state.replicas
                for topic in cluster.nodes[1].image.topics.values()
                for state in topic.partitions
            ),
            60,
        )


CAUGHT_BY = {  # the faults that show a mutant soon
    "drain-forgets-dead": (),
    "isr-outside-replicas": ("kill", "stop"),
    "move-over-changes": ("kill", "pause", "lossy"),
    "move-without-epoch": ("kill", "stop"),
}


@pytest.mark.parametrize("name", sorted(CAUGHT_BY))
def test_a_mutant_of_moves_is_caught(name: str) -> None:
    assert is_caught(Campaign(nodes=3, kinds=CAUGHT_BY[name], workloads=("moved",), mutant=name))


def test_every_mutant_of_moves_is_tried() -> None:
    assert CAUGHT_BY.keys() == {mutant.name for mutant in moves.ALL}


def test_a_state_that_contradicts_itself_between_two_commits_is_seen() -> None:
    right, wrong = PartitionState(1, 1, (1, 2), (1, 2)), PartitionState(1, 1, (1, 2), (1, 2, 3))
    for states, seen in (((right, right), 0), ((right, wrong, right), 1)):
        stated = [Stated(float(at), state) for at, state in enumerate(states)]
        assert len(list(p1_states.check({(bytes(16), 0): stated}))) == seen


@pytest.mark.parametrize("nodes", [3, 5])
def test_a_seed_of_moves_breaks_no_promise_and_drains_a_dead_node(nodes: int) -> None:
    result = play_apart(Campaign(nodes=nodes, workloads=("moved",)), 1)
    assert [str(violation) for violation in result.violations] == []
    assert result.sometimes["moved: a dead node was drained"] == 1


@pytest.mark.parametrize(("seed", "faults"), [(4, ("power",)), (3, tuple(KINDS))])
def test_a_seed_with_moves_breaks_no_promise(seed: int, faults: tuple[str, ...]) -> None:
    """With both, names of deleted files came back after a power cut, among those of a log made there anew."""
    campaign = Campaign(nodes=4, kinds=faults, workloads=("logs", "moved"))
    result = play_apart(campaign, seed)
    assert [str(violation) for violation in result.violations] == []
    assert result.sometimes["moved: partitions began to move"] > 0


def test_new_replicas_are_copied_no_faster_than_they_may_be() -> None:
    with simulated_cluster(nodes=4, cluster_catch_up_bytes_per_s=100_000, durability_flush="os") as cluster:
        cluster.create_led_by("large", 1, 2, 3)
        cluster.publish("large", *[bytes(250_000)] * 8)
        started_s = cluster.world.now
        assert alter(cluster, "large", [1, 2, 4]) == 0
        cluster.until(lambda: has_moved(cluster, "large", 1, 2, 4), 120)
        took_s = cluster.world.now - started_s
        assert 8 <= took_s <= 40
        assert cluster.publish("large", b"more") == 8
