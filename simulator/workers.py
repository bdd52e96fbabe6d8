"""The threads of a process as simulated workers: jobs that take virtual time and may be interrupted.

A job begins some time after it was handed over, as a thread that has to be woken does, and runs with the
baton (`baton`) until it spends time. While it waits, everything else may happen: turns of its own loop, other
jobs, the end of its process. Then it is dropped where it stands.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

from postroad.system.workers import Done
from postroad.system.workers import Job as Function
from simulator.baton import Job
from simulator.process import Process

WAKE_S: Final = (2e-6, 2e-4)  # how long a thread needs until it begins


class SimulatedWorkers:
    """The port `postroad.system.workers.Workers`."""

    def __init__(self, process: Process, count: int, name: str) -> None:
        self._process = process
        self._world = process.world
        self._free = count
        self._queued: deque[tuple[Job, Done]] = deque()
        self._running: dict[Job, Done] = {}
        self._random = process.world.random(f"{process.name} workers {name}")
        process.when_ended(self._drop)

    def run(self, job: Function, done: Done) -> None:
        self._process.check()
        self._queued.append((Job(self._world, job), done))
        self._begin()

    async def call(self, job: Function) -> Any:
        future: asyncio.Future[Any] = self._process.loop.create_future()

        def done(result: Any, error: BaseException | None) -> None:
            if future.cancelled():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self.run(job, done)
        return await future

    def close(self) -> None:
        """Finish all jobs at once; the loop is held up for as long as they take."""
        self._process.check()
        jobs = [*self._running.items(), *self._queued]
        self._queued.clear()
        for job, done in jobs:
            job.spend_through = self._process.loop.spend
            while not job.ended:
                job.run()
                self._process.check()
            self._process.loop.call_soon(done, job.result, job.error)
        self._running.clear()

    # --- helpers

    def _begin(self) -> None:
        low, high = WAKE_S
        while self._free and self._queued:
            self._free -= 1
            job, done = self._queued.popleft()
            self._running[job] = done
            wakes_at = self._process.loop.time() + low + (high - low) * self._random.random()
            self._world.at(wakes_at, self._go_on, job)

    def _go_on(self, job: Job) -> None:
        process = self._process
        if not process.alive or job.ended:
            return
        if process.paused_until > self._world.now:
            self._world.at(process.paused_until, self._go_on, job)
            return
        job.run()
        if not process.alive:
            return
        if job.ended:
            self._free += 1
            process.loop.call_soon_threadsafe(self._running.pop(job), job.result, job.error)
            self._begin()
        else:
            self._world.sometimes("a job was interrupted")
            self._world.after(job.waits_s, self._go_on, job)

    def _drop(self, power: bool) -> None:
        for job in self._running:
            job.dropped = True
        self._queued.clear()
        self._running.clear()
        self._world.after(0.0, self._world.baton.unwind)
