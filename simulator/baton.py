"""Real threads of which one at a time runs: the one that holds the baton.

A job of a worker may be interrupted wherever it spends time, in the midst of plain functions, so it needs a
stack of its own. The world's thread hands the baton to the job's (`Job.run`) and waits; the job hands it back
when it waits or ends. Who runs when is decided by the world's events alone, so it is the same in each run.
Threads are kept and used again: starting one costs more than most jobs.
"""

from __future__ import annotations

import threading
from _thread import LockType, allocate_lock
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from simulator.world import World

STACK_NAME: Final = "simulated job"


class Job:
    """One call of a function, which may take several steps."""

    def __init__(self, world: World, function: Callable[[], Any]) -> None:
        self.ended = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.waits_s = 0.0  # how long it wants to wait, when it has handed the baton back
        self.waits_until = 0.0  # the moment at which it last wanted to go on
        self.dropped = False  # its process is dead: it must come to its end
        self.spend_through: Callable[[float], None] | None = None  # never wait; say here what it would cost
        self._world = world
        self._function = function
        self._thread: _Thread | None = None

    def run(self) -> None:
        """Until it ends or waits. Called by the world's thread."""
        baton = self._world.baton
        if self._thread is None:
            self._thread = baton.take_thread(self)
        outer, baton.job = baton.job, self
        self._thread.go()
        baton.job = outer
        if self.ended:
            baton.give_back(self, self._thread)
            self._thread = None

    def wait(self, seconds: float) -> None:
        """Let so much time pass. Called by the job itself."""
        if self.spend_through is not None:
            self.spend_through(seconds)
        elif not self._world.skip_to(self._world.now + seconds):  # else: nobody would use the baton
            assert self._thread is not None
            self.waits_s = seconds
            self.waits_until = self._world.now + seconds
            self._thread.hand_back()
        if self.dropped:
            raise SystemExit("its process has ended")

    def step_back(self) -> None:
        """Hand the baton back at once, and go on at the moment that it waited for before."""
        assert self._thread is not None
        self._thread.hand_back()
        if self.dropped:
            raise SystemExit("its process has ended")

    def perform(self) -> None:
        try:
            self.result = self._function()
        except BaseException as raised:
            self.error = raised
        self.ended = True


class Baton:
    """The threads of a world, and the job that is running now."""

    def __init__(self) -> None:
        self.job: Job | None = None  # None: the world's own thread runs
        self._begun: dict[Job, None] = {}  # and not ended
        self._free: list[_Thread] = []

    def take_thread(self, job: Job) -> _Thread:
        self._begun[job] = None
        thread = self._free.pop() if self._free else _Thread()
        thread.job = job
        return thread

    def give_back(self, job: Job, thread: _Thread) -> None:
        del self._begun[job]
        self._free.append(thread)

    def unwind(self) -> None:
        """Bring the jobs of dead processes to their end, so that their threads are free."""
        for job in [job for job in self._begun if job.dropped]:
            while not job.ended:
                job.run()

    def close(self) -> None:
        """End all threads. Every process must have ended."""
        self.unwind()
        for thread in self._free:
            thread.end()
        self._free.clear()


class _Thread:
    def __init__(self) -> None:
        self.job: Job | None = None
        self._runs: LockType = allocate_lock()
        self._rests: LockType = allocate_lock()
        self._runs.acquire()
        self._rests.acquire()
        self._thread = threading.Thread(target=self._main, name=STACK_NAME, daemon=True)
        self._thread.start()

    def go(self) -> None:
        """Hand over the baton, and wait until it comes back."""
        self._runs.release()
        self._rests.acquire()

    def hand_back(self) -> None:
        """Give the baton back, and wait for the next `go`."""
        self._rests.release()
        self._runs.acquire()

    def end(self) -> None:
        self.job = None
        self._runs.release()
        self._thread.join()

    def _main(self) -> None:
        self._runs.acquire()
        while (job := self.job) is not None:
            job.perform()
            self._rests.release()
            self._runs.acquire()
