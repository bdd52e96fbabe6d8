"""A computer: its drive and its clock outlive the processes that run on it."""

from __future__ import annotations

from simulator.clock import EPOCH_MS
from simulator.disk import Drive
from simulator.network import Network
from simulator.process import Process
from simulator.runtime import SimulatedRuntime
from simulator.store import StoreServer
from simulator.world import World


class Machine:
    """One host, with one process at a time."""

    def __init__(self, world: World, network: Network, store: StoreServer, host: str) -> None:
        self.world = world
        self.network = network
        self.store = store
        self.host = host
        self.drive = Drive(world, host)
        self.process: Process | None = None
        self.boots = 0
        self.skews: list[tuple[float, float]] = [(world.now, 0.0)]  # of the wall clock, each since when

    @property
    def skew_s(self) -> float:
        return self.skews[-1][1]

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.alive

    def boot(self) -> Process:
        """Power up, if need be, and start a process. The last one must have ended."""
        assert not self.alive, f"{self.host} runs already"
        self.world.note(self.host, "boots")
        self.network.power(self.host, on=True)
        self.boots += 1
        self.process = process = Process(self.world, self.host, skew_s=self.skew_s)
        return process

    def runtime(self, process: Process) -> SimulatedRuntime:
        """What a node in this process of the machine runs on."""
        return SimulatedRuntime(process, self.network, self.drive, self.store)

    def kill(self) -> None:
        """End the process by kill -9, if there is one; files and connections are left to the kernel."""
        if self.process is not None:
            self.process.end()

    def cut_power(self) -> None:
        """The process, the page cache and all connections are gone; peers are not told."""
        if self.process is not None:
            self.process.end(power=True)
        self.network.power(self.host, on=False)
        self.drive.cut_power()

    def set_clock(self, skew_s: float) -> None:
        """Set the wall clock, so that it is wrong by so much."""
        self.world.note(self.host, "clock set", f"{skew_s:.6f}")
        self.skews.append((self.world.now, skew_s))
        if self.process is not None:
            self.process.clock.skew_s = self.skew_s

    def wall_range_ms(self, since: float, until: float) -> tuple[int, int]:
        """The earliest and the latest time that its wall clock showed between two moments."""
        shown: list[float] = []
        for number, (begin, skew_s) in enumerate(self.skews):
            end = self.skews[number + 1][0] if number + 1 < len(self.skews) else until
            if begin <= until and end >= since:
                shown += [max(begin, since) + skew_s, min(end, until) + skew_s]
        return EPOCH_MS + int(min(shown) * 1000), EPOCH_MS + int(max(shown) * 1000)
