"""Real nodes on virtual time, in one cluster: they share a coordination store, and a network that can be cut.

Nothing happens by itself: the nodes run while a test waits for an answer, or for time to pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from postroad.broker.node import Node
from postroad.broker.partition import Partition
from postroad.cluster.keys import PartitionState
from postroad.cluster.membership import placeable
from postroad.config import load
from postroad.wire.messages import create_topics
from postroad.wire.records import Record, encode_batch
from simulator.machine import Machine
from simulator.network import Network
from simulator.process import Process
from simulator.runtime import ClientRuntime
from simulator.store import StoreServer
from simulator.world import World
from tests.faults.raw import send_batch
from tests.simulator.simulated_node import SimulatedConnection

PORT = 9092
LEASE_MS = 2000
WAIT_S = 30.0
STEP_S = 0.002  # of virtual time, between two looks


class SimulatedCluster:
    def __init__(self, nodes: int, seed: int, **settings: Any) -> None:
        self.world = World(seed)
        self.network = Network(self.world)
        self.store = StoreServer(self.world)
        self.machines = {
            number: Machine(self.world, self.network, self.store, host_of(number))
            for number in range(1, nodes + 1)
        }
        self.nodes: dict[int, Node] = {}
        self._settings = {name.replace("_", ".", 1): str(value) for name, value in settings.items()}
        self._clients = 0

    # --- its nodes

    def start(self, number: int, **settings: Any) -> None:
        """Start a node, and wait until it serves."""
        machine = self.machines[number]
        given = {name.replace("_", ".", 1): str(value) for name, value in settings.items()}
        process = machine.boot()
        node = self.nodes[number] = Node(self._loaded(number, given), machine.runtime(process))
        started = process.start(node.start())
        self.until(started.done)
        started.result()

    def kill(self, number: int) -> None:
        self.machines[number].kill()
        del self.nodes[number]

    def _loaded(self, number: int, given: dict[str, str]) -> Any:
        fixed = {
            "node.id": str(number),
            "node.rack": f"rack-{number}",
            "kafka.host": host_of(number),
            "kafka.port": str(PORT),
            "kafka.insecure": "true",
            "data.dir": "/data",
            "cluster.store": "etcd://simulated:2379",  # else a node counts as alone, and its lease is longer
            "cluster.lease_ms": str(LEASE_MS),
            "http.enabled": "false",
        }
        return load(environment={}, flags=fixed | self._settings | given)

    def cut_from_store(self, number: int) -> None:
        self.store.cut(host_of(number))

    # --- time

    def run_for(self, seconds: float) -> None:
        self.world.run_for(seconds)

    def until(self, condition: Callable[[], object], within_s: float = WAIT_S) -> None:
        self.world.run_until(lambda: bool(condition()), within_s, STEP_S)

    # --- clients

    def connect(self, number: int) -> SimulatedConnection:
        self._clients += 1
        process = Process(self.world, f"client-{self._clients}")
        connecting = process.start(ClientRuntime(process, self.network).connect(host_of(number), PORT))
        self.until(connecting.done)
        return SimulatedConnection(self.world, process, connecting.result())

    def call(self, number: int, api: ModuleType, version: int, body: Any) -> Any:
        """One request to the node, on a connection of its own."""
        with self.connect(number) as connection:
            return connection.call(api, version, body)

    def create(self, name: str, *, at: int = 1, **given: Any) -> Any:
        """Ask node `at` for a topic; the result, which may be an error."""
        topic = create_topics.CreatableTopic(
            name=name, **{"num_partitions": 1, "replication_factor": 3} | given
        )
        request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        return self.call(at, create_topics, 7, request).topics[0]

    def create_led_by(self, name: str, *replicas: int) -> None:
        """A topic of one partition on these nodes, in sync, led by the first of them."""
        assignment = create_topics.CreatableReplicaAssignment(0, list(replicas))
        result = self.create(name, num_partitions=-1, replication_factor=-1, assignments=[assignment])
        assert result.error_code == 0, result.error_message
        self.until(lambda: self.leads(replicas[0], name))

    def publish(self, name: str, *values: bytes, acks: int = -1) -> int:
        """Each value in a batch of its own, to the leader of partition 0; the offset of the last."""
        with self.connect(self.state(name).leader) as connection:
            for value in values:
                record = Record(0, 1_000, b"key", value, [])
                answer = send_batch(connection, name, encode_batch([record]), acks=acks)
                assert answer.error_code == 0, answer.error_message
        return int(answer.base_offset)

    # --- what there is

    def is_complete(self) -> bool:
        """Whether each node knows that all serve, and who is the controller."""
        images = [node.image for node in self.nodes.values()]
        return all(
            image.controller is not None and len(placeable(image)) == len(self.machines) for image in images
        )

    def state(self, name: str, index: int = 0) -> PartitionState:
        """The partition's state as the node with the newest image knows it."""
        image = max((node.image for node in self.nodes.values()), key=lambda image: image.revision)
        return image.topics[name].partitions[index]

    def leads(self, number: int, name: str) -> bool:
        found = self.nodes[number].partitions.find(name, 0)
        return found is not None and found.leads

    def partition(self, number: int, name: str) -> Partition:
        return self.nodes[number].partitions.lead(name, 0)

    def replica(self, number: int, name: str) -> Partition | None:
        """The partition on that node, whatever its role."""
        node = self.nodes[number]
        return node.partitions.replica(node.image.topics[name].id, 0)

    def replica_end(self, number: int, name: str) -> int:
        """The end of the log on that node."""
        found = self.replica(number, name)
        return -1 if found is None else found.log.end_offset


def host_of(number: int) -> str:
    return f"10.0.0.{number}"


@contextmanager
def simulated_cluster(nodes: int = 3, seed: int = 1, **settings: Any) -> Iterator[SimulatedCluster]:
    """A cluster whose nodes all serve."""
    cluster = SimulatedCluster(nodes, seed, **settings)
    with cluster.world:
        for number in cluster.machines:
            cluster.start(number)
        cluster.until(cluster.is_complete)
        yield cluster
        assert cluster.world.complaints == []
