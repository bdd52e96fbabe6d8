"""Decisions about topics: what is written, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import pytest

from postroad.cluster import keys
from postroad.cluster.controller import add_partitions, create_topic, delete_topic, finish_deletion
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image
from postroad.cluster.internal_topics import OFFSETS_TOPIC
from postroad.cluster.store import Delete, Put
from postroad.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    PolicyViolation,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from tests.cluster.applied import commit, topic_id

NODES = [1, 2, 3]


def created(image: Image, name: str, number: int = 0, **options: Any) -> None:
    commit(image, create_topic(image, name, topic_id(number or len(image.topics)), nodes=NODES, **options))


@pytest.fixture
def image() -> Image:
    return Image()


# --- create --------------------------------------------------------------------------------------


def test_a_new_topic_has_its_partitions_spread_over_the_nodes(image: Image) -> None:
    created(image, "orders", partitions=6, replicas=2)
    topic = image.topics["orders"]
    assert image.topics_by_id[topic.id] is topic
    assert sorted(state.leader for state in topic.partitions) == [1, 1, 2, 2, 3, 3]
    for state in topic.partitions:
        assert state.leader == state.replicas[0]
        assert state.isr == state.replicas
        assert state.leader_epoch == 0


def test_what_the_request_leaves_open_the_node_decides(image: Image) -> None:
    created(image, "orders", default_partitions=4, default_replicas=3)
    partitions = image.topics["orders"].partitions
    assert [len(state.replicas) for state in partitions] == [3, 3, 3, 3]


def test_the_largest_topic_fits_into_one_commit(image: Image) -> None:
    created(image, "huge", partitions=10_000, replicas=3)
    assert len(image.topics["huge"].partitions) == 10_000
    commit(image, delete_topic(image, "huge"))
    assert image.topics == {}


def test_an_assignment_is_taken_as_it_is(image: Image) -> None:
    created(image, "orders", assignments={1: [3, 1], 0: [2, 3]})
    assert [state.replicas for state in image.topics["orders"].partitions] == [(2, 3), (3, 1)]


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "x" * 249, "...", "-", "_"])
def test_a_legal_name_is_accepted(image: Image, name: str) -> None:
    created(image, name)
    assert name in image.topics


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a b", "ä", "x" * 250, "a\n", "a\0", "../etc", "x" * 9999]
)
def test_an_illegal_name_is_refused_with_the_rule(image: Image, name: str) -> None:
    with pytest.raises(InvalidTopic, match="1 to 249 of a-z A-Z 0-9"):
        created(image, name)


def test_a_name_is_given_once(image: Image) -> None:
    created(image, "orders")
    with pytest.raises(TopicAlreadyExists, match="'orders'"):
        created(image, "orders", 7)


@pytest.mark.parametrize(("first", "second"), [("a.b", "a_b"), ("a_b", "a.b"), ("x.y_z", "x_y.z")])
def test_names_that_differ_only_in_dot_and_underscore_collide(image: Image, first: str, second: str) -> None:
    created(image, first)
    with pytest.raises(InvalidTopic, match="differs only in"):
        created(image, second, 7)


def test_two_nodes_that_create_colliding_names_at_once_cannot_both_succeed(image: Image) -> None:
    one = create_topic(image, "a.b", topic_id(1), nodes=NODES)
    other = create_topic(image, "a_b", topic_id(2), nodes=NODES)
    commit(image, one)
    assert any(image.key_revision(key) != revision for key, revision in other.compares)


def test_clients_may_not_create_the_nodes_own_topics(image: Image) -> None:
    with pytest.raises(InvalidTopic, match="kept by the nodes"):
        created(image, OFFSETS_TOPIC)
    created(image, OFFSETS_TOPIC, internal=True)
    assert image.topics[OFFSETS_TOPIC].internal


@pytest.mark.parametrize("count", [0, -2, 10_001, 2**31 - 1])
def test_a_wrong_number_of_partitions_is_refused(image: Image, count: int) -> None:
    with pytest.raises(InvalidPartitions, match="1 to 10000"):
        created(image, "orders", partitions=count)


@pytest.mark.parametrize("factor", [0, -2, 4])
def test_a_wrong_replication_factor_is_refused(image: Image, factor: int) -> None:
    with pytest.raises(InvalidReplicationFactor, match="3 nodes that there are"):
        created(image, "orders", replicas=factor)


@pytest.mark.parametrize(
    ("assignments", "text"),
    [
        ({}, "numbered from 0"),
        ({1: [1]}, "numbered from 0"),
        ({0: [1], 2: [1]}, "without a gap"),
        ({0: []}, "same number of replicas"),
        ({0: [1, 1]}, "each on another node"),
        ({0: [1, 2], 1: [1]}, "same number of replicas"),
        ({0: [1, 9]}, r"Unknown nodes: \[9\]"),
    ],
)
def test_a_wrong_assignment_is_refused(image: Image, assignments: dict[int, list[int]], text: str) -> None:
    with pytest.raises(InvalidReplicaAssignment, match=text):
        created(image, "orders", assignments=assignments)


def test_an_assignment_and_numbers_contradict_each_other(image: Image) -> None:
    with pytest.raises(InvalidRequest, match="either a replica assignment"):
        created(image, "orders", partitions=1, assignments={0: [1]})


def test_the_cluster_has_a_bound_on_partitions(image: Image) -> None:
    for number in range(10):
        created(image, f"huge{number}", number + 1, partitions=10_000)
    with pytest.raises(PolicyViolation, match="100000 partitions in all"):
        created(image, "one-more", 99)


def test_configs_are_checked_before_anything_is_written(image: Image) -> None:
    with pytest.raises(InvalidConfig, match=r"did you mean 'retention\.ms'"):
        created(image, "orders", config={"retention.sm": "1"})
    with pytest.raises(InvalidConfig, match="a value is missing"):
        created(image, "orders", config={"retention.ms": None})
    with pytest.raises(PolicyViolation, match="at most 65536"):
        created(image, "orders", config={"leader.replication.throttled.replicas": "1:1," * 20_000})


@pytest.mark.parametrize(
    ("replicas", "asked", "node", "kept"),
    [
        (1, None, 1, None),
        (1, None, 2, None),
        (2, None, 1, "1"),
        (3, None, 1, "2"),
        (3, None, 3, "3"),
        (2, None, 3, "2"),
        (3, "1", 3, "1"),
        (2, "3", 1, "3"),
    ],
)
def test_a_replicated_topic_says_how_many_replicas_must_be_in_sync(
    image: Image, replicas: int, asked: str | None, node: int, kept: str | None
) -> None:
    config = {"min.insync.replicas": asked} if asked else {}
    created(image, "orders", replicas=replicas, config=config, default_min_insync=node)
    assert image.topics["orders"].config.get("min.insync.replicas") == kept


# --- widen ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("old", "new"), [(1, 2), (99, 100), (99, 101), (100, 101), (100, 300), (1, 10_000)])
def test_a_topic_grows_and_its_old_partitions_stay_as_they_were(image: Image, old: int, new: int) -> None:
    created(image, "orders", partitions=old, config={"retention.ms": "5"})
    before = image.topics["orders"]
    changes = commit(image, add_partitions(image, "orders", new, nodes=NODES))
    after = image.topics["orders"]
    assert changes.altered == [(before, after)]
    assert len(after.partitions) == new
    assert after.partitions[:old] == before.partitions
    assert (after.id, after.config) == (before.id, before.config)


def test_new_partitions_may_be_assigned(image: Image) -> None:
    created(image, "orders", partitions=1, replicas=2)
    commit(image, add_partitions(image, "orders", 3, nodes=NODES, assignments=[[3, 2], [1, 3]]))
    assert [state.replicas for state in image.topics["orders"].partitions[1:]] == [(3, 2), (1, 3)]


@pytest.mark.parametrize("assignments", [[[1, 2]], [[1], [2]], [[1, 2], [2, 3], [3, 1]]])
def test_new_partitions_must_be_assigned_exactly(image: Image, assignments: list[list[int]]) -> None:
    created(image, "orders", partitions=1, replicas=2)
    with pytest.raises(InvalidReplicaAssignment, match="2 new partitions of 2 replicas"):
        add_partitions(image, "orders", 3, nodes=NODES, assignments=assignments)


@pytest.mark.parametrize("count", [3, 2, 0, -1])
def test_partitions_can_only_become_more(image: Image, count: int) -> None:
    created(image, "orders", partitions=3)
    with pytest.raises(InvalidPartitions, match="has 3 partitions already"):
        add_partitions(image, "orders", count, nodes=NODES)


def test_the_nodes_own_topics_keep_their_partitions(image: Image) -> None:
    created(image, OFFSETS_TOPIC, internal=True)
    with pytest.raises(PolicyViolation, match="partitions are fixed"):
        add_partitions(image, OFFSETS_TOPIC, 2, nodes=NODES)


# --- delete --------------------------------------------------------------------------------------


def test_a_deleted_topic_is_gone_and_noted_until_every_node_has_removed_it(image: Image) -> None:
    created(image, "orders", partitions=3)
    topic = image.topics["orders"]
    changes = commit(image, delete_topic(image, "orders"))
    assert changes.deleted == [topic]
    assert image.topics == {}
    assert image.deleted[topic.id].nodes == (1, 2, 3)
    for node, left in ((2, (1, 3)), (1, (3,))):
        commit(image, finish_deletion(image, image.deleted[topic.id], node))
        assert image.deleted[topic.id].nodes == left
    commit(image, finish_deletion(image, image.deleted[topic.id], 3))
    assert image.deleted == {}


def test_a_name_may_be_used_again_while_the_old_topic_is_being_removed(image: Image) -> None:
    created(image, "a.b", 1)
    commit(image, delete_topic(image, "a.b"))
    created(image, "a_b", 2)
    assert image.topics["a_b"].id == topic_id(2)
    assert set(image.deleted) == {topic_id(1)}


def test_what_does_not_exist_cannot_be_deleted_or_widened(image: Image) -> None:
    with pytest.raises(UnknownTopicOrPartition, match="no topic 'orders'"):
        delete_topic(image, "orders")
    with pytest.raises(UnknownTopicOrPartition, match="no topic 'orders'"):
        add_partitions(image, "orders", 2, nodes=NODES)


def test_the_nodes_own_topics_cannot_be_deleted(image: Image) -> None:
    created(image, OFFSETS_TOPIC, internal=True)
    with pytest.raises(PolicyViolation, match="can't be deleted"):
        delete_topic(image, OFFSETS_TOPIC)


# --- while nodes are down --------------------------------------------------------------------------


def test_replicas_on_nodes_that_are_down_are_not_in_sync_and_do_not_lead(image: Image) -> None:
    decision = create_topic(image, "orders", topic_id(1), nodes=[1, 3], down=[2], partitions=6, replicas=3)
    commit(image, decision)
    states = image.topics["orders"].partitions
    assert [state.isr for state in states] == [tuple(n for n in s.replicas if n != 2) for s in states]
    assert [state.leader for state in states] == [state.isr[0] for state in states]
    assert sorted(state.replicas[0] for state in states) == [1, 1, 2, 2, 3, 3], "also node 2"


def test_nodes_that_are_down_get_nothing_where_others_are_enough(image: Image) -> None:
    commit(
        image, create_topic(image, "orders", topic_id(1), nodes=[1, 3], down=[2], partitions=6, replicas=2)
    )
    assert all(set(state.replicas) == {1, 3} for state in image.topics["orders"].partitions)


def test_all_nodes_that_serve_have_a_replica_before_one_that_is_down(image: Image) -> None:
    decision = create_topic(
        image, "orders", topic_id(1), nodes=[2, 4], down=[1, 3, 5], partitions=10, replicas=3
    )
    commit(image, decision)
    for state in image.topics["orders"].partitions:
        assert set(state.isr) == {2, 4}
        assert len(state.replicas) == 3


def test_new_partitions_are_placed_on_nodes_that_are_down_as_well(image: Image) -> None:
    created(image, "orders", partitions=3, replicas=3)
    commit(image, add_partitions(image, "orders", 4, nodes=[1, 2], down=[3]))
    state = image.topics["orders"].partitions[3]
    assert (set(state.replicas), set(state.isr)) == ({1, 2, 3}, {1, 2})


def test_an_assignment_needs_one_node_that_serves(image: Image) -> None:
    commit(image, create_topic(image, "orders", topic_id(1), nodes=[1, 3], down=[2], assignments={0: [2, 3]}))
    [state] = image.topics["orders"].partitions
    assert (state.replicas, state.isr, state.leader) == ((2, 3), (3,), 3)
    with pytest.raises(InvalidReplicaAssignment, match="None of the nodes"):
        create_topic(image, "others", topic_id(2), nodes=[1, 3], down=[2], assignments={0: [2]})


def test_a_node_that_is_removed_meanwhile_gets_no_replica(image: Image) -> None:
    home = Put(keys.directory_key(2), keys.encode(keys.DirectoryValue("home-of-2")))
    commit(image, Decision([], [home]))
    decision = create_topic(image, "orders", topic_id(1), nodes=[1, 3], down=[2], replicas=3)
    commit(image, Decision([], [Delete(home.key)]))
    with pytest.raises(AssertionError, match=home.key):  # a compare that does not hold
        commit(image, decision)


def test_nothing_is_placed_while_no_node_serves(image: Image) -> None:
    """A node that has just lost touch with the store may know of none, not even of itself."""
    with pytest.raises(InvalidReplicationFactor, match="No node is running"):
        create_topic(image, "orders", topic_id(1), nodes=[], down=[1, 2, 3], partitions=1, replicas=3)
    commit(image, create_topic(image, "orders", topic_id(1), nodes=[1, 2], partitions=1, replicas=2))
    with pytest.raises(InvalidReplicationFactor, match="No node is running"):
        add_partitions(image, "orders", 2, nodes=[], down=[1, 2])
