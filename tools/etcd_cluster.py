"""Three nodes and one gateway on a real etcd, until Ctrl-C: `make cluster`.

    python -m tools.etcd_cluster [--nodes N] [--replicas R] [--data DIR]

It shows what a cluster on several machines would be, on one: each node is a process of its own, and etcd is
Debian's, with one member. Without --data everything is gone afterwards.
"""

from __future__ import annotations

import argparse
import signal
from contextlib import suppress

from postroad.testing import cluster
from postroad.testing.process import Setting


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a cluster on a real etcd until Ctrl-C.")
    parser.add_argument("--nodes", type=int, default=3, help="how many nodes (3)")
    parser.add_argument("--replicas", type=int, default=3, help="replicas of new topics (3)")
    parser.add_argument("--data", help="keep data and logs in this directory")
    given = parser.parse_args()
    settings: dict[str, Setting] = {
        "topics.replicas": given.replicas,
        "topics.partitions": given.nodes,
        "http.enabled": True,
    }
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with cluster(given.nodes, settings, etcd=True, directory=given.data) as running:
        print(f"{given.nodes} nodes are ready: Kafka clients connect to {running.bootstrap}")
        print(f"HTTP (SQS, REST, WebSocket): {running.http}; data and logs in {running.home}")
        print(f"Try it:  postroad cluster status --bootstrap {running.nodes[0].bootstrap}")
        for node in running.nodes:
            print(f"         kill -9 {node.pid}  # node {node.id}")
        print("Ctrl-C stops them.", flush=True)
        with suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
