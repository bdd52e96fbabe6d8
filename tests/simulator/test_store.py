"""The simulated coordination store: the port's contract on any seed, and each way in which it fails."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from postroad.cluster.store import PROGRESS, Compare, Event, Events, Put, Store
from postroad.errors import HistoryCompacted, LeaseLost, StoreUnavailable
from simulator.process import Process
from simulator.scenario import Scenario
from simulator.store import StoreFaults, StoreServer
from simulator.workloads import ALL, names_for
from simulator.world import World
from tests.cluster.store_contract import StoreContract, keys, next_events, put

T = TypeVar("T")

PROMISES = [name for name in vars(StoreContract) if name.startswith("test_")]
NODE, OTHER = "10.0.0.1", "10.0.0.2"
LEASE_MS = 10_000


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=1) as made:
        yield made
        assert made.complaints == []


@pytest.fixture
def server(world: World) -> StoreServer:
    return StoreServer(world)


def finish(process: Process, work: Coroutine[Any, Any, T], within: float = 600.0) -> T:
    """Run it in the process until it is done; its result."""
    task = process.start(work)
    process.world.run_until(task.done, within)
    return task.result()


async def first_of(watch: AsyncIterator[Events]) -> Events:
    return await anext(watch)


async def elapse(ms: int) -> None:
    await asyncio.sleep(ms / 1000)


@pytest.mark.parametrize("faults", [StoreFaults(), StoreFaults(watch_lag_s=0.5), StoreFaults(neighbour=1.0)])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("promise", PROMISES)
def test_it_keeps_the_contract_of_every_store(promise: str, seed: int, faults: StoreFaults) -> None:
    with World(seed) as world:
        process = Process(world, NODE)
        store = StoreServer(world, faults).session(process)
        test: Callable[..., Coroutine[Any, Any, None]] = getattr(StoreContract(), promise)
        wanted = inspect.signature(test).parameters
        given = {"store": store, "elapse": elapse}
        finish(process, test(**{name: given[name] for name in wanted}))
        assert world.complaints == []


def history_of(seed: int) -> tuple[str, dict[str, int]]:
    """The trace of three nodes that write, watch and keep leases while the store fails in every way."""
    with World(seed) as world:
        server = StoreServer(world, StoreFaults(request_lost=0.05, request_late=0.05, answer_lost=0.05))
        server.faults.watch_lag_s = 0.2
        processes = [Process(world, f"10.0.0.{number}") for number in range(3)]
        for process in processes:
            process.start(live(process, server.session(process)))
            process.start(follow(server.session(process)))
        world.after(2.0, server.cut, processes[0].host)
        world.after(3.0, server.begin_outage)
        world.after(9.0, server.compact)
        world.after(9.5, server.heal)
        world.after(12.0, processes[1].end)
        world.after(13.0, processes[2].pause, 20.0)
        world.run_for(60)
        assert world.complaints == []
        return world.trace.digest, dict(world.seen)


async def live(process: Process, store: Store) -> None:
    lease = 0
    while True:
        await asyncio.sleep(0.2)
        try:
            if lease:
                await store.keep_alive(lease)
            else:
                lease = await store.grant(2000)
            await store.commit([], [Put(process.host, b"here", lease)])
        except LeaseLost:
            lease = 0
        except StoreUnavailable:
            continue


async def follow(store: Store) -> None:
    seen = 0
    while True:
        try:
            seen = seen or (await store.list("")).revision
            async for events in store.watch("", seen):
                assert {event.revision for event in events} == {events[0].revision}
                assert events[0].revision == seen + 1, "none is left out, and none comes twice"
                seen += 1
        except HistoryCompacted:
            seen = 0
        except StoreUnavailable:
            await asyncio.sleep(0.1)


def test_one_seed_is_one_history_and_another_is_another() -> None:
    assert history_of(7) == history_of(7)
    assert history_of(7)[0] != history_of(8)[0]


def test_everything_that_can_go_wrong_does_within_a_few_seeds() -> None:
    seen: set[str] = set()
    for seed in range(6):
        seen |= history_of(seed)[1].keys()
    assert {
        "store request lost",
        "store request late",
        "store answer lost",
        "unknown commit that happened",
        "lease expired",
        "history compacted",
    } <= seen


# --- requests and answers


def test_a_commit_whose_answer_is_lost_did_happen(world: World, server: StoreServer) -> None:
    process = Process(world, NODE)
    store = server.session(process)
    server.faults.answer_lost = 1.0
    began = world.now
    with pytest.raises(StoreUnavailable):
        finish(process, put(store, "a"))
    assert world.now - began == pytest.approx(server.faults.patience_s, abs=0.1)
    assert server.get("a") is not None
    assert world.seen["unknown commit that happened"] == 1


def test_a_commit_whose_request_is_lost_did_not_happen(world: World, server: StoreServer) -> None:
    process = Process(world, NODE)
    server.faults.request_lost = 1.0
    with pytest.raises(StoreUnavailable):
        finish(process, put(server.session(process), "a"))
    world.run_for(60)
    assert server.get("a") is None


def test_a_late_commit_happens_after_its_sender_has_given_up_and_read(
    world: World, server: StoreServer
) -> None:
    process = Process(world, NODE)
    store = server.session(process)
    server.faults.request_late = 1.0
    with pytest.raises(StoreUnavailable):
        finish(process, put(store, "a"))
    server.faults.request_late = 0.0
    assert finish(process, store.get("a")) is None
    world.run_for(3 * server.faults.patience_s)
    assert finish(process, store.get("a")) is not None


def test_answers_for_a_dead_process_are_dropped_and_its_commits_are_not(
    world: World, server: StoreServer
) -> None:
    process = Process(world, NODE)
    task = process.start(put(server.session(process), "a"))
    world.run_until(lambda: server.get("a") is not None, within=1, step=0.0001)
    process.end()
    world.run_for(60)
    assert not task.done()
    assert world.seen["store answer for a dead process"] == 1


# --- outages


def test_an_outage_for_one_host_leaves_the_others_alone(world: World, server: StoreServer) -> None:
    cut_off, other = Process(world, NODE), Process(world, OTHER)
    store = server.session(cut_off)
    server.cut(NODE)
    assert finish(other, put(server.session(other), "a")) == 2
    with pytest.raises(StoreUnavailable):
        finish(cut_off, store.get("a"))
    server.heal(NODE)
    assert finish(cut_off, store.get("a")) == ("a", b"v", 2)


def test_a_host_may_be_cut_off_one_way(world: World, server: StoreServer) -> None:
    process = Process(world, NODE)
    store = server.session(process)
    server.cut(NODE, requests=False)
    with pytest.raises(StoreUnavailable):
        finish(process, put(store, "arrives"))
    server.heal()
    server.cut(NODE, answers=False)
    with pytest.raises(StoreUnavailable):
        finish(process, put(store, "lost"))
    assert [entry.key for entry in server.list("").entries] == ["arrives"]


def test_no_lease_ends_in_an_outage_of_the_whole_store_and_each_then_has_its_whole_time(
    world: World, server: StoreServer
) -> None:
    process = Process(world, NODE)
    store = server.session(process)
    lease = finish(process, store.grant(LEASE_MS))
    finish(process, put(store, "a", lease=lease))
    world.run_for(LEASE_MS / 1000 - 1)
    server.begin_outage()
    world.run_for(10 * LEASE_MS / 1000)
    server.end_outage()
    world.run_for(LEASE_MS / 1000 - 1)
    assert server.get("a") is not None
    world.run_for(2)
    assert server.get("a") is None


def test_a_host_that_is_cut_off_loses_its_lease(world: World, server: StoreServer) -> None:
    process = Process(world, NODE)
    store = server.session(process)
    lease = finish(process, store.grant(LEASE_MS))
    finish(process, put(store, "a", lease=lease))
    server.cut(NODE)
    world.run_for(LEASE_MS / 1000 + 1)
    server.heal(NODE)
    with pytest.raises(LeaseLost):
        finish(process, store.keep_alive(lease))
    assert finish(process, keys(store)) == []


# --- watches


def watching(process: Process, store: Store, seen: list[Events]) -> asyncio.Task[None]:
    async def watch() -> None:
        async for events in store.watch("", 1):
            seen.extend([events])

    return process.start(watch())


def test_a_watch_that_hangs_in_an_outage_misses_nothing(world: World, server: StoreServer) -> None:
    cut_off, writer = Process(world, NODE), Process(world, OTHER)
    seen: list[Events] = []
    server.faults.watch_broken = 0.0
    watching(cut_off, server.session(cut_off), seen)
    world.run_for(0.1)
    server.cut(NODE)
    finish(writer, put(server.session(writer), "a"))
    world.run_for(60)
    assert seen == []
    server.heal(NODE)
    world.run_for(1)
    assert seen == [[Event("a", b"v", 2)]]


def test_a_watch_that_breaks_in_an_outage_can_be_resumed(world: World, server: StoreServer) -> None:
    cut_off, writer = Process(world, NODE), Process(world, OTHER)
    store = server.session(cut_off)
    server.faults.watch_broken = 1.0
    waiting = watching(cut_off, store, [])
    world.run_for(0.1)
    server.cut(NODE)
    finish(writer, put(server.session(writer), "a"))
    world.run_for(3)
    assert isinstance(waiting.exception(), StoreUnavailable)
    with pytest.raises(StoreUnavailable):
        finish(cut_off, next_events(store.watch("", 1)))
    server.heal(NODE)
    assert finish(cut_off, next_events(store.watch("", 1))) == [Event("a", b"v", 2)]


def test_a_paused_process_reads_its_watch_late(world: World, server: StoreServer) -> None:
    paused, writer = Process(world, NODE), Process(world, OTHER)
    seen: list[Events] = []
    server.faults.watch_lag_s = 1.0
    watching(paused, server.session(paused), seen)
    world.run_for(0.1)
    paused.pause(5.0)
    finish(writer, put(server.session(writer), "a"))
    world.run_for(4.9)
    assert seen == []
    world.run_for(1.2)
    assert seen == [[Event("a", b"v", 2)]]


def test_a_watch_that_asks_for_compacted_history_is_told(world: World, server: StoreServer) -> None:
    process = Process(world, NODE)
    store = server.session(process)
    for key in "abc":
        finish(process, put(store, key))
    server.compact(keep=1)
    with pytest.raises(HistoryCompacted):
        finish(process, next_events(store.watch("", 2)))
    assert finish(process, next_events(store.watch("", 3))) == [Event("c", b"v", 4)]


def test_a_watch_that_lags_behind_a_compaction_is_told(world: World, server: StoreServer) -> None:
    process, writer = Process(world, NODE), Process(world, OTHER)
    waiting = watching(process, server.session(process), [])
    world.run_for(0.1)
    server.faults.watch_lag_s = 5.0
    other = server.session(writer)
    finish(writer, put(other, "a"))
    finish(writer, put(other, "b"))
    server.compact()
    world.run_for(11)
    assert isinstance(waiting.exception(), HistoryCompacted)


# --- what etcd would refuse


def test_a_commit_that_etcd_would_refuse_is_a_fault_of_the_node(server: StoreServer) -> None:
    with pytest.raises(AssertionError, match="operations"):
        server.commit([], [Put(f"key/{number}", b"") for number in range(129)])
    with pytest.raises(AssertionError, match="compares"):
        server.commit([Compare(f"key/{number}", 0) for number in range(129)], [])
    with pytest.raises(AssertionError, match="bytes"):
        server.commit([], [Put("a", bytes(1024 * 1024 + 1))])


# --- a store that others use too -----------------------------------------------------------------


def test_a_watch_reaches_the_revision_of_a_neighbour(world: World, server: StoreServer) -> None:
    process = Process(world, NODE)
    store = server.session(process)
    watch = store.watch("", finish(process, put(store, "a")))
    server.commit_elsewhere()
    revision = finish(process, store.list("")).revision
    (mark,) = finish(process, first_of(watch))
    assert mark == Event(PROGRESS, None, mark.revision)
    assert mark.revision > revision


@pytest.mark.parametrize("seed", [1, 2])
def test_nodes_hold_their_promises_in_a_store_that_others_use_too(seed: int) -> None:
    scenario = Scenario(seed, [ALL[name] for name in names_for(3)], seconds=30.0, nodes=3)
    scenario.store.faults.neighbour = 0.5
    with scenario.world:
        result = scenario.run()
    assert result.violations == []
    assert result.sometimes["mark of progress"]
