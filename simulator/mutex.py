"""A lock that the loop of a process and its jobs share.

Only jobs are interrupted, so only a job can hold it while somebody else runs. A job that finds it taken
waits. The loop can't: as a thread that is blocked, it is held up for as long as the holder still needs, and
the holder goes on at once until it lets the lock go.
"""

from __future__ import annotations

from typing import Final

from simulator.baton import Job
from simulator.process import Process

LOOK_AGAIN_S: Final = 2e-5  # how soon a job that waits for it notices that it is free


class Mutex:
    """The port `postroad.log.disk.Disk.mutex`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._baton = process.world.baton
        self._taken = False
        self._holder: Job | None = None  # None: the loop, or nobody
        self._holds_up_loop = False

    def __enter__(self) -> None:
        while self._taken:
            self._process.check()
            job = self._baton.job
            if job is not None and job.spend_through is None:
                job.wait(LOOK_AGAIN_S)
            else:
                self._let_holder_finish()
        self._taken, self._holder = True, self._baton.job

    def __exit__(self, *_: object) -> None:
        job, self._taken, self._holder = self._holder, False, None
        if self._holds_up_loop and job is not None:
            self._holds_up_loop = False
            job.spend_through = None
            job.step_back()

    def _let_holder_finish(self) -> None:
        holder = self._holder
        assert holder is not None, "the loop waits for a lock that it holds itself"
        self._process.world.sometimes("the loop waited for a job's lock")
        self._holds_up_loop = True
        loop = self._process.loop
        loop.spend(max(holder.waits_until - loop.time(), 0.0))
        holder.spend_through = loop.spend
        holder.run()
