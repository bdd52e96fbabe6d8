"""Nodes that enter their cluster: at once, together, after a kill, and while the store is away."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroad.broker.data_directory import DataDirectory
from postroad.broker.joining import Joined, Joining, patiently
from postroad.broker.registration import Registration
from postroad.cluster import keys
from postroad.cluster.decision import Decision
from postroad.cluster.image import NodeEntry
from postroad.cluster.store import Put
from postroad.errors import ConfigurationError, NodeIdTaken, StoreUnavailable
from postroad.log.memory_disk import MemoryDisk
from simulator.process import Process
from simulator.store import StoreServer
from simulator.world import World

LEASE_MS = 10_000
LEASE_S = LEASE_MS / 1000
HOME = Path("/data")


class Machine:
    """A computer with a data directory. Each start is a process, which joins and keeps its lease alive."""

    def __init__(self, world: World, server: StoreServer, node_id: int = 1) -> None:
        self.world = world
        self.server = server
        self.node_id = node_id
        self.replaces = False
        self.disk = MemoryDisk()
        self.directory = DataDirectory(HOME, self.disk)
        self.process: Process
        self.joining: asyncio.Task[Joined]

    def start(self) -> asyncio.Task[Joined]:
        self.process = Process(self.world, f"10.0.0.{self.node_id}")
        self.joining = self.process.start(self._join())
        return self.joining

    def kill(self) -> None:
        self.process.end()
        self.directory.close(clean=False)  # as the kernel frees the lock

    def refused(self) -> None:
        """The node lets go of the directory, as at the end of any start that fails."""
        self.directory.close(clean=False)

    async def _join(self) -> Joined:
        random = self.world.random(f"node {self.node_id}")
        store = self.server.session(self.process)

        async def commit(decision: Decision) -> int | None:
            return await store.commit(*decision)

        self.directory.open()
        incarnation, directory = random.randbytes(8).hex(), self.directory.known_id(random.randbytes(8).hex())
        me = NodeEntry(self.node_id, self.process.host, 9092, incarnation, directory)
        registration = Registration(store, me, commit, LEASE_MS, self.process.clock)
        joining = Joining(
            store,
            self.directory,
            registration,
            commit,
            random.randbytes(16),
            lambda topic: True,
            self.replaces,
        )
        joined = await patiently(joining.join, LEASE_MS)
        self.process.start(registration.keep())
        return joined

    def files(self) -> dict[str, bytes]:
        names = [name for name in self.disk.list(str(HOME)) if name != "logs"]
        opened = {name: self.disk.open(f"{HOME}/{name}") for name in names}
        return {name: file.read(0, file.size()) for name, file in opened.items()}

    @property
    def entry(self) -> bytes | None:
        found = self.server.get(keys.node_key(self.node_id))
        return None if found is None else found.value


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=1) as made:
        yield made
        assert made.complaints == []


@pytest.fixture
def server(world: World) -> StoreServer:
    return StoreServer(world)


@pytest.fixture
def machine(world: World, server: StoreServer) -> Machine:
    return Machine(world, server)


def hold_id(server: StoreServer, value: keys.NodeValue, ttl_ms: int) -> int:
    """Register another process as node 1; its lease."""
    lease = server.grant(ttl_ms)
    server.commit([], [Put(keys.node_key(1), keys.encode(value), lease)])
    return lease


def test_a_killed_node_starts_again_at_once(world: World, machine: Machine) -> None:
    first = machine.start()
    world.run_until(first.done, within=1)
    before = machine.entry
    machine.kill()
    second = machine.start()
    world.run_until(second.done, within=1)
    assert not second.result().clean
    assert machine.entry not in (None, before)
    world.run_for(3 * LEASE_S)
    assert world.seen["lease expired"] == 1, "the dead process's, which held nothing any more"
    assert machine.entry is not None


def test_a_node_that_stopped_cleanly_knows_so_once(world: World, machine: Machine) -> None:
    world.run_until(machine.start().done, within=1)
    machine.process.end()
    machine.directory.close(clean=True)
    again = machine.start()
    world.run_until(again.done, within=1)
    assert again.result().clean
    machine.kill()
    once_more = machine.start()
    world.run_until(once_more.done, within=1)
    assert not once_more.result().clean


@pytest.mark.parametrize("directory", ["", "other"])
def test_the_end_of_another_directorys_lease_is_waited_for(
    world: World,
    server: StoreServer,
    machine: Machine,
    directory: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    hold_id(server, keys.NodeValue("elsewhere", 9092, "dead", directory), LEASE_MS)
    joining = machine.start()
    world.run_for(LEASE_S - 1)
    assert not joining.done()
    world.run_until(joining.done, within=3)
    assert joining.result()
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith("the start waits for up to 11 s: node.id 1 is taken by the node at elsewhere:9092")


def test_an_id_that_stays_taken_is_refused_and_nothing_in_the_directory_changes(
    world: World, server: StoreServer, machine: Machine
) -> None:
    world.run_until(machine.start().done, within=1)
    machine.process.end()
    machine.directory.close(clean=True)
    world.run_for(LEASE_S + 1)
    lease = hold_id(server, keys.NodeValue("elsewhere", 9092, "alive", "other"), 600_000)
    before = machine.files()
    assert "clean-shutdown" in before
    refused = machine.start()
    world.run_until(refused.done, within=LEASE_S + 2)
    machine.refused()
    assert isinstance(refused.exception(), NodeIdTaken)
    assert machine.files() == before
    server.revoke(lease)
    again = machine.start()
    world.run_until(again.done, within=1)
    assert again.result().clean


def test_a_lost_directory_is_replaced_only_where_the_operator_says_so(
    world: World, server: StoreServer, machine: Machine
) -> None:
    other = Machine(world, server)
    world.run_until(other.start().done, within=1)
    other.process.end()
    world.run_for(LEASE_S + 1)
    refused = machine.start()
    world.run_until(refused.done, within=LEASE_S + 2)
    machine.refused()
    assert "node.replace" in str(refused.exception())
    machine.replaces = True
    replacing = machine.start()
    world.run_until(replacing.done, within=1)
    assert replacing.result()


def test_a_new_directory_that_was_refused_may_be_given_another_id(
    world: World, server: StoreServer, machine: Machine
) -> None:
    other = Machine(world, server)
    world.run_until(other.start().done, within=1)
    refused = machine.start()
    world.run_until(refused.done, within=LEASE_S + 2)
    machine.refused()
    assert isinstance(refused.exception(), ConfigurationError)
    machine.node_id = 2
    joining = machine.start()
    world.run_until(joining.done, within=1)
    assert joining.result()


def test_a_start_waits_for_a_store_that_is_away(
    world: World, server: StoreServer, machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    server.faults.refused = 1.0
    server.begin_outage()
    joining = machine.start()
    world.run_for(LEASE_S - 1)
    server.end_outage()
    world.run_until(joining.done, within=2)
    assert joining.result()
    assert len(caplog.records) == 1


def test_a_start_without_a_store_is_refused_in_the_end_and_changes_nothing(
    world: World, server: StoreServer, machine: Machine
) -> None:
    machine.directory.open()
    machine.directory.close(clean=True)
    before = machine.files()
    server.begin_outage()
    refused = machine.start()
    world.run_until(refused.done, within=LEASE_S + 5)
    machine.refused()
    assert isinstance(refused.exception(), StoreUnavailable)
    assert machine.files() == before


@pytest.mark.parametrize("seed", range(20))
def test_nodes_that_start_together_on_an_unreliable_store_form_one_cluster(seed: int) -> None:
    with World(seed) as world:
        server = StoreServer(world)
        faults = server.faults
        faults.request_lost = faults.request_late = faults.answer_lost = 0.1
        machines = [Machine(world, server, number) for number in (1, 2, 3)]
        for machine in machines:
            machine.start()
        for _ in range(20):  # whoever is killed or gives up is started again
            world.run_for(world.random("test").uniform(0, 5))
            machine = world.random("test").choice(machines)
            machine.kill()
            machine.start()
        faults.request_lost = faults.request_late = faults.answer_lost = 0.0
        world.run_for(LEASE_S)
        for machine in machines:
            if machine.joining.done() and machine.joining.exception() is not None:
                machine.kill()
                machine.start()
        world.run_for(3 * LEASE_S)
        cluster = server.get(keys.CLUSTER)
        assert cluster is not None
        [cluster_id] = {machine.files()["node.json"].split(b'"')[3] for machine in machines}
        assert cluster_id in cluster.value
        assert all(machine.entry is not None for machine in machines)
        assert world.complaints == []
