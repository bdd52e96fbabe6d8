"""Three nodes on a real etcd under the load of all clients, for the rows of the failure matrix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from postroad.testing import ClusterNode, RunningCluster, cluster

from .cluster_load import ClusterLoad
from .load import TOPIC
from .replicas_at_rest import assert_equal_at_rest

SETTINGS = {"topics.replicas": 3, "http.enabled": True}


class Loaded(NamedTuple):
    running: RunningCluster
    load: ClusterLoad


@contextmanager
def loaded_cluster(directory: Path, etcd: int = 1, **topic_config: str) -> Iterator[Loaded]:
    """All promises are held against what is left when the block has ended."""
    with cluster(nodes=3, settings=SETTINGS, etcd=etcd, directory=directory) as running:
        with ClusterLoad(running, **topic_config) as load:
            yield Loaded(running, load)
        load.check()
    assert_equal_at_rest(running)


def led_by(running: RunningCluster, node: ClusterNode) -> list[int]:
    """The partitions of the load that the node leads."""
    seen = running.wait_until(lambda cluster: TOPIC in cluster.topics, "the topic is known")
    return [index for index, state in enumerate(seen.topics[TOPIC].partitions) if state.leader == node.id]
