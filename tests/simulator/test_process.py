"""A process is a loop on virtual time: its turns, its pauses, its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from simulator.clock import EPOCH_MS
from simulator.process import Process
from simulator.world import START_S, World


def test_a_sleep_costs_virtual_time_alone() -> None:
    with World(1) as world:
        task = Process(world, "a").start(asyncio.sleep(3600, "rested"))
        world.run_for(3599)
        assert not task.done()
        world.run_for(2)
        assert task.result() == "rested"


def test_a_loop_that_never_rests_lets_time_pass_all_the_same() -> None:
    async def spin() -> None:
        for _ in range(1_000_000):
            await asyncio.sleep(0)

    with World(1) as world:
        Process(world, "a").start(spin())
        world.run_for(0.1)
        assert 1_000 < world.turns < 20_000


def test_processes_take_turns_in_an_order_that_the_seed_chooses() -> None:
    def order(seed: int) -> str:
        seen: list[str] = []

        async def tell(name: str) -> None:
            for _ in range(10):
                seen.append(name)
                await asyncio.sleep(0)

        with World(seed) as world:
            for name in "abc":
                Process(world, name).start(tell(name))
            world.run_for(1)
        return "".join(seen)

    assert order(1) == order(1)
    assert len({order(seed) for seed in range(5)}) == 5


def test_time_that_the_loop_spends_is_seen_at_once_and_delays_its_next_turn() -> None:
    times: list[float] = []

    async def work(process: Process) -> None:
        process.spend(0.5)
        times.append(process.loop.time())
        await asyncio.sleep(0)
        times.append(world.now)

    with World(1) as world:
        process = Process(world, "a")
        process.start(work(process))
        world.run_for(2)
    assert times[0] == START_S + 0.5
    assert START_S + 0.5 < times[1] < START_S + 0.501


def test_a_paused_process_does_nothing_until_it_goes_on() -> None:
    with World(1) as world:
        process = Process(world, "a")
        task = process.start(asyncio.sleep(1))
        world.run_for(0.1)
        process.pause(5)
        world.run_for(4.9)
        assert not task.done()
        world.run_for(0.2)
        assert task.done()
        task = process.start(asyncio.sleep(1))
        world.run_for(0.1)
        process.pause(50)
        world.run_for(2)
        process.resume()
        world.run_for(0.1)
        assert task.done()


def test_an_exception_that_nobody_handles_is_a_complaint() -> None:
    async def fail() -> None:
        raise ValueError("no")

    with World(1) as world:
        process = Process(world, "a")
        process.start(fail())
        process.loop.call_soon(lambda: 1 / 0)
        world.run_for(1)
        assert [(found.process, type(found.exception)) for found in world.complaints] == [
            ("a", ValueError),
            ("a", ZeroDivisionError),
        ]


def test_nothing_of_a_process_runs_after_its_end() -> None:
    ran: list[str] = []

    async def live() -> None:
        try:
            async for tick in ticks():
                ran.append(tick)  # noqa: PERF401
        finally:
            process.spend(0)
            ran.append("finally")

    async def ticks() -> AsyncIterator[str]:
        try:
            while True:
                await asyncio.sleep(1)
                yield "tick"
        finally:
            process.check()
            ran.append("generator's finally")

    with World(1) as world:
        process = Process(world, "a")
        process.start(live())
        ended: list[bool] = []
        process.when_ended(ended.append)
        world.run_for(2.5)
        process.end(power=True)
        process.loop.call_soon_threadsafe(ran.append, "late")
        world.run_for(10)
        assert ended == [True]
        with pytest.raises(SystemExit):
            process.spend(0.1)
    assert ran == ["tick", "tick"]
    assert world.complaints == []


def test_a_process_that_ends_itself_in_a_turn_stops_there() -> None:
    ran: list[str] = []

    async def live() -> None:
        process.loop.call_soon(ran.append, "later in this turn")
        process.end()
        try:
            process.check()
        except BaseException:
            ran.append("swallowed")

    with World(1) as world:
        process = Process(world, "a")
        process.start(live())
        world.run_for(1)
    assert ran == ["swallowed"]


def test_wall_time_may_be_skewed_and_jump_but_monotonic_time_goes_on() -> None:
    with World(1) as world:
        process = Process(world, "a", skew_s=-2.0)
        clock = process.clock
        assert clock.now_ms() == EPOCH_MS + 1_000_000 - 2_000
        clock.skew_s = -60.0
        world.run_for(1)
        assert clock.now_ms() == EPOCH_MS + 1_001_000 - 60_000
        assert clock.monotonic_ms() == 1_001_000
        assert clock.now() == (clock.monotonic_ms(), clock.now_ms())


def test_threads_and_names_behind_the_runtime_are_refused() -> None:
    async def look_up() -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(RuntimeError, match=r"runtime\.connect"):
            await loop.getaddrinfo("localhost", 80)
        with pytest.raises(RuntimeError, match=r"runtime\.workers"):
            await asyncio.to_thread(print)

    with World(1) as world:
        task = Process(world, "a").start(look_up())
        world.run_for(1)
        assert task.done()
        assert task.exception() is None
