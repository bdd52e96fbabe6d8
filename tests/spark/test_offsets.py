"""Offsets: as JSON, as words and as times, against a real topic."""

from __future__ import annotations

import json

import pytest

from postroad.errors import ConfigurationError, UnknownTopicOrPartition
from postroad.spark import offsets, subscription
from postroad.spark.cluster import Cluster
from postroad.spark.offsets import EARLIEST, LATEST, Each, EachSince, Everywhere, Since
from postroad.spark.option_values import Values
from postroad.spark.router import TopicPartition
from postroad.testing import Node
from tests.spark.plain import Message, add_partitions, create, delete_before, send


@pytest.fixture(scope="module")
def cluster(node: Node) -> Cluster:
    return Cluster(node.bootstrap)


@pytest.fixture(scope="module")
def orders(node: Node) -> list[TopicPartition]:
    """Two partitions of 5 and 3 records, a second between them; the first two of partition 0 are deleted."""
    create(node.bootstrap, "orders", 2)
    send(node.bootstrap, "orders", [Message(b"x", time_ms=1000 * number) for number in range(1, 6)])
    send(node.bootstrap, "orders", [Message(b"y", time_ms=1000 * n, partition=1) for n in range(1, 4)])
    delete_before(node.bootstrap, "orders", 0, 2)
    return [("orders", 0), ("orders", 1)]


def by_partition(found: dict[TopicPartition, int]) -> dict[int, int]:
    return {topic_partition[1]: offset for topic_partition, offset in found.items()}


def test_json_is_in_order_and_comes_back() -> None:
    written = offsets.to_json({("b", 10): 1, ("b", 9): 2, ("a", 0): 3})
    assert json.dumps(written) == '{"a": {"0": 3}, "b": {"9": 2, "10": 1}}'
    assert offsets.from_json(written) == {("b", 10): 1, ("b", 9): 2, ("a", 0): 3}


@pytest.mark.parametrize("found", [[1], {"a": 1}, {"a": {"x": 1}}, {"a": {"0": "1"}}, {"a": {"0": 1.5}}, "a"])
def test_other_json_is_refused(found: object) -> None:
    with pytest.raises(ConfigurationError, match="must be JSON like"):
        offsets.from_json(found)


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        (Everywhere(EARLIEST), {0: 2, 1: 0}),
        (Everywhere(LATEST), {0: 5, 1: 3}),
        (Each({("orders", 0): EARLIEST, ("orders", 1): LATEST}, "startingOffsets"), {0: 2, 1: 3}),
        (Each({("orders", 0): 4, ("orders", 1): 1}, "startingOffsets"), {0: 4, 1: 1}),
        (Since(3000), {0: 2, 1: 2}),
        (EachSince({("orders", 0): 4500, ("orders", 1): 0}, "startingTimestamp"), {0: 4, 1: 0}),
    ],
)
def test_points_become_offsets(
    cluster: Cluster, orders: list[TopicPartition], point: offsets.Point, expected: dict[int, int]
) -> None:
    assert by_partition(offsets.resolve(point, cluster, orders)) == expected


def test_time_after_the_last_record_is_the_end_or_an_error(
    cluster: Cluster, orders: list[TopicPartition]
) -> None:
    assert by_partition(offsets.resolve(Since(4000), cluster, orders)) == {0: 3, 1: 3}
    with pytest.raises(ConfigurationError, match="orders/1 has no record at or after timestamp 4000 ms"):
        offsets.resolve(Since(4000), cluster, orders, missing=None)


def test_point_for_each_partition_names_all_of_them(cluster: Cluster, orders: list[TopicPartition]) -> None:
    with pytest.raises(ConfigurationError, match="startingOffsets lacks orders/1"):
        offsets.resolve(Each({("orders", 0): 3}, "startingOffsets"), cluster, orders)
    with pytest.raises(ConfigurationError, match="startingOffsets names other/0, which the query"):
        offsets.resolve(Each({("other", 0): 3}, "startingOffsets"), cluster, orders)


def test_subscriptions_find_their_partitions(
    cluster: Cluster, node: Node, orders: list[TopicPartition]
) -> None:
    create(node.bootstrap, "sub-a", 1)
    create(node.bootstrap, "sub-b", 2)

    def topic_partitions(**option: str) -> list[TopicPartition]:
        return subscription.parse(Values(option)).topic_partitions(cluster)

    assert topic_partitions(subscribe="sub-b,sub-a") == [("sub-a", 0), ("sub-b", 0), ("sub-b", 1)]
    assert topic_partitions(subscribePattern="sub-.") == [("sub-a", 0), ("sub-b", 0), ("sub-b", 1)]
    assert topic_partitions(subscribePattern="sub") == []
    assert topic_partitions(assign='{"sub-b": [1], "orders": [0]}') == [("orders", 0), ("sub-b", 1)]
    add_partitions(node.bootstrap, "sub-a", 2)
    assert topic_partitions(subscribe="sub-a") == [("sub-a", 0), ("sub-a", 1)]


def test_missing_topic_or_partition_is_named(cluster: Cluster, orders: list[TopicPartition]) -> None:
    with pytest.raises(UnknownTopicOrPartition, match="nowhere"):
        subscription.parse(Values({"subscribe": "orders,nowhere"})).topic_partitions(cluster)
    with pytest.raises(UnknownTopicOrPartition, match="orders/7"):
        subscription.parse(Values({"assign": '{"orders": [0, 7]}'})).topic_partitions(cluster)
    found = subscription.parse(Values({"subscribe": "orders,nowhere"})).topic_partitions(
        cluster, strict=False
    )
    assert found == orders
