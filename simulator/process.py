"""One incarnation of a process: an event loop of its own, so that its end is the end of all it started.

After `end` nothing of it runs on. Its handles (disk, streams, store session, workers) raise SystemExit when
they are used, what comes late for it is dropped, and its tasks lie in the world's graveyard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import count
from typing import Any, NoReturn, TypeVar

from simulator.clock import Clock
from simulator.grave import Grave
from simulator.loop import Loop
from simulator.world import World

T = TypeVar("T")


class Process:
    def __init__(self, world: World, host: str, name: str | None = None, skew_s: float = 0.0) -> None:
        self.world = world
        self.host = host
        self.name = name or host
        self.alive = True
        self.loop = Loop(self)
        self.clock = Clock(self.loop.time, skew_s)
        self._when_ended: dict[int, Callable[[bool], None]] = {}
        self._numbers = count()
        world.processes.append(self)

    def start(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run it as a task of this process. Its result is there once the world has run for long enough."""
        self.check()
        task = self.loop.create_task(coroutine)
        self.loop.schedule()
        return task

    def check(self) -> None:
        """SystemExit where a dead process is about to do something."""
        if not self.alive:
            self._fail()

    def spend(self, seconds: float) -> None:
        """Hold up the caller for so long: the loop, or the job of a worker that is running.

        Other things may happen meanwhile, this process's end among them: then SystemExit is raised.
        """
        self.check()
        job = self.world.baton.job
        if job is None:
            self.loop.spend(seconds)
        else:
            job.wait(seconds)
            self.check()

    def pause(self, seconds: float) -> None:
        """All of its threads stop for so long (SIGSTOP, a virtual machine that is moved)."""
        self.world.note(self.name, "paused", f"{seconds:.6f}")
        self.loop.pause(seconds)

    def resume(self) -> None:
        """End a pause (SIGCONT)."""
        self.loop.resume()

    @property
    def paused_until(self) -> float:
        """A moment that has passed, unless it is paused now."""
        return self.loop.paused_until

    def when_ended(self, call: Callable[[bool], None]) -> Callable[[], object]:
        """Call it when the process has ended; it is told whether by a power cut. Answers how to undo this."""
        number = next(self._numbers)
        self._when_ended[number] = call
        return partial(self._when_ended.pop, number, None)

    def end(self, power: bool = False) -> None:
        """kill -9, or its machine loses power."""
        if not self.alive:
            return
        self.world.note(self.name, "power cut" if power else "killed")
        self.alive = False
        self.world.processes.remove(self)
        loop = self.loop
        self.world.graveyard.append(Grave(loop, list(asyncio.all_tasks(loop)), list(loop._asyncgens)))
        loop._ready.clear()
        loop._scheduled.clear()
        for call in list(self._when_ended.values()):
            call(power)
        self._when_ended.clear()

    def _fail(self) -> NoReturn:
        self.world.sometimes("a dead process was stopped at a call")
        raise SystemExit(f"{self.name} has ended")
