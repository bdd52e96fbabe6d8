"""`App`: workers and what they publish."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

from postroad.errors import BrokerNotAvailable, NetworkException, PostroadError, TryAgain
from postroad.workers.backend import Backend
from postroad.workers.client import Client
from postroad.workers.handler import Handler
from postroad.workers.runner import Runner
from postroad.workers.spans import Span
from postroad.workers.worker import CONCURRENCY, Order, Worker, declare

AWAY_S: Final = (0.1, 0.5, 1.0, 2.0, 5.0)  # a cluster that can't be reached is waited for

F = TypeVar("F", bound=Callable[..., Any])

log = logging.getLogger("postroad.worker")


class App(Client):
    """Workers, and a client for all that they and others publish.

        app = postroad.App("127.0.0.1:9092")

        @app.worker("resize", topic="jobs", attempts=5, backoff="1s")
        async def resize(job: Job) -> None: ...

        await app.publish("jobs", Job("cat.jpg"))

    The arguments are those of `postroad.Client`. `app.run()`, or `postroad worker module:app`, runs the
    workers until SIGTERM or Ctrl-C; `async with app:` is enough for whoever only publishes.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.workers: list[Worker] = []
        self._runners: list[Runner] = []
        self._stopping: asyncio.Event | None = None

    def worker(
        self,
        subscription: str,
        *,
        topic: str | Sequence[str] | None = None,
        lock: Span | None = None,
        attempts: int | Literal["none"] | None = None,
        backoff: Span | None = None,
        backoff_max: Span | None = None,
        concurrency: int = CONCURRENCY,
        order: Order | None = None,
        timeout: Span | None = None,
        start: Literal["earliest", "latest"] = "earliest",
        dead_letters: str | None = None,
        transaction: bool = False,
        config: Mapping[str, str] | None = None,
    ) -> Callable[[F], F]:
        """Make a function the worker of a subscription, which is made if it is not there.

        The function is called with the job, of the type that its first parameter is annotated with, and with
        the `postroad.Message` if a parameter is annotated so. It may be a plain function: then it runs in a
        thread. When it returns the message is accepted. When it raises, the message comes again after
        `backoff` (1 s: 1 s, 2 s, 4 s …, up to `backoff_max`), and after `attempts` deliveries it is a dead
        letter, in the topic `dead_letters` (NAME.dead; "none" drops it), with the error in it. See `Retry`
        and `Reject`.

        `topic` is one topic or several; without it the one named as the subscription. A message is locked
        for `lock` (30 s), which is renewed while the function runs: a process that dies gives its messages
        back at once, one that hangs after that time. `timeout` cancels a function that takes longer.
        `order="key"`: messages of one key one after the other. `concurrency` is how many run at once in this
        process. `start`: a subscription that is made has all messages of its topics, or with "latest" those
        from then on. `transaction=True`: what `message.publish` publishes and that the message is accepted
        takes effect together or not at all. `config` sets any other config of the subscription.

        What is not given here is left as the subscription has it.
        """

        def decorate(function: F) -> F:
            made = declare(
                function,
                subscription,
                topic=topic,
                lock=lock,
                attempts=attempts,
                backoff=backoff,
                backoff_max=backoff_max,
                concurrency=concurrency,
                order=order,
                timeout=timeout,
                start=start,
                dead_letters=dead_letters,
                transaction=transaction,
                config=config,
            )
            if any(each.subscription == subscription for each in self.workers):
                raise ValueError(f"subscription {subscription!r} has a worker already")
            self.handler_of(made).close()  # what is wrong with the function is known at once
            self.workers.append(made)
            return function

        return decorate

    def handler_of(self, worker: Worker) -> Handler:
        """What runs the worker's function, with the app's middleware. TypeError if nobody can call it."""
        return Handler(worker, self._middleware, self._publish)

    async def work(self) -> None:
        """Run the workers until `stop` is called. Opens the app if it is not open; a cluster that is away is
        waited for. PostroadError if a worker can't go on, such as one that may not read its topic."""
        if not self.workers:
            raise ValueError("the app has no worker: decorate a function with @app.worker")
        self._stopping = stopping = asyncio.Event()
        backend = await self._reach(stopping)
        if backend is None:
            return
        running = [
            asyncio.create_task(self._run(backend, worker, stopping), name=f"run {worker.subscription}")
            for worker in self.workers
        ]
        try:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
            self.stop()
            await asyncio.wait(running)
            for task in (*done, *running):
                task.result()
        finally:
            self.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self._stopping = None

    def stop(self) -> None:
        """Take nothing more: `work` returns when the jobs that run have ended."""
        if self._stopping is not None:
            self._stopping.set()
        for runner in self._runners:
            runner.stop()

    def cancel(self) -> None:
        """Cancel the jobs that run; their messages come again. Those in threads go on to their end."""
        self.stop()
        for runner in self._runners:
            runner.cancel()

    def run(self) -> None:
        """Run the workers until SIGTERM or Ctrl-C: then the jobs that run are finished. A second signal
        cancels them, a third ends the process."""
        from postroad.workers.serving import serve

        serve(self)

    # --- running -------------------------------------------------------------------------------

    async def _reach(self, stopping: asyncio.Event) -> Backend | None:
        """The cluster, when it is there; None if it is no longer wanted."""
        failures = 0
        while not stopping.is_set():
            try:
                return await self._opened()
            except (BrokerNotAvailable, NetworkException, TryAgain) as error:
                await self._rest(stopping, failures, error)
                failures += 1
        return None

    async def _run(self, backend: Backend, worker: Worker, stopping: asyncio.Event) -> None:
        """The worker, as a member that joins again when it must."""
        failures = 0
        while not stopping.is_set():
            try:
                source = await backend.join(worker)
            except (BrokerNotAvailable, TryAgain) as error:
                await self._rest(stopping, failures, error)
                failures += 1
                continue
            handler = self.handler_of(worker)
            runner = Runner(worker, source, handler.handle)
            self._runners.append(runner)
            try:
                if stopping.is_set():
                    return
                await runner.run()
                failures = 0
            except TryAgain as error:
                await self._rest(stopping, failures, error)
                failures += 1
            finally:
                self._runners.remove(runner)
                handler.close()
                await source.close()

    async def _rest(self, stopping: asyncio.Event, failures: int, error: PostroadError) -> None:
        pause_s = AWAY_S[min(failures, len(AWAY_S) - 1)]
        log.warning("%s: trying again in %g s", error, pause_s)
        try:
            async with asyncio.timeout(pause_s):
                await stopping.wait()
        except TimeoutError:
            return
