"""A node's entry in the coordination store, through outages, pauses and whatever else a seed brings."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from postroad.broker.registration import Registration
from postroad.cluster import keys
from postroad.cluster.decision import Decision
from postroad.cluster.image import NodeEntry
from postroad.cluster.store import Put
from postroad.errors import NodeIdTaken
from simulator.process import Process
from simulator.store import StoreServer
from simulator.world import World

LEASE_MS = 10_000
LEASE_S = LEASE_MS / 1000
HOST = "10.0.0.1"
ENTRY = keys.node_key(1)
OTHERS = keys.encode(keys.NodeValue("elsewhere", 9092, "other"))


class Registered:
    """A process whose only work is to register and to keep its lease alive."""

    def __init__(self, world: World, server: StoreServer) -> None:
        self.process = Process(world, HOST)
        self.server = server
        store = server.session(self.process)

        async def commit(decision: Decision) -> int | None:
            return await store.commit(*decision)

        me = NodeEntry(1, HOST, 9092, "mine")
        self.registration = Registration(store, me, commit, LEASE_MS, self.process.clock)
        self.task = self.process.start(self._live())
        world.run_for(1)
        assert self.is_there

    async def _live(self) -> None:
        await self.registration.begin()
        await self.registration.keep()

    @property
    def is_there(self) -> bool:
        found = self.server.get(ENTRY)
        return found is not None and b'"mine"' in found.value


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=1) as made:
        yield made
        assert made.complaints == []


@pytest.fixture
def server(world: World) -> StoreServer:
    return StoreServer(world)


@pytest.fixture
def node(world: World, server: StoreServer) -> Registered:
    return Registered(world, server)


def test_an_entry_is_kept_for_as_long_as_the_process_lives(world: World, node: Registered) -> None:
    world.run_for(10 * LEASE_S)
    assert node.is_there
    assert world.seen["lease expired"] == 0
    node.process.end()
    world.run_for(LEASE_S + 1)
    assert not node.is_there


def test_a_node_that_was_cut_off_is_back_soon_and_says_so_once(
    world: World, server: StoreServer, node: Registered, caplog: pytest.LogCaptureFixture
) -> None:
    server.cut(HOST)
    world.run_for(3 * LEASE_S)
    assert not node.is_there
    server.heal(HOST)
    world.run_until(lambda: node.is_there, within=LEASE_S / 3 + 1)
    world.run_for(3 * LEASE_S)
    assert node.is_there
    trouble = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert ["can't be renewed" in record.getMessage() for record in trouble] == [True, False]
    assert "registering anew" in trouble[1].getMessage()


def test_an_outage_of_the_whole_store_costs_nobody_the_entry(
    world: World, server: StoreServer, node: Registered
) -> None:
    server.begin_outage()
    world.run_for(5 * LEASE_S)
    server.end_outage()
    for _ in range(30):
        world.run_for(1)
        assert node.is_there


def test_a_paused_node_registers_anew_before_its_watch_tells_of_the_leases_end(
    world: World, server: StoreServer, node: Registered
) -> None:
    server.faults.watch_lag_s = 60.0
    node.process.pause(2 * LEASE_S)
    world.run_for(2 * LEASE_S - 0.1)
    assert not node.is_there
    world.run_until(lambda: node.is_there, within=LEASE_S / 3 + 1)


def test_an_id_that_another_process_took_meanwhile_is_taken_back_when_it_ends(
    world: World, server: StoreServer, node: Registered
) -> None:
    server.cut(HOST)
    world.run_for(2 * LEASE_S)
    lease = server.grant(600_000)
    server.commit([], [Put(ENTRY, OTHERS, lease)])
    server.heal(HOST)
    world.run_for(2 * LEASE_S)
    assert not node.task.done()
    assert not node.is_there
    server.revoke(lease)
    world.run_until(lambda: node.is_there, within=2)


def test_a_start_under_an_id_that_is_taken_is_refused_and_leaves_no_lease(
    world: World, server: StoreServer
) -> None:
    lease = server.grant(600_000)
    server.commit([], [Put(ENTRY, OTHERS, lease)])
    process = Process(world, HOST)

    async def never(decision: Decision) -> int | None:
        raise AssertionError(decision)

    me = NodeEntry(1, HOST, 9092, "mine")
    task = process.start(Registration(server.session(process), me, never, LEASE_MS, process.clock).begin())
    world.run_for(1)
    assert isinstance(task.exception(), NodeIdTaken)
    assert server.grant(1000) == lease + 1


@pytest.mark.parametrize("seed", range(20))
def test_whatever_goes_wrong_the_entry_is_there_when_all_is_well(seed: int) -> None:
    with World(seed) as world:
        server = StoreServer(world)
        node = Registered(world, server)
        faults, chance = server.faults, world.random("test")
        faults.request_lost = faults.request_late = faults.answer_lost = 0.2
        for _ in range(20):
            fault = chance.choice([server.cut, lambda _: server.begin_outage(), lambda _: None])
            fault(HOST)
            if chance.random() < 0.3:
                node.process.pause(chance.uniform(0, 3 * LEASE_S))
            world.run_for(chance.uniform(0, 3 * LEASE_S))
            server.heal()
        node.process.resume()
        faults.request_lost = faults.request_late = faults.answer_lost = 0.0
        world.run_for(2 * LEASE_S)
        assert node.is_there
        assert not node.task.done()
        assert world.complaints == []


def test_a_lease_is_current_no_longer_than_it_lasts_from_before_its_renewal_was_sent(
    world: World, server: StoreServer, node: Registered
) -> None:
    clock, registration = node.process.clock, node.registration
    assert registration.is_current(clock.monotonic_ms())
    server.cut(HOST, requests=False)  # renewals arrive, their answers don't
    cut_ms = clock.monotonic_ms()
    assert not registration.is_current(cut_ms + LEASE_MS)
    world.run_for(LEASE_S)
    assert not registration.is_current(clock.monotonic_ms())
    server.heal(HOST)
    world.run_for(LEASE_S)
    assert registration.is_current(clock.monotonic_ms())


def test_a_lease_that_was_lost_is_current_again_when_it_was_replaced(
    world: World, server: StoreServer, node: Registered
) -> None:
    first = node.registration.revision
    server.cut(HOST)
    world.run_for(3 * LEASE_S)
    assert not node.is_there
    assert not node.registration.is_current(node.process.clock.monotonic_ms())
    server.heal(HOST)
    world.run_for(LEASE_S)
    assert node.registration.is_current(node.process.clock.monotonic_ms())
    assert node.registration.revision > first
