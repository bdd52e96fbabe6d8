"""Real nodes for tests: `node()` and `cluster()` are context managers, `postroad` and `postroad_cluster`
pytest fixtures (see `plugin`).

    from postroad.testing import node

    with node() as running:
        producer = confluent_kafka.Producer({"bootstrap.servers": running.bootstrap})

What runs is the broker itself in a process of its own, on a free port of the loopback interface, with
an empty data directory. It is no imitation, so what holds in the test holds in production.
"""

from postroad.testing.nodes import ClusterNode, RunningCluster, cluster
from postroad.testing.process import Node, NodeFailed, node

__all__ = ["ClusterNode", "Node", "NodeFailed", "RunningCluster", "cluster", "node"]
