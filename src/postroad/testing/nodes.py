"""A cluster for tests: several nodes, each a process of its own, that share a coordination store.

    with cluster(nodes=3, settings={"topics.replicas": 3}) as running:
        producer = confluent_kafka.Producer({"bootstrap.servers": running.bootstrap})
        running.leader("orders").kill()

The store is SQLite in another process, or a real etcd. A node can be killed, stopped, started, paused and
resumed; it keeps its port and its data. With the setting `http.enabled` one gateway runs in front of all.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from postroad.client import Client
from postroad.client.metadata import NO_LEADER, Cluster
from postroad.errors import PostroadError
from postroad.testing.etcd import Etcd
from postroad.testing.etcd import etcd as running_etcd
from postroad.testing.process import (
    DEFAULTS,
    LOG_TAIL_CHARS,
    STOP_TIMEOUT_S,
    Node,
    NodeFailed,
    Setting,
    toml,
    wait_for_file,
)

LEASE_MS: Final = 2_000  # the shortest: tests wait for the end of a lease, too
WHOLE_TIMEOUT_S: Final = 60.0  # some seconds are usual; a machine under load takes longer
LOOK_S: Final = 0.05
CALL_TIMEOUT_S: Final = 5.0


class ClusterNode(Node):
    """One node of a cluster, with its number."""

    def __init__(self, home: Path, number: int, settings: Mapping[str, Setting]) -> None:
        self.id = number
        super().__init__(home, settings)

    def configure(self, config: Mapping[str, Setting]) -> None:
        """`{node}` in a setting becomes the node's number: racks differ."""
        named = {
            key: value.replace("{node}", str(self.id)) if isinstance(value, str) else value
            for key, value in config.items()
        }
        super().configure({**named, "http.enabled": False, "node.id": self.id})

    @property
    def is_serving(self) -> bool:
        """Whether it runs and is not paused."""
        return self.is_running and not self.is_paused


class RunningCluster:
    """A cluster while its block runs. `bootstrap` names all nodes, also those that are down."""

    nodes: list[ClusterNode]
    etcd: Etcd | None  # its members can be killed, too; None if the store is another process's SQLite

    def __init__(self, home: Path, nodes: int, store: str, settings: Mapping[str, Setting]) -> None:
        shared = {"cluster.lease_ms": LEASE_MS, **settings, "cluster.store": store}
        self.home = home
        self.nodes = []
        for number in range(1, nodes + 1):
            directory = home / f"node-{number}"
            directory.mkdir(parents=True, exist_ok=True)
            self.nodes.append(self._make_node(directory, number, shared))
        self.etcd = None
        self.http = ""  # the gateway's URL; empty without one
        self._gateway = _Gateway(home, settings) if settings.get("http.enabled") else None

    def _make_node(self, home: Path, number: int, settings: Mapping[str, Setting]) -> ClusterNode:
        return ClusterNode(home, number, settings)

    @property
    def bootstrap(self) -> str:
        """All nodes, as Kafka clients want it."""
        return ",".join(node.bootstrap for node in self.nodes)

    def address(self, node: ClusterNode) -> str:
        """Where Postroad's own client asks the node, for whoever wants it to come in another way."""
        return node.bootstrap

    @property
    def gateway_bootstrap(self) -> str:
        """By which the gateway reaches the nodes."""
        return self.bootstrap

    def start(self) -> None:
        """Start all nodes at once. Each of them knows the others, the controller and all leaders then."""
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.wait_until_ready()
        self._wait_until_agreed()
        if self._gateway is not None:
            self.http = self._gateway.start(self.gateway_bootstrap)

    def stop(self) -> None:
        """Stop the gateway and all nodes that run, in order."""
        if self._gateway is not None:
            self._gateway.stop()
        for node in self.nodes:
            node.stop()

    def kill(self) -> None:
        """SIGKILL for all that still runs."""
        if self._gateway is not None:
            self._gateway.kill()
        for node in self.nodes:
            node.kill()
            node.release_ports()

    def node(self, number: int) -> ClusterNode:
        """The node with this id."""
        return self.nodes[number - 1]

    def leader(self, topic: str, partition: int = 0) -> ClusterNode:
        """The node that leads the partition now and runs; waits for a while if there is none."""

        def leader(cluster: Cluster) -> int:
            found = cluster.topics.get(topic)
            return NO_LEADER if found is None else found.partitions[partition].leader

        seen = self.wait_until(
            lambda cluster: self._serves(leader(cluster), cluster), f"{topic} has a leader"
        )
        return self.node(leader(seen))

    def controller(self) -> ClusterNode:
        """The node that is the controller now; waits for a while if none is."""
        seen = self.wait_until(
            lambda cluster: self._serves(cluster.controller, cluster), "there is a controller"
        )
        return self.node(seen.controller)

    def wait_until_whole(self) -> None:
        """Return once all nodes serve, and all replicas of all partitions are in sync."""
        self.wait_until(lambda cluster: _is_whole(cluster, len(self.nodes)), "all replicas are in sync")

    def wait_until(
        self, holds: Callable[[Cluster], bool], what: str, asked: ClusterNode | None = None
    ) -> Cluster:
        """What a running node says of the cluster, once that holds. NodeFailed if it does not in time."""
        return self._wait(holds, what, [asked or next(node for node in self.nodes if node.is_serving)])

    def _serves(self, number: int, cluster: Cluster) -> bool:
        """Whether the node is known to the cluster, which may not have noticed yet that it is down."""
        return number in cluster.nodes and self.node(number).is_serving

    def _wait_until_agreed(self) -> None:
        """All nodes know each other and name the same controller: while there is none each names itself."""
        deadline = time.monotonic() + WHOLE_TIMEOUT_S
        named: set[int] = set()
        while len(named) != 1:
            if time.monotonic() > deadline:
                raise self._failed(f"no controller within {WHOLE_TIMEOUT_S:g} s: {named}")
            named = {
                self._wait(lambda seen: _is_led(seen, len(self.nodes)), "all nodes serve", [node]).controller
                for node in self.nodes
            }

    def _wait(self, holds: Callable[[Cluster], bool], what: str, nodes: Sequence[ClusterNode]) -> Cluster:
        assert nodes, "there is no node to ask"
        with ThreadPoolExecutor(1) as pool:  # the test may have an event loop of its own
            for node in nodes:
                found = pool.submit(asyncio.run, _until(self.address(node), holds)).result()
                if found is None:
                    raise self._failed(f"{what}: not within {WHOLE_TIMEOUT_S:g} s")
        assert found is not None
        return found

    def _failed(self, what: str) -> NodeFailed:
        logs = (node.log_file.read_text(errors="replace")[-LOG_TAIL_CHARS:] for node in self.nodes)
        return NodeFailed(f"{what}; the nodes wrote:\n" + "\n".join(logs))


