"""One seed: nodes, clients and faults, from the first start to the last check.

faults strike while the workloads run → everything heals → every node is started once more →
a calm in which what is under way comes to its end → workloads read what they need → epilogues → checks
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from postroad.client.client import Client
from postroad.cluster.ids import id_text
from postroad.cluster.image import Topic
from postroad.errors import PostroadError
from simulator.checkers import a2_whole, l12_replicas, l13_one_leader, p1_states
from simulator.checkers.cores import check_cores
from simulator.checkers.l1_in_sync import InSync
from simulator.checkers.l11_watermarks import Watermarks
from simulator.cluster_history import ClusterHistory, Contradiction
from simulator.conditions import Conditions
from simulator.faults import KINDS, Fault, Flip, make_plan
from simulator.log_lines import LogLines
from simulator.machine import Machine
from simulator.network import Network
from simulator.process import Process
from simulator.runtime import ClientRuntime
from simulator.service import Service
from simulator.store import StoreServer
from simulator.strikes import strike
from simulator.violation import Violation
from simulator.workloads.workload import Role, Stage, Workload
from simulator.world import START_S, World

CALM_S: Final = 30.0
REST_S: Final = 1.0  # a watermark reaches a follower with the next answer, at the latest
FINISH_S: Final = 60.0  # the longest that a workload may take to read what it needs
AGAIN_S: Final = 0.2  # after a role has ended
CLIENT_TIMEOUT_S: Final = 10.0
SHORT_WRITES: Final = 0.03  # of all writes: a crash may come between their parts
WRITE_BACKS: Final = 0.03  # after which the kernel writes pages on its own account


@dataclass(frozen=True)
class Result:
    seed: int
    violations: Sequence[Violation]
    sometimes: dict[str, int]
    digest: str
    cpu_s: float
    virtual_s: float
    plan: Sequence[Fault]


class Scenario:
    def __init__(
        self,
        seed: int,
        workloads: Sequence[type[Workload]],
        *,
        seconds: float = 60.0,
        nodes: int = 1,
        kinds: Collection[str] = tuple(KINDS),
        plan: Sequence[Fault] | None = None,
        conditions: Conditions | None = None,
        trace: Path | None = None,
    ) -> None:
        self.seed = seed
        self.seconds = seconds
        self.nodes = nodes
        self.has_racks = any(kind.racks for kind in workloads)
        self.world = world = World(seed, trace)
        self.conditions = conditions or Conditions.draw(world.random("conditions"))
        self.plan = make_plan(world.random("faults"), seconds, nodes, kinds) if plan is None else plan
        self.network = Network(world)
        self.network.is_encrypted = self.conditions.tls
        if self.conditions.tls:
            world.sometimes("everybody talks with TLS")
        self._latency_s = self.network.conditions.latency_s
        self.store = StoreServer(world)
        self.history = ClusterHistory(self.store)
        self.services = [self._service(number) for number in range(1, nodes + 1)]
        self.flips: list[Flip] = []
        self._watermarks = Watermarks(self.history, self.services)
        self._in_sync = InSync(self.history, self.services)
        self.history.listeners.append(self._look_in_sync)
        self._power_cuts: list[float] = []
        self._violations: list[Violation] = []
        self._stages = [self._stage(kind.name) for kind in workloads]
        self.workloads = [kind(stage) for kind, stage in zip(workloads, self._stages, strict=True)]
        self._lines = LogLines(world, self.history)
        self.clients: list[Process] = []
        self._unfinished: dict[str, None] = {}
        self._read: list[Workload] = []  # those that have read all they need

    @property
    def bootstrap(self) -> str:
        return self.conditions.bootstrap(",".join(service.address for service in self.services))

    def run(self) -> Result:
        began = time.process_time()
        with self._lines:
            try:
                self._play()
                found = [*self._violations, *self._check()]
            except Contradiction as contradiction:
                found = [Violation("P1", f"what the store says can't be: {contradiction}", self.world.now)]
        return Result(
            seed=self.seed,
            violations=found,
            sometimes=dict(self.world.seen),
            digest=self.world.trace.digest,
            cpu_s=time.process_time() - began,
            virtual_s=self.world.now - START_S,
            plan=self.plan,
        )

    # --- its acts

    def _play(self) -> None:
        world = self.world
        for service in self.services:
            service.start()
        for workload in self.workloads:
            for name, role in workload.roles().items():
                self._process(f"{workload.name}-{name}", role)
        for fault in self.plan:
            world.after(fault.at, strike, self, fault)
        world.after(1.0, self._look)
        world.run_for(self.seconds)
        self._heal()
        world.run_for(CALM_S)
        for workload in self.workloads:
            self._finish(workload)
        self._run_until_finished()
        for workload in self.workloads:
            epilogue = workload.epilogue()
            if epilogue is not None and not self._unfinished:
                self._last(f"{workload.name}-epilogue", epilogue)
                self._run_until_finished()
        world.run_for(REST_S)
        fragile = {name for workload in self.workloads for name in workload.fragile}
        self._violations += l12_replicas.check(self.services, fragile)

    def _run_until_finished(self) -> None:
        end = self.world.now + FINISH_S
        while self._unfinished and self.world.now < end:
            self.world.run_for(0.5)

    def _heal(self) -> None:
        """All faults end, and every node is started once more."""
        for stage in self._stages:
            stage.calm = True
        self.network.heal()
        self.store.end_outage()
        self.store.heal()
        self.calm_store()
        self.calm_network()
        self.end_resets()
        for service in self.services:
            service.machine.drive.heal()
            service.machine.set_clock(0.0)
            if service.machine.process is not None:
                service.machine.process.resume()
            service.kill()

    def _finish(self, workload: Workload) -> None:
        async def finish(client: Client) -> None:
            await workload.finish(client)
            self._read.append(workload)

        self._last(f"{workload.name}-finish", finish)

    def _last(self, name: str, role: Role) -> None:
        """A client that must succeed."""
        self._unfinished[name] = None
        process = Process(self.world, name)

        async def live() -> None:
            try:
                async with self._client(process, FINISH_S / 2) as client:
                    await role(client)
            except PostroadError as error:
                self._violations.append(Violation("A2", f"{name}: {error!r}", self.world.now))
            del self._unfinished[name]

        process.start(live())

    def _check(self) -> list[Violation]:
        found = [Violation("A3", f"{name} did not end") for name in self._unfinished]
        for workload in self._read:
            found += workload.check()
        found += l13_one_leader.check(self.history.states)
        found += p1_states.check(self.history.states)
        found += a2_whole.check(self.history.truth)
        found += self._lines.violations()
        found += [
            Violation("E1", f"{process}: {message}: {error!r}", at)
            for at, process, message, error in self.world.complaints
        ]
        return found

    def _look(self) -> None:
        """Every core's own check, each virtual second."""
        for service in self.services:
            if service.node is not None and service.serves:
                try:
                    check_cores(service.node)
                except AssertionError as error:
                    self._violations.append(Violation("C1", repr(error), self.world.now))
        self._violations += self._watermarks.look()
        self._look_in_sync()
        self.world.after(1.0, self._look)

    def _look_in_sync(self, topics: Sequence[Topic] | None = None) -> None:
        self._violations += self._in_sync.look(topics)

    # --- what strikes

    def lost_power(self, node: int) -> None:
        self._power_cuts.append(self.world.now)
        self.history.lost_power(node)

    def fragile_directories(self, node: int) -> tuple[str, ...]:
        """How the paths of files begin that may be damaged: those of topics that are there for it."""
        service = self.services[node]
        topics = {} if service.node is None else service.node.image.topics
        names = [name for workload in self.workloads for name in workload.fragile if name in topics]
        return tuple(f"/{service.machine.host}/logs/{id_text(topics[name].id)}-" for name in names)

    def mend_disk(self, node: int) -> None:
        drive = self.services[node].machine.drive
        drive.slowness, drive.stall_rate, drive.capacity = 1.0, 0.0, None
        drive.error_rates.clear()

    def calm_network(self) -> None:
        self.network.conditions.latency_s = self._latency_s

    def end_resets(self) -> None:
        self.network.conditions.resets = 0.0

    def calm_store(self) -> None:
        faults = self.store.faults
        faults.request_lost = faults.request_late = faults.answer_lost = faults.watch_lag_s = 0.0

    # --- helpers

    def _service(self, number: int) -> Service:
        machine = Machine(self.world, self.network, self.store, f"10.0.0.{number}")
        machine.drive.short_write_rate, machine.drive.write_back_rate = SHORT_WRITES, WRITE_BACKS
        return Service(self, machine, number)

    def _stage(self, name: str) -> Stage:
        return Stage(
            world=self.world,
            random=self.world.random(f"workload {name}"),
            conditions=self.conditions,
            history=self.history,
            seconds=self.seconds,
            power_cuts=self._power_cuts,
            violations=self._violations,
            services=self.services,
            flips=self.flips,
        )

    def _process(self, name: str, role: Role) -> None:
        process = Process(self.world, name)
        self.clients.append(process)

        async def live() -> None:
            while True:
                try:
                    async with self._client(process, CLIENT_TIMEOUT_S) as client:
                        await role(client)
                except PostroadError as error:
                    self.world.note(name, "gave up", type(error).__name__)
                await asyncio.sleep(AGAIN_S)

        process.start(live())

    def _client(self, process: Process, timeout_s: float) -> Client:
        runtime = ClientRuntime(process, self.network)
        return Client(self.bootstrap, client_id=process.name, timeout_s=timeout_s, runtime=runtime)
