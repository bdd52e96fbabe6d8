"""Decisions about the cluster itself: its id, nodes, producer ids."""

from __future__ import annotations

import pytest

from postroad.cluster import keys
from postroad.cluster.controller import (
    allocate_producer_ids,
    create_cluster,
    create_receipt_key,
    register_node,
)
from postroad.cluster.image import Image, NodeEntry
from postroad.cluster.store import Event
from postroad.errors import ConfigurationError, NodeIdTaken
from tests.cluster.applied import commit


@pytest.fixture
def image() -> Image:
    return Image()


def test_a_new_cluster_has_an_id_of_22_characters_like_kafkas(image: Image) -> None:
    assert image.cluster_id is None
    commit(image, create_cluster(image, bytes([0xFF] * 16)))
    assert image.cluster_id == "f" + "_" * 20 + "w"


def test_a_node_is_there_while_its_registration_is(image: Image) -> None:
    changes = commit(image, register_node(image, NodeEntry(1, "host", 9092, "first"), lease=0))
    assert image.nodes == {1: NodeEntry(1, "host", 9092, "first")}
    assert changes.nodes_changed == [(1, None, image.nodes[1])]
    before = image.nodes[1]
    changes = image.apply([Event("nodes/1", None, 2)])
    assert image.nodes == {}
    assert changes.nodes_changed == [(1, before, None)]


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
    assert image.nodes == {1: NodeEntry(1, "there", 9092, "first", "", level=0, reads=False)}
    assert keys.encode(keys.NodeValue("there", 9092, "first")) == old


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
