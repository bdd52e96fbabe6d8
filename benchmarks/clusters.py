"""Servers of several nodes: Postroad's three with three replicas, Kafka's, and two nodes to use two cores.

All nodes run on this machine, and are measured together. Both sides promise the same: acks=all, three
replicas, at least two of them in sync (`min.insync.replicas`).
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from benchmarks.process import Process, Processes, free_port, kill
from benchmarks.servers import Kafka, Mode, Postroad


class PostroadNodes(Postroad):
    """`postroad serve --nodes`: the nodes, and their parent, which keeps the coordination store."""

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super().prepare()
        cluster = ["--nodes", str(self.nodes), "--replicas", str(self.replicas)]
        return [*command, *cluster, "--ready-file", str(self._ready_file)], environment

    def wait_until_ready(self, process: Process) -> None:
        process.wait_until(self._ready_file.exists)

    def kill(self, node: int) -> None:
        """SIGKILL to one node. The parent starts it again."""
        kill(int((self.directory / "data" / f"node-{node}" / "lock").read_text()))

    def restore(self) -> None:
        """What was killed is started; it may not have caught up yet."""

    @property
    def _ready_file(self) -> Path:
        return self.directory / "ready"


class PostroadCluster(PostroadNodes):
    name = "postroad-cluster"
    nodes = 3
    replicas = 3


class PostroadTwo(PostroadNodes):
    """Two nodes, one replica: what `--nodes` is for on a machine with two cores."""

    name = "postroad-two"
    nodes = 2


class KafkaCluster(Kafka):
    """Three KRaft nodes, each broker and controller."""

    name = "kafka-cluster"
    nodes = 3
    replicas = 3
    warm_rounds = 9  # each topic has another leader: a third of the rounds warms up one node

    def __init__(self, mode: Mode, directory: Path) -> None:
        super().__init__(mode, directory)
        self._commands: dict[int, list[str]] = {}

    def start(self) -> None:
        controllers = {number: free_port() for number in range(1, self.nodes + 1)}
        for number in controllers:
            lines = self.properties(number, self._port_of(number), controllers)
            self._commands[number] = self.prepare_node(self._directory_of(number), lines)
        begun = time.monotonic()
        self.process = Processes()
        for number in controllers:
            self._start(number, self.process)
        for number, process in self.process.members.items():
            process.wait_for(self._port_of(number))
        self.ready_seconds = time.monotonic() - begun

    def stop(self) -> None:
        if self.process:
            self.process.stop()
            self.process = None
        shutil.rmtree(self.directory, ignore_errors=True)

    def kill(self, node: int) -> None:
        """SIGKILL to one node, which stays down until `restore`."""
        assert isinstance(self.process, Processes)
        self.process.members.pop(node).kill()

    def restore(self) -> None:
        """What was killed is started; it may not have caught up yet."""
        assert isinstance(self.process, Processes)
        for number in self._commands.keys() - self.process.members.keys():
            self._start(number, self.process)
            self.process.members[number].wait_for(self._port_of(number))

    def _start(self, number: int, processes: Processes) -> None:
        log = self._directory_of(number) / "output.log"
        processes.members[number] = Process(self._commands[number], log)

    def _port_of(self, number: int) -> int:
        return self.port + number - 1

    def _directory_of(self, number: int) -> Path:
        return self.directory / f"node-{number}"


Cluster = PostroadNodes | KafkaCluster
CLUSTERS: tuple[type[Postroad | Kafka], ...] = (PostroadCluster, KafkaCluster, PostroadTwo)
