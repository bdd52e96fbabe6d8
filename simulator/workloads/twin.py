"""A process that somebody starts by mistake under another node's id, with a data directory of its own."""

from __future__ import annotations

from typing import Final

from postroad.broker.node import Node
from postroad.errors import ConfigurationError, NodeIdTaken, PostroadError
from simulator.conditions import Conditions
from simulator.machine import Machine
from simulator.process import Process
from simulator.service import Service, load_settings

NETWORK: Final = "10.0.9"  # hosts that the nodes don't have


class Twin:
    def __init__(self, of: Service, conditions: Conditions, number: int) -> None:
        original = of.machine
        host = f"{NETWORK}.{number}"
        self.machine = Machine(original.world, original.network, original.store, host)
        self.node: Node | None = None  # None: it was refused, or has ended
        self._world = original.world
        self._loaded = load_settings(self.machine.host, of.number, conditions)

    def start(self) -> None:
        process = self.machine.boot()
        process.start(self._live(process))

    def end(self) -> None:
        """kill -9."""
        self.node = None
        self.machine.kill()

    async def _live(self, process: Process) -> None:
        self.node = node = Node(self._loaded, self.machine.runtime(process))
        try:
            await node.start()
        except (ConfigurationError, NodeIdTaken):  # its data directory is not the node's
            self._world.sometimes("membership: a second process with one id was refused")
            self.node = None
        except PostroadError as error:
            self._world.note(process.name, "start refused", str(error))
            self.node = None
        else:
            self._world.sometimes("membership: a node that was away lost its id to another process")
