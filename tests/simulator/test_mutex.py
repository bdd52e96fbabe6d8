"""A lock between a loop and its jobs: nobody hangs, and time passes for who waits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simulator.mutex import Mutex
from simulator.process import Process
from simulator.workers import SimulatedWorkers
from simulator.world import START_S, World


@pytest.fixture
def world() -> Iterator[World]:
    with World(1) as world:
        yield world


def test_a_loop_that_finds_the_lock_taken_is_held_up_until_the_job_lets_it_go(world: World) -> None:
    process = Process(world, "host")
    mutex, ended = Mutex(process), list[str]()
    workers = SimulatedWorkers(process, 1, "test")

    def job() -> None:
        with mutex:
            process.spend(1.0)
        ended.append("lock")
        process.spend(0.5)
        ended.append("job")

    def take() -> None:
        with mutex:
            ended.append(f"loop at {process.loop.time() - START_S:.1f}")

    workers.run(job, lambda result, error: ended.append("done"))
    process.loop.call_later(0.3, take)
    world.run_for(10)
    assert ended == ["loop at 1.0", "lock", "job", "done"]


def test_a_job_waits_for_another_ones_lock(world: World) -> None:
    process = Process(world, "host")
    mutex, held = Mutex(process), list[float]()
    workers = SimulatedWorkers(process, 2, "test")

    def job() -> None:
        with mutex:
            held.append(world.now - START_S)
            process.spend(1.0)

    for _ in range(2):
        workers.run(job, lambda result, error: None)
    world.run_for(10)
    assert [round(at, 2) for at in held] == [0.0, 1.0]


def test_a_lock_of_a_dead_process_holds_up_nobody(world: World) -> None:
    process = Process(world, "host")
    mutex = Mutex(process)
    workers = SimulatedWorkers(process, 2, "test")

    def job() -> None:
        with mutex:
            process.spend(1.0)

    for _ in range(2):
        workers.run(job, lambda result, error: None)
    world.run_for(0.5)
    process.end()
    world.run_for(10)
