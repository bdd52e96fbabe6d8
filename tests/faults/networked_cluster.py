"""Three nodes and an etcd of three members, each on a machine of its own (`network_namespaces`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from postroad.testing import ClusterNode, RunningCluster
from postroad.testing.etcd import Etcd, EtcdMember
from postroad.testing.process import Setting

from .cluster_load import ClusterLoad
from .loaded_cluster import IMPATIENT, SETTINGS
from .network_namespaces import Namespaces, network
from .replicas_at_rest import assert_equal_at_rest

NODES = ["node1", "node2", "node3"]
MEMBERS = ["etcd1", "etcd2", "etcd3"]
PORT = 9092


class NetworkedMember(EtcdMember):
    """A member of etcd on the machine that has its name."""

    def __init__(self, home: Path, name: str, net: Namespaces) -> None:
        self._net = net
        self._ports = iter((2379, 2380))
        super().__init__(home, name)

    def _take_port(self) -> str:
        return f"{self._net.address(self.name)}:{next(self._ports)}"

    def _command(self, command: list[str]) -> list[str]:
        return self._net.command(self.name, command)


class NetworkedNode(ClusterNode):
    """A node on its machine; nobody else has its port."""

    def __init__(self, home: Path, number: int, settings: Mapping[str, Setting], net: Namespaces) -> None:
        super().__init__(home, number, {**settings, "kafka.insecure": True})
        self.machine = NODES[number - 1]
        self._net = net
        self._listen = f"{net.address(self.machine)}:{PORT}"

    def _command(self, command: list[str]) -> list[str]:
        return self._net.command(self.machine, command)

    def _hold_ports(self, patience_s: float = 0) -> None:
        pass


class NetworkedCluster(RunningCluster):
    """A cluster over a network that can be cut."""

    def __init__(self, home: Path, store: str, net: Namespaces) -> None:
        self.net = net
        super().__init__(home, len(NODES), store, SETTINGS)

    def _make_node(self, home: Path, number: int, settings: Mapping[str, Setting]) -> ClusterNode:
        return NetworkedNode(home, number, settings, self.net)

    def machine(self, node: ClusterNode) -> str:
        return NODES[node.id - 1]

    def others(self, node: ClusterNode) -> list[str]:
        """The machines of the other nodes."""
        return [machine for machine in NODES if machine != self.machine(node)]


@contextmanager
def networked_cluster(directory: Path) -> Iterator[tuple[NetworkedCluster, ClusterLoad]]:
    """Under the load of all clients; all promises are held against what is left when the block has ended."""
    with network([*NODES, *MEMBERS]) as net:
        store = Etcd([NetworkedMember(directory, name, net) for name in MEMBERS])
        running = NetworkedCluster(directory, store.url(), net)
        try:
            store.start()
            running.start()
            with ClusterLoad(running, producer=IMPATIENT) as load:
                yield running, load
            load.check()
            running.stop()
        finally:
            running.kill()
            store.close()
    assert_equal_at_rest(running)
