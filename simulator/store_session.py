"""The way from one process to the coordination store and back: the Store port, over a network that fails.

A request takes time to arrive, takes effect there, and its answer takes time to come back. Whatever is lost
on the way, the process sees the same: no answer, and after its patience StoreUnavailable. So a commit that
raises may have happened, may not have, and may still happen when a late request arrives.

Watches of a session share one stream. It brings revisions in order, late by as much as `watch_lag_s`, and
not while its process is paused or cut off. Answers and events for a process that is dead are dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from postroad.cluster.store import Compare, Events, Operation, Snapshot, StoreEntry
from postroad.errors import CoordinationError, StoreUnavailable

if TYPE_CHECKING:
    from simulator.process import Process
    from simulator.store import StoreServer

RESEND_S: Final = 0.1  # what the stream could not deliver is tried again this often
SHORTEST_S: Final = 0.0001  # no way is shorter

T = TypeVar("T")


class StoreSession:
    """Make it with `StoreServer.session`."""

    def __init__(self, server: StoreServer, process: Process) -> None:
        self.host = process.host
        self._server = server
        self._world = server.world
        self._process = process
        self._closed = False
        self._under_way: dict[asyncio.Future[Any], None] = {}
        self._announced = self._visible = server.revision  # the newest there is, and the newest that arrived
        self._delivering = False
        self._changed = asyncio.Event()  # set and replaced when more is visible
        self._streams = 0  # counts them: a watch of an earlier one is broken

    # --- the port

    async def get(self, key: str) -> StoreEntry | None:
        return await self._ask(partial(self._server.get, key))

    async def list(self, prefix: str) -> Snapshot:
        return await self._ask(partial(self._server.list, prefix))

    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> int | None:
        keys = [operation.key for operation in operations]
        assert len(set(keys)) == len(keys), f"a key stands in a commit once: {keys}"
        commit = partial(self._server.commit, tuple(compares), tuple(operations))
        return await self._ask(commit, lost="unknown commit that happened")

    async def watch(self, prefix: str, after: int) -> AsyncIterator[Events]:
        if self._closed:
            return
        await self._ask(partial(self._server.check_kept, after))
        stream, seen = self._streams, after
        while not self._closed:
            if stream != self._streams:
                raise StoreUnavailable("The watch was cut off.")
            changed = self._changed
            while seen < self._visible and not self._closed:
                seen += 1
                events = [event for event in self._server.events(seen) if event.key.startswith(prefix)]
                if events:
                    yield events
            await changed.wait()

    async def grant(self, ttl_ms: int) -> int:
        return await self._ask(partial(self._server.grant, ttl_ms))

    async def keep_alive(self, lease: int) -> None:
        await self._ask(partial(self._server.keep_alive, lease))

    async def revoke(self, lease: int) -> None:
        await self._ask(partial(self._server.revoke, lease))

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._under_way:
            await asyncio.wait(list(self._under_way))
        self._server.forget(self)
        self._wake()

    # --- requests and answers

    async def _ask(self, act: Callable[[], T], lost: str = "store answer lost") -> T:
        """What the server answers; `lost` names the event that the answer is lost."""
        self._process.check()
        if self._closed:
            raise StoreUnavailable("The coordination store is closed.")
        loop = self._process.loop
        answer: asyncio.Future[T] = loop.create_future()
        request = _Request(answer, act, lost)
        timer = loop.call_later(self._server.faults.patience_s, request.time_out)
        self._under_way[answer] = None
        try:
            self._send(request)
            return await answer
        finally:
            timer.cancel()
            del self._under_way[answer]

    def _send(self, request: _Request[Any]) -> None:
        faults, delay_s = self._server.faults, self._delay()
        if self._happens(faults.request_lost):
            self._world.sometimes("store request lost")
            return
        if self._happens(faults.request_late):
            self._world.sometimes("store request late")
            delay_s += faults.patience_s * self._server.chances.uniform(1, 3)
        self._world.after(delay_s, self._arrive, request)

    def _arrive(self, request: _Request[Any]) -> None:
        if self._server.receives_from(self.host):
            request.take_effect()
            self._world.after(self._delay(), self._return, request)
            return
        self._world.sometimes("store request lost")
        if self._server.down and self._happens(self._server.faults.refused):
            request.error = StoreUnavailable("The coordination store refuses connections.")
            self._give(request)

    def _return(self, request: _Request[Any]) -> None:
        if self._server.reaches(self.host) and not self._happens(self._server.faults.answer_lost):
            self._give(request)
        else:
            self._world.sometimes(request.lost)

    def _give(self, request: _Request[Any]) -> None:
        if not self._process.alive:
            self._world.sometimes("store answer for a dead process")
        self._process.loop.call_soon_threadsafe(request.complete)  # which drops what comes for the dead

    def _delay(self) -> float:
        return self._server.latencies.uniform(SHORTEST_S, self._server.faults.latency_s)

    def _happens(self, chance: float) -> bool:
        return chance > 0 and self._server.chances.random() < chance

    # --- the stream of events

    def announce(self, revision: int) -> None:
        """There is a new revision, which the stream will bring."""
        self._announced = revision
        if not self._delivering:
            self._delivering = True
            self._world.after(self._delay() + self._lag(), self._deliver, revision)

    def break_watches(self) -> None:
        """Watches that are open end with StoreUnavailable."""
        self._streams += 1
        self._process.loop.call_soon_threadsafe(self._wake)

    def _deliver(self, revision: int) -> None:
        if not self._process.alive or self._closed:
            return
        if self._process.paused_until > self._world.now:  # it is the process itself that reads the stream
            self._world.at(self._process.paused_until + self._lag(), self._deliver, revision)
            return
        if not self._server.reaches(self.host):
            self._world.after(RESEND_S, self._deliver, revision)
            return
        self._visible = revision
        self._process.loop.call_soon_threadsafe(self._wake)
        self._delivering = revision < self._announced
        if self._delivering:
            self._world.after(self._delay() + self._lag(), self._deliver, self._announced)

    def _lag(self) -> float:
        lag_s = self._server.faults.watch_lag_s
        return self._server.lags.uniform(0, lag_s) if lag_s else 0.0

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class _Request(Generic[T]):
    """A request on its way to the server, and what came of it on its way back."""

    def __init__(self, answer: asyncio.Future[T], act: Callable[[], T], lost: str) -> None:
        self.lost = lost
        self.error: CoordinationError | None = None
        self._answer = answer
        self._act = act
        self._result: T

    def take_effect(self) -> None:
        try:
            self._result = self._act()
        except CoordinationError as error:
            self.error = error

    def complete(self) -> None:
        if self._answer.done():  # its caller has given up
            return
        if self.error is not None:
            self._answer.set_exception(self.error)
        else:
            self._answer.set_result(self._result)

    def time_out(self) -> None:
        self.error = StoreUnavailable("The coordination store did not answer in time.")
        self.complete()
