"""Real nodes for tests: `node()` and `cluster()` are context managers, `postroad` and `postroad_cluster`
pytest fixtures (see `plugin`).

    from postroad.testing import node

    with node() as running:
        producer = confluent_kafka.Producer({"bootstrap.servers": running.bootstrap})

What runs is the broker itself in a process of its own, on a free port of the loopback interface, with
an empty data directory. It is no imitation, so what holds in the test holds in production.

`workers(app)` runs the workers of a `postroad.App` without a node and without waiting (see `worker_runs`).
"""

from typing import TYPE_CHECKING, Any

from postroad.testing.nodes import ClusterNode, RunningCluster, cluster
from postroad.testing.process import Node, NodeFailed, node

if TYPE_CHECKING:
    from postroad.testing.worker_runs import WorkerRun, workers

__all__ = [
    "ClusterNode",
    "Node",
    "NodeFailed",
    "RunningCluster",
    "WorkerRun",
    "cluster",
    "node",
    "workers",
]


def __getattr__(name: str) -> Any:
    """What only tests of workers need is loaded for them."""
    if name not in ("WorkerRun", "workers"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from postroad.testing import worker_runs

    return getattr(worker_runs, name)
