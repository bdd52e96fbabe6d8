"""A queue over partitions of three nodes, received through one gateway: which node's messages come."""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from postroad.cli import main
from postroad.testing import RunningCluster, cluster
from tests.clients.wait import until

PARTITIONS = 3
EACH = 100  # messages in a partition
CALLS = 60


@pytest.fixture
def running() -> Iterator[RunningCluster]:
    with cluster(nodes=3, settings={"topics.replicas": 3, "http.enabled": True}) as running:
        postroad(running, "topic", "create", "jobs", "--partitions", str(PARTITIONS))
        postroad(running, "subscription", "create", "workers", "--topic", "jobs")
        yield running


def postroad(running: RunningCluster, *arguments: str) -> None:
    done = CliRunner().invoke(main, [*arguments, "--bootstrap", running.bootstrap])
    assert done.exit_code == 0, done.output


def fill(running: RunningCluster, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": running.bootstrap})
    for partition in range(partitions):
        for _ in range(EACH):
            producer.produce("jobs", b"job", partition=partition)
    assert producer.flush(30) == 0


def leaders(running: RunningCluster, partitions: int) -> dict[int, int]:
    """By partition, once there are so many and all are led."""
    seen = running.wait_until(
        lambda cluster: (
            len(cluster.topics["jobs"].partitions) == partitions
            and all(each.leader in cluster.nodes for each in cluster.topics["jobs"].partitions)
        ),
        "the topic has its partitions",
    )
    return {number: each.leader for number, each in enumerate(seen.topics["jobs"].partitions)}


def receive(running: RunningCluster, count: int) -> list[Any]:
    url = f"{running.http}/v1/subscriptions/workers/receive"
    body = json.dumps({"max": count, "wait_ms": 10_000}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        messages: list[Any] = json.load(answer)["messages"]
    return messages


@pytest.mark.parametrize("count", [1, 3])
def test_receives_are_spread_over_the_nodes_that_have_messages(running: RunningCluster, count: int) -> None:
    led_by = leaders(running, PARTITIONS)
    assert sorted(led_by.values()) == [1, 2, 3]
    fill(running, PARTITIONS)
    came: Counter[int] = Counter()
    for _ in range(CALLS):
        came.update(led_by[message["partition"]] for message in receive(running, count))
    assert sum(came.values()) >= CALLS
    assert min(came[node] for node in (1, 2, 3)) >= sum(came.values()) / 4, came


def test_partitions_that_a_topic_gets_later_are_received_from(running: RunningCluster) -> None:
    fill(running, PARTITIONS)
    assert receive(running, 1)
    postroad(running, "topic", "alter", "jobs", "--partitions", str(2 * PARTITIONS))
    leaders(running, 2 * PARTITIONS)
    fill(running, 2 * PARTITIONS)
    seen: set[int] = set()

    def has_come_from_all() -> bool:
        seen.update(message["partition"] for message in receive(running, 10))
        return seen == set(range(2 * PARTITIONS))

    until(has_come_from_all, "messages of all partitions", 60)
