"""Decisions about the cluster itself: its id, nodes, leadership, producer ids."""

from __future__ import annotations

import pytest

from postroad.cluster import keys
from postroad.cluster.controller import (
    allocate_producer_ids,
    create_cluster,
    create_receipt_key,
    create_topic,
    register_node,
    take_leadership,
)
from postroad.cluster.image import NO_LEADER, Image, NodeEntry
from postroad.cluster.keys import PartitionState
from postroad.cluster.store import Event
from postroad.errors import ConfigurationError, NodeIdTaken
from tests.cluster.applied import commit, topic_id


@pytest.fixture
def image() -> Image:
    return Image()


def with_topic(image: Image, partitions: int, replicas: int = 1) -> None:
    decision = create_topic(
        image, "orders", topic_id(1), nodes=[1, 2], partitions=partitions, replicas=replicas
    )
    commit(image, decision)


def epochs(image: Image) -> list[tuple[int, int]]:
    return [(state.leader, state.leader_epoch) for state in image.topics["orders"].partitions]


def test_a_new_cluster_has_an_id_of_22_characters_like_kafkas(image: Image) -> None:
    assert image.cluster_id is None
    commit(image, create_cluster(image, bytes([0xFF] * 16)))
    assert image.cluster_id == "f" + "_" * 20 + "w"


def test_a_node_is_there_while_its_registration_is(image: Image) -> None:
    changes = commit(image, register_node(image, NodeEntry(1, "host", 9092, "first"), lease=0))
    assert image.nodes == {1: NodeEntry(1, "host", 9092, "first")}
    assert changes.nodes == [1]
    changes = image.apply([Event("nodes/1", None, 2)])
    assert image.nodes == {}
    assert changes.nodes == [1]


def test_a_node_may_register_again_under_its_lease(image: Image) -> None:
    commit(image, register_node(image, NodeEntry(1, "host", 9092, "first"), lease=0))
    commit(image, register_node(image, NodeEntry(1, "host", 9999, "first"), lease=0))
    assert image.nodes[1].port == 9999


def test_a_node_id_that_another_process_holds_is_refused(image: Image) -> None:
    commit(image, register_node(image, NodeEntry(1, "there", 9092, "first"), lease=0))
    with pytest.raises(ConfigurationError, match=r"node\.id 1 is taken by the node at there:9092"):
        register_node(image, NodeEntry(1, "here", 9092, "second"), lease=0)


def test_a_node_that_starts_takes_over_what_its_own_directory_registered(image: Image) -> None:
    commit(image, register_node(image, NodeEntry(1, "there", 9092, "first", "mine"), lease=0))
    second = NodeEntry(1, "here", 9092, "second", "mine")
    commit(image, register_node(image, second, lease=0, takes_over=True))
    assert image.nodes == {1: second}


@pytest.mark.parametrize("holder", ["", "other"])
def test_a_node_that_starts_takes_nothing_from_another_directory(image: Image, holder: str) -> None:
    commit(image, register_node(image, NodeEntry(1, "there", 9092, "first", holder), lease=0))
    for mine in ("mine", ""):
        with pytest.raises(NodeIdTaken):
            register_node(image, NodeEntry(1, "here", 9092, "second", mine), lease=0, takes_over=True)


def test_a_node_that_lost_its_lease_takes_nothing_from_its_successor(image: Image) -> None:
    commit(image, register_node(image, NodeEntry(1, "here", 9092, "successor", "mine"), lease=0))
    with pytest.raises(NodeIdTaken):
        register_node(image, NodeEntry(1, "here", 9092, "zombie", "mine"), lease=0)


def test_entries_of_older_versions_are_read_and_those_without_a_directory_look_like_them(
    image: Image,
) -> None:
    old = b'{"host":"there","port":9092,"incarnation":"first"}'
    image.apply([Event("nodes/1", old, 1)])
    assert image.nodes == {1: NodeEntry(1, "there", 9092, "first", "")}
    assert keys.encode(keys.NodeValue("there", 9092, "first")) == old


def test_after_a_clean_stop_leadership_stays_as_it_is(image: Image) -> None:
    with_topic(image, 4)
    assert list(take_leadership(image, 1, clean=True)) == []


def test_after_an_unclean_stop_a_node_leads_its_partitions_under_a_new_epoch(image: Image) -> None:
    with_topic(image, 4)
    before = epochs(image)
    for decision in take_leadership(image, 1, clean=False):
        commit(image, decision)
    assert epochs(image) == [(leader, 1 if leader == 1 else 0) for leader, _ in before]


def test_a_partition_without_a_leader_is_led_by_a_node_of_its_in_sync_replicas(image: Image) -> None:
    with_topic(image, 2, replicas=2)
    states = (PartitionState(NO_LEADER, 5, (1, 2), (1,)), PartitionState(NO_LEADER, 5, (1, 2), (2,)))
    chunk = keys.chunk_key(image.topics["orders"].id_text, 0)
    image.apply([Event(chunk, keys.encode(keys.ChunkValue(states)), 2)])
    for decision in take_leadership(image, 1, clean=True):
        commit(image, decision)
    assert epochs(image) == [(1, 6), (NO_LEADER, 5)]


def test_leadership_of_very_many_partitions_is_taken_in_several_commits(image: Image) -> None:
    for number in range(2):
        decision = create_topic(image, f"t{number}", topic_id(number), nodes=[1], partitions=10_000)
        commit(image, decision)
    decisions = list(take_leadership(image, 1, clean=False))
    assert len(decisions) == 2
    for decision in decisions:
        commit(image, decision)
    assert {state.leader_epoch for topic in image.topics.values() for state in topic.partitions} == {1}


def test_producer_ids_come_in_blocks_that_never_overlap(image: Image) -> None:
    first = allocate_producer_ids(image)
    rival = allocate_producer_ids(image)
    commit(image, first.decision)
    assert (first.first, first.end) == (0, 1000)
    assert rival.decision.compares[0].revision != image.key_revision("producer-ids")
    assert allocate_producer_ids(image, 10)[:2] == (1000, 1010)


def test_a_receipt_key_is_made_once(image: Image) -> None:
    first, rival = create_receipt_key(image, b"1" * 32), create_receipt_key(image, b"2" * 32)
    commit(image, first)
    assert image.receipt_key == b"1" * 32
    assert rival.compares[0].revision != image.key_revision("receipts")
    assert create_receipt_key(image, b"3" * 32).operations == []
