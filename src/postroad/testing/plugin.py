"""The pytest plug-in: installed with Postroad, found by its entry point, nothing to configure.

    def test_order_is_published(postroad):
        producer = Producer({"bootstrap.servers": postroad.bootstrap})

`postroad` is a fresh node for each test; `postroad_session` is one for the whole run, which is
cheaper where tests keep to topics of their own. `postroad_cluster` is a fresh cluster of three nodes
whose topics have three replicas.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from postroad.testing import Node, RunningCluster


@pytest.fixture
def postroad() -> Iterator[Node]:
    """A fresh node with an empty data directory."""
    from postroad.testing import node

    with node() as running:
        yield running


@pytest.fixture(scope="session")
def postroad_session() -> Iterator[Node]:
    """One node for all tests of the run."""
    from postroad.testing import node

    with node() as running:
        yield running


@pytest.fixture
def postroad_cluster() -> Iterator[RunningCluster]:
    """Three fresh nodes; topics have three replicas."""
    from postroad.testing import cluster

    with cluster(nodes=3, settings={"topics.replicas": 3}) as running:
        yield running
