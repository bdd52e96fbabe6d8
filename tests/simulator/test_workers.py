"""Jobs in simulated workers: they take time, may be interrupted, and end with their process."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

from simulator.process import Process
from simulator.workers import SimulatedWorkers
from simulator.world import World


def test_a_job_that_waits_lets_others_go_on_and_its_result_comes_back() -> None:
    steps: list[str] = []

    def job() -> str:
        for number in range(3):
            steps.append(f"job {number}")
            process.spend(0.1)
        return "done"

    async def count() -> None:
        for number in range(3):
            await asyncio.sleep(0.1)
            steps.append(f"loop {number}")

    async def work() -> str:
        counting = asyncio.create_task(count())
        result: str = await SimulatedWorkers(process, 1, "sync").call(job)
        await counting
        return result

    with World(1) as world:
        process = Process(world, "a")
        task = process.start(work())
        world.run_for(1)
        assert task.result() == "done"
        assert world.seen["a job was interrupted"]
    assert steps.index("job 0") < steps.index("loop 0") < steps.index("job 2") < steps.index("loop 2")


def test_jobs_side_by_side_end_in_an_order_that_the_seed_chooses() -> None:
    def order(seed: int) -> list[int]:
        ended: list[int] = []

        def job(number: int) -> None:
            for _ in range(3):
                process.spend(random.random())
            ended.append(number)

        async def work() -> None:
            workers = SimulatedWorkers(process, 4, "sync")
            await asyncio.gather(*(workers.call(partial(job, n)) for n in range(8)))

        with World(seed) as world:
            random = world.random("jobs")
            process = Process(world, "a")
            task = process.start(work())
            world.run_for(30)
            assert task.done()
        return ended

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(6)}) > 1


def test_an_error_of_a_job_is_raised_where_it_is_awaited() -> None:
    def job() -> None:
        raise OSError(5, "broken")

    with World(1) as world:
        process = Process(world, "a")
        task = process.start(SimulatedWorkers(process, 1, "sync").call(job))
        world.run_for(1)
        assert isinstance(task.exception(), OSError)


def test_a_job_stops_where_it_stands_when_its_process_ends() -> None:
    steps: list[str] = []

    def job() -> None:
        try:
            steps.append("begun")
            process.spend(1)
            steps.append("went on")
        finally:
            process.check()
            steps.append("finally")

    with World(1) as world:
        process = Process(world, "a")
        workers = SimulatedWorkers(process, 1, "sync")
        process.start(workers.call(job))
        process.start(workers.call(lambda: steps.append("queued")))
        world.after(0.5, process.end)
        world.run_for(10)
    assert steps == ["begun"]


def test_a_paused_process_runs_no_jobs() -> None:
    with World(1) as world:
        process = Process(world, "a")
        task = process.start(SimulatedWorkers(process, 1, "sync").call(lambda: process.spend(0.5)))
        world.run_for(0.1)
        process.pause(5)
        world.run_for(4)
        assert not task.done()
        world.run_for(2)
        assert task.done()


def test_closing_workers_finishes_their_jobs_first() -> None:
    done: list[str] = []

    def job(name: str) -> str:
        process.spend(0.2)
        process.spend(0.2)
        return name

    async def work() -> float:
        workers = SimulatedWorkers(process, 1, "sync")
        for name in "ab":
            workers.run(partial(job, name), lambda result, _: done.append(result))
        await asyncio.sleep(0.1)
        workers.close()
        await asyncio.sleep(0)
        return world.now

    with World(1) as world:
        process = Process(world, "a")
        began = world.now
        task = process.start(work())
        world.run_for(5)
        assert 0.7 < task.result() - began < 0.9
    assert done == ["a", "b"]


def test_threads_are_used_again_and_end_with_the_world() -> None:
    before = threading.active_count()
    with World(1) as world:
        process = Process(world, "a")
        workers = SimulatedWorkers(process, 2, "sync")
        tasks = [process.start(workers.call(lambda: process.spend(0.01))) for _ in range(50)]
        world.run_for(5)
        assert all(task.done() for task in tasks)
        assert threading.active_count() <= before + 2
        process.start(workers.call(lambda: process.spend(100)))
        world.run_for(5)
    assert threading.active_count() == before
