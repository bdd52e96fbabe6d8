"""A few threads, for calls that block (fdatasync, recovery, compaction, cold reads).

A job runs in a thread and shares nothing with the loop while it runs; `done(result, error)` is
called on the loop. A plain queue is a third of the price of an executor's futures, and a sync is
on the path of every acknowledged message.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol

Job = Callable[[], Any]
Done = Callable[[Any, BaseException | None], None]


class Workers(Protocol):
    def run(self, job: Job, done: Done) -> None: ...

    async def call(self, job: Job) -> Any:
        """The same for coroutines: await the job's result."""

    def close(self) -> None:
        """Let them end after the jobs that are queued; waits for them."""


class Threads:
    """A fixed number of threads that take jobs in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: int, name: str) -> None:
        self._loop = loop
        self._jobs: SimpleQueue[tuple[Job, Done] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{n}", daemon=True) for n in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, job: Job, done: Done) -> None:
        self._jobs.put((job, done))

    async def call(self, job: Job) -> Any:
        future: asyncio.Future[Any] = self._loop.create_future()

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
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, done = item
            result: Any = None
            error: BaseException | None = None
            try:
                result = job()
            except BaseException as raised:
                error = raised
            try:
                self._loop.call_soon_threadsafe(done, result, error)
            except RuntimeError:  # the loop has closed: nobody waits any more
                return
