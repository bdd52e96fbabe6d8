"""What simulated processes run on: the runtimes of clients and of nodes."""

from __future__ import annotations

from pathlib import Path

from postroad.cluster.store import Store
from postroad.system.stream import Listening, Stream
from postroad.system.workers import Workers
from simulator.disk import Drive
from simulator.network import Network
from simulator.process import Process
from simulator.store import StoreServer
from simulator.workers import SimulatedWorkers


class ClientRuntime:
    """A client's (`postroad.client.runtime.Runtime`)."""

    def __init__(self, process: Process, network: Network) -> None:
        self.process = process
        self.network = network
        self.clock = process.clock
        self.random = process.world.random(f"{process.name} runtime")

    async def connect(self, host: str, port: int) -> Stream:
        return await self.network.connect(self.process, host, port)


class SimulatedRuntime(ClientRuntime):
    """A node's (`postroad.broker.runtime.Runtime`)."""

    def __init__(self, process: Process, network: Network, drive: Drive, store: StoreServer) -> None:
        super().__init__(process, network)
        self.disk = drive.mount(process)
        self._store = store

    def workers(self, count: int, name: str) -> Workers:
        return SimulatedWorkers(self.process, count, name)

    def cpu_seconds(self) -> float:
        return 0.0  # turns cost virtual time, and nobody is ever busy

    def listen(self, host: str, port: int, backlog: int) -> Listening:
        return self.network.listen(self.process, host, port, backlog)

    async def open_store(self, path: Path, address: str) -> Store:
        """A session with the store that all nodes share; neither path nor address is of use here."""
        return self._store.session(self.process)
