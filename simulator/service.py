"""One node that somebody keeps running: it is started again whenever it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from postroad.broker.node import Node
from postroad.config import Loaded, load
from postroad.errors import PostroadError
from simulator.conditions import Conditions
from simulator.machine import Machine
from simulator.process import Process

if TYPE_CHECKING:
    from simulator.scenario import Scenario

KAFKA_PORT: Final = 9092
AGAIN_S: Final = 1.0  # after a start that was refused, and after a node that gave up


class Service:
    def __init__(self, scenario: Scenario, machine: Machine, number: int) -> None:
        self.machine = machine
        self.number = number
        self.node: Node | None = None  # of the process that lives
        self.serves = False
        self._stops = False
        self._is_away = False  # it is not started again
        self._scenario = scenario
        self._world = scenario.world
        self._random = scenario.world.random(f"service {number}")
        rack = rack_of(number) if scenario.has_racks else ""
        self._loaded = load_settings(machine.host, number, scenario.conditions, scenario.nodes, rack)

    @property
    def address(self) -> str:
        return f"{self.machine.host}:{KAFKA_PORT}"

    @property
    def answers(self) -> bool:
        """Whether clients may hear from the node: it serves, or is about to stop."""
        return self.serves or self._stops

    def start(self) -> None:
        if self.machine.alive or self._is_away:
            return
        process = self.machine.boot()
        process.start(self._live(process))

    def kill(self) -> None:
        """kill -9; a start follows soon."""
        if self.machine.alive:
            self._world.sometimes("kill")
            self.machine.kill()
            self._ended()

    def take_down(self) -> None:
        """kill -9; it stays away until it is brought back."""
        self._is_away = True
        self.kill()

    def bring_back(self) -> None:
        self._is_away = False
        self.start()

    def cut_power(self) -> None:
        if self.machine.alive:
            self._world.sometimes("power cut while it starts" if not self.serves else "power cut")
            self.machine.cut_power()
            self._scenario.lost_power(self.number)
            self._ended()

    def stop(self) -> None:
        """SIGTERM; a start follows when it has stopped."""
        process = self.machine.process
        if self.machine.alive and self.serves and process is not None and self.node is not None:
            process.start(self._stop(process, self.node))

    def crash_in(self, operations: int, power: bool) -> None:
        """Within its next disk operations."""
        self.machine.drive.crash_after(operations, self.cut_power if power else self.kill)

    # --- helpers

    def _ended(self) -> None:
        self.node, self.serves, self._stops = None, False, False
        self._world.after(self._random.uniform(0.05, 3.0), self.start)

    async def _live(self, process: Process) -> None:
        self.node = node = Node(self._loaded, self.machine.runtime(process))
        try:
            await node.start()
        except PostroadError as error:
            self._world.note(self.machine.host, "start refused", str(error))
            self._world.sometimes("start refused")
            self._world.after(AGAIN_S, self._again, process)
            return
        self.serves = True
        self._world.note(self.machine.host, "serves")
        await node.failed.wait()
        self._world.sometimes("node gave up")
        await self._stop(process, node)

    async def _stop(self, process: Process, node: Node) -> None:
        if not self.serves:
            return
        self.serves, self._stops = False, True
        await node.stop()
        self._world.sometimes("clean stop")
        self._world.after(AGAIN_S, self._again, process)

    def _again(self, process: Process) -> None:
        if process.alive:
            self.machine.kill()  # what is left of it: its main function has ended
            self._ended()


def rack_of(number: int) -> str:
    return f"rack-{number}"


def load_settings(host: str, number: int, conditions: Conditions, nodes: int = 1, rack: str = "") -> Loaded:
    """Those of a node on this host, in a cluster of so many."""
    return load(
        environment={},
        flags={
            "node.id": str(number),
            "node.rack": rack,
            "kafka.host": host,
            "kafka.port": str(KAFKA_PORT),
            "kafka.insecure": "true",
            "data.dir": f"/{host}",
            **conditions.flags(nodes),
        },
    )
