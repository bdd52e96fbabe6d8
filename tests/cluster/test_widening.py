"""Queues that get more partitions: which, how many, and where."""

from __future__ import annotations

import pytest

from postroad.cluster.group_config import settings_of
from postroad.cluster.image import Image
from postroad.cluster.keys import DRAINING, SERVING, PartitionState
from postroad.cluster.topic_config import PARTITIONS_AUTO
from postroad.cluster.widening import Busyness, Growth, may_spread, wider
from tests.cluster.replicas import THREE, TOPIC, image_of, state

OTHER = b"o" * 16
ALONE = state(1, [1], replicas=[1])


def auto(*states: PartitionState, most: int = 10, nodes: dict[int, str] = THREE, **more: str) -> Image:
    racks = {int(node[1:]): rack for node, rack in more.items()}
    return image_of(*states, nodes=nodes, config={PARTITIONS_AUTO: str(most)}, racks=racks)


def grown(image: Image, messages: int = 100, others: int = 0, node: int = 1) -> Growth | None:
    return wider(image, node, {TOPIC: messages, OTHER: others}, {TOPIC})


def test_a_busy_queue_gets_a_partition_on_each_node_that_leads_none_of_it() -> None:
    assert grown(auto(ALONE)) == Growth("orders", 3, [[2], [3]])
    assert grown(auto(ALONE, state(3, [3], replicas=[3]))) == Growth("orders", 3, [[2]])


def test_new_partitions_have_as_many_replicas_in_other_racks() -> None:
    image = auto(state(1, [1, 2], replicas=[1, 2]), n1="a", n2="a", n3="b")
    assert grown(image) == Growth("orders", 3, [[2, 3], [3, 1]])


def test_new_partitions_get_the_replicas_that_a_moving_one_is_to_have() -> None:
    moving = PartitionState(1, 5, (2, 1), (1,), (), (2,), (1,), False, (1,))
    assert grown(auto(moving)) == Growth("orders", 3, [[2], [3]])


def test_a_queue_grows_no_further_than_it_may() -> None:
    assert grown(auto(ALONE, most=2)) == Growth("orders", 2, [[2]])
    assert grown(auto(ALONE, most=1)) is None
    assert grown(image_of(ALONE)) is None, "it is off unless a topic says otherwise"


def test_more_partitions_on_the_same_nodes_would_be_of_no_use() -> None:
    every = [state(node, [node], replicas=[node]) for node in THREE]
    assert grown(auto(*every)) is None


def test_a_node_that_stops_or_is_gone_leads_no_new_partition() -> None:
    assert grown(auto(ALONE, nodes={1: SERVING, 2: DRAINING})) is None
    assert grown(auto(state(1, [1]), nodes={1: SERVING, 2: SERVING})) is None, "three replicas need three"


def test_a_topic_that_is_not_what_the_node_is_busy_with_stays_as_it_is() -> None:
    image = auto(ALONE)
    assert grown(image, messages=50, others=50) is not None
    assert grown(image, messages=50, others=51) is None
    assert grown(image, messages=0) is None
    assert grown(image, node=2) is None, "another node leads it"
    assert wider(image, 1, {}, {TOPIC}) is None


def test_a_topic_without_subscriptions_that_may_spread_stays_as_it_is() -> None:
    assert wider(auto(ALONE), 1, {TOPIC: 100}, set()) is None


@pytest.mark.parametrize(
    ("config", "spreads"),
    [
        ({}, True),
        ({"postroad.order": "key"}, False),
        ({"postroad.order": "partition"}, False),
        ({"postroad.deduplicate.ms": "1000"}, False),
    ],
)
def test_a_subscription_that_goes_by_keys_or_ids_holds_its_topic(
    config: dict[str, str], spreads: bool
) -> None:
    assert may_spread(settings_of(config)) is spreads


def test_a_node_is_busy_when_it_was_so_three_times_in_a_row() -> None:
    busyness = Busyness(80)
    assert [busyness.look(1000, used) for used in (900, 800, 799, 800, 800, 800, 900)] == [
        *[False] * 5,
        True,
        False,
    ]