def _is_led(cluster: Cluster, nodes: int) -> bool:
    partitions = [partition for topic in cluster.topics.values() for partition in topic.partitions]
    return (
        len(cluster.nodes) == nodes
        and cluster.controller in cluster.nodes
        and all(partition.leader in cluster.nodes for partition in partitions)
    )


def _is_whole(cluster: Cluster, nodes: int) -> bool:
    partitions = [partition for topic in cluster.topics.values() for partition in topic.partitions]
    return _is_led(cluster, nodes) and all(
        sorted(partition.isr) == sorted(partition.replicas) for partition in partitions
    )


async def _until(bootstrap: str, holds: Callable[[Cluster], bool]) -> Cluster | None:
    """What the node says of its cluster once that holds; None if it does not in time."""
    deadline = time.monotonic() + WHOLE_TIMEOUT_S
    client = Client(bootstrap, timeout_s=CALL_TIMEOUT_S)
    try:
        while time.monotonic() < deadline:
            try:
                cluster = await client.cluster()
            except PostroadError:  # it is only starting, or held up
                pass
            else:
                if holds(cluster):
                    return cluster
            await asyncio.sleep(LOOK_S)
        return None
    finally:
        client.close()


class _Gateway:
    """One gateway in front of all nodes, on a free port."""

    def __init__(self, home: Path, settings: Mapping[str, Setting]) -> None:
        self._log = home / "gateway.log"
        self._ready_file = home / "gateway.json"
        self._config_file = home / "gateway.toml"
        self._config_file.write_text(toml({**DEFAULTS, **settings}))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, bootstrap: str) -> str:
        """Start it. Returns its URL."""
        self._ready_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "postroad", "gateway", "--bootstrap", bootstrap]
        command += ["--config", str(self._config_file), "--ready-file", str(self._ready_file)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        try:
            facts = wait_for_file(self._ready_file, self._process)
        except NodeFailed as error:
            written = self._log.read_text(errors="replace")[-LOG_TAIL_CHARS:]
            raise NodeFailed(f"the gateway {error}; it wrote:\n{written}") from None
        return facts["url"]

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(STOP_TIMEOUT_S)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_TIMEOUT_S)


@contextmanager
def store_process(home: Path) -> Iterator[str]:
    """A process that serves SQLite; what the setting `cluster.store` wants."""
    # Its own short directory: the path of a Unix socket has about a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="postroad-store-") as directory:
        socket = f"{directory}/store.sock"
        command = [sys.executable, "-P", "-m", "postroad.testing.store_process"]
        command += [str(home / "coordination.sqlite"), socket]
        serving = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        with serving:
            assert serving.stdin is not None
            assert serving.stdout is not None
            if not serving.stdout.readline():
                raise NodeFailed("the process that serves the coordination store ended instead of starting")
            yield f"unix://{socket}"
            serving.stdin.close()
            serving.wait(STOP_TIMEOUT_S)


@contextmanager
def cluster(
    nodes: int = 3,
    settings: Mapping[str, Setting] | None = None,
    *,
    etcd: int = False,
    directory: str | os.PathLike[str] | None = None,
) -> Iterator[RunningCluster]:
    """Nodes on free ports with data of their own, for as long as the block runs.

    `settings` are those of all nodes, by their names in the configuration file. `etcd`: True, or the number
    of members, for a real etcd instead of SQLite. `directory` keeps data and logs; without it they are
    temporary.
    """
    home = Path(tempfile.mkdtemp(prefix="postroad-cluster-")) if directory is None else Path(directory)
    try:
        if etcd:
            with (
                running_etcd(members=int(etcd)) as store,
                _nodes(home, nodes, store.url(), settings) as running,
            ):
                running.etcd = store
                yield running
        else:
            with store_process(home) as url, _nodes(home, nodes, url, settings) as running:
                yield running
    finally:
        if directory is None:
            shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _nodes(
    home: Path, nodes: int, store: str, settings: Mapping[str, Setting] | None
) -> Iterator[RunningCluster]:
    running = RunningCluster(home, nodes, store, settings or {})
    try:
        running.start()
        yield running
        running.stop()
    finally:
        running.kill()
