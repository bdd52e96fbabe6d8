"""A machine: what outlives a kill, what outlives a power cut, and its clock."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from postroad.broker.runtime import Runtime
from postroad.client.runtime import Runtime as OfClients
from simulator.machine import Machine
from simulator.network import Network
from simulator.process import Process
from simulator.runtime import ClientRuntime
from simulator.store import StoreServer
from simulator.world import World


def make_machine(world: World) -> Machine:
    return Machine(world, Network(world), StoreServer(world), "node-1")


def test_a_kill_keeps_what_was_written_and_a_power_cut_what_was_synced() -> None:
    with World(1) as world:
        machine = make_machine(world)
        disk = machine.runtime(machine.boot()).disk
        disk.make_directory("/data")
        file = disk.open("/data/file", create=True)
        disk.sync_directory("/data")
        file.append([b"synced"])
        file.sync()
        file.append([b" and written"])
        machine.kill()
        assert not machine.alive
        with pytest.raises(SystemExit):
            file.append([b"late"])
        disk = machine.runtime(machine.boot()).disk
        assert disk.open("/data/file").read(0, 100) == b"synced and written"
        machine.cut_power()
        disk = machine.runtime(machine.boot()).disk
        assert disk.open("/data/file").read(0, 100).startswith(b"synced")
        assert machine.boots == 3


def test_a_machine_without_power_takes_no_connections_until_it_is_up_again() -> None:
    with World(1) as world:
        machine = make_machine(world)
        client = Process(world, "client")
        machine.boot()
        machine.cut_power()
        task = client.start(ClientRuntime(client, machine.network).connect("node-1", 9092))
        world.run_for(5)
        assert not task.done()
        machine.runtime(machine.boot()).listen("0.0.0.0", 9092, 10)
        world.run_for(5)
        assert task.done()
        assert task.exception() is None


def test_a_clock_that_jumped_stays_wrong_after_the_next_start() -> None:
    with World(1) as world:
        machine = make_machine(world)
        clock = machine.boot().clock
        before = clock.now_ms()
        machine.set_clock(-5.0)
        assert clock.now_ms() == before - 5_000
        machine.kill()
        machine.set_clock(-4.0)
        assert machine.boot().clock.now_ms() == before - 4_000


def test_a_machine_runs_one_process_at_a_time() -> None:
    with World(1) as world:
        machine = make_machine(world)
        machine.boot()
        with pytest.raises(AssertionError, match="runs already"):
            machine.boot()


def test_a_job_is_interrupted_between_two_disk_operations() -> None:
    with World(1) as world:
        machine = make_machine(world)
        process = machine.boot()
        runtime = machine.runtime(process)
        disk = runtime.disk

        def job() -> None:
            disk.make_directory("/data")
            for name in ("a", "b"):
                disk.open(f"/data/{name}", create=True)
                process.spend(1.0)

        async def work() -> None:
            await runtime.workers(1, "slow").call(job)

        process.start(work())
        world.run_for(0.5)
        machine.kill()
        world.run_for(5)
        assert machine.runtime(machine.boot()).disk.list("/data") == ["a"]


def test_the_runtimes_have_what_nodes_and_clients_ask_for() -> None:
    with World(1) as world:
        machine = make_machine(world)
        process = machine.boot()
        node: Runtime = machine.runtime(process)
        client: OfClients = ClientRuntime(process, machine.network)
        assert node.clock is client.clock
        store = process.start(open_store(node))
        world.run_for(1)
        assert store.result() == []


async def open_store(runtime: Runtime) -> list[object]:
    store = await runtime.open_store(Path("/data/store"), "")
    await asyncio.sleep(0)
    return list((await store.list("")).entries)
