"""Three nodes on a real etcd under the load of all clients, for the rows of the failure matrix."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from postroad.client.metadata import Cluster
from postroad.testing import ClusterNode, RunningCluster, cluster
from postroad.testing.process import Setting

from .cluster_load import ClusterLoad
from .load import PARTITIONS, TOPIC
from .replicas_at_rest import assert_equal_at_rest

SETTINGS = {"topics.replicas": 3, "http.enabled": True}

# librdkafka waits for an answer from a silent machine for a minute, whoever leads by then.
IMPATIENT = {"socket.timeout.ms": 1500, "request.timeout.ms": 1500}


class Loaded(NamedTuple):
    running: RunningCluster
    load: ClusterLoad


@contextmanager
def loaded_cluster(
    directory: Path,
    etcd: int = 1,
    producer: Mapping[str, Any] | None = None,
    settings: Mapping[str, Setting] | None = None,
    topic_config: Mapping[str, str] | None = None,
) -> Iterator[Loaded]:
    """All promises are held against what is left when the block has ended."""
    with cluster(
        nodes=3, settings={**SETTINGS, **(settings or {})}, etcd=etcd, directory=directory
    ) as running:
        with ClusterLoad(running, topic_config, producer) as load:
            yield Loaded(running, load)
        load.check()
    assert_equal_at_rest(running)


def led_by(running: RunningCluster, node: ClusterNode) -> list[int]:
    """The partitions of the load that the node leads."""
    seen = running.wait_until(lambda cluster: TOPIC in cluster.topics, "the topic is known")
    return [index for index, state in enumerate(seen.topics[TOPIC].partitions) if state.leader == node.id]


def leaders(running: RunningCluster) -> set[int]:
    """The nodes that lead a partition of the load."""
    return {running.leader(TOPIC, partition).id for partition in range(PARTITIONS)}


def in_sync(seen: Cluster, partition: int) -> list[int]:
    """The replicas of the load's partition that are in sync."""
    return list(seen.topics[TOPIC].partitions[partition].isr)


def wait_for_another_leader(running: RunningCluster, node: ClusterNode, partitions: list[int]) -> float:
    """How long it takes until another node is known to lead what this one led; it may be silent."""
    began = time.monotonic()
    asked = next(other for other in running.nodes if other is not node and other.is_serving)
    running.wait_until(
        lambda seen: all(
            seen.topics[TOPIC].partitions[index].leader not in (node.id, -1) for index in partitions
        ),
        f"others than node {node.id} lead",
        asked,
    )
    return time.monotonic() - began
