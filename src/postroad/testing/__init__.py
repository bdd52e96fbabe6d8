"""Real nodes for tests: `node()` is a context manager, `postroad` a pytest fixture (see `plugin`).

    from postroad.testing import node

    with node() as running:
        producer = confluent_kafka.Producer({"bootstrap.servers": running.bootstrap})

What runs is the broker itself in a process of its own, on a free port of the loopback interface, with
an empty data directory. It is no imitation, so what holds in the test holds in production.
"""

from postroad.testing.process import Node, NodeFailed, node

__all__ = ["Node", "NodeFailed", "node"]
