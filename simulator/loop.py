"""The event loop of one simulated process: asyncio's own, with another clock and another selector.

`call_soon` stays first in, first out, as asyncio promises; what the operating system leaves open is left to
chance: the order of the sockets that are ready, how long a turn takes, which process comes first.

A turn happens at one moment of the world. What it costs (`spend`) is added up, and the next turn begins when
that much time has passed; `time` runs ahead of the world's by what the present turn has cost until then.
"""

from __future__ import annotations

import asyncio
import heapq
import selectors
import sys
import threading
from asyncio.selector_events import BaseSelectorEventLoop
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVarTuple

from simulator.selector import Selector

if TYPE_CHECKING:
    from simulator.process import Process

Ts = TypeVarTuple("Ts")

NEVER: Final = float("inf")
CANCELLED_MAX: Final = 100  # timers that wait to be dropped
TURN_S: Final = (5e-6, 60e-6)  # every turn costs some time, or a loop of sleep(0) would never end


class Loop(BaseSelectorEventLoop):
    # asyncio's own, which its type stubs leave out
    _ready: deque[asyncio.Handle]
    _scheduled: list[Any]
    _timer_cancelled_count: int
    _asyncgens: Any

    def __init__(self, process: Process) -> None:
        self.process = process
        self.world = process.world
        self.selector = Selector(self.world.random(f"{process.name} selector"))
        self.busy_until = 0.0
        self.paused_until = 0.0
        self._random = self.world.random(f"{process.name} turns")
        self._wakes_at = NEVER
        super().__init__(self.selector)
        self._clock_resolution = 1e-9
        self._thread_id = threading.get_ident()  # `is_running` is true: it runs whenever it is its turn
        self.set_debug(False)
        self.set_exception_handler(self._complain)

    def time(self) -> float:
        now, busy_until = self.world.now, self.busy_until
        return busy_until if busy_until > now else now

    def spend(self, seconds: float) -> None:
        """The loop's own thread is held up."""
        self.busy_until = self.time() + seconds

    def pause(self, seconds: float) -> None:
        """No turn begins for so long."""
        self.paused_until = max(self.paused_until, self.world.now + seconds)

    def resume(self) -> None:
        """End a pause."""
        self.paused_until = 0.0
        self.schedule()

    def schedule(self) -> None:
        """Something came from outside, or a turn has ended: the next turn is planned anew."""
        when = self._next_turn()
        if when < self._wakes_at:
            self._wakes_at = when
            self.world.at(when, self._wake, when)

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """A call from outside; what comes after the process has ended is dropped."""
        if not self.process.alive:
            handle = asyncio.Handle(callback, args, self, context)
            handle.cancel()
            return handle
        handle = self.call_soon(callback, *args, context=context)
        if self._wakes_at > self.world.now:
            self.schedule()
        return handle

    # --- turns

    def _next_turn(self) -> float:
        earliest = self.world.now
        if self.busy_until > earliest:
            earliest = self.busy_until
        if self.paused_until > earliest:
            earliest = self.paused_until
        if self._ready or self.selector.hot:
            return earliest
        scheduled = self._scheduled
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
            self._timer_cancelled_count -= 1
        if not scheduled:
            return NEVER
        when: float = scheduled[0]._when
        return when if when > earliest else earliest

    def _wake(self, when: float) -> None:
        if when != self._wakes_at or not self.process.alive:
            return  # an earlier one was planned since
        self._wakes_at = NEVER
        when = self._next_turn()
        if when > self.world.now:
            self.schedule()
            return
        when = self._turns()
        if when < self._wakes_at:
            self._wakes_at = when
            self.world.at(when, self._wake, when)

    def _turns(self) -> float:
        """As many turns as nothing else comes between; answers when the next one is due."""
        skip_to, process = self.world.skip_to, self.process
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(self._asyncgen_firstiter_hook, self._asyncgen_finalizer_hook)
        try:
            while True:
                self._turn()
                if not process.alive:
                    return NEVER
                when = self._next_turn()
                if not skip_to(when):
                    return when
        finally:
            asyncio._set_running_loop(None)

    def _turn(self) -> None:
        world = self.world
        world.turns += 1
        self.busy_until = world.now
        try:
            self._run_once()
        except SystemExit:  # the process ended in the midst of it
            if self.process.alive:
                raise
        except IndexError:  # it ended, and somebody caught SystemExit: nothing is left to be called
            if self.process.alive:
                raise
        low, high = TURN_S
        self.busy_until += low + (high - low) * self._random.random()

    def _run_once(self) -> None:
        """What asyncio's loop does in a turn, without what only real time and real sockets need."""
        ready, scheduled = self._ready, self._scheduled
        if self.selector.hot:
            self._process_events(self.selector.select())
        if self._timer_cancelled_count > CANCELLED_MAX:
            self._drop_cancelled()
        due = self.time() + self._clock_resolution
        while scheduled and scheduled[0]._when < due:
            timer = heapq.heappop(scheduled)
            timer._scheduled = False
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _drop_cancelled(self) -> None:
        """Most timers are time-outs that are cancelled long before they are due."""
        kept = []
        for timer in self._scheduled:
            if timer._cancelled:
                timer._scheduled = False
            else:
                kept.append(timer)
        heapq.heapify(kept)
        self._scheduled[:] = kept
        self._timer_cancelled_count = 0

    def _complain(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if self.process.alive:
            self.world.complain(self.process.name, context["message"], context.get("exception"))

    if TYPE_CHECKING:

        def _process_events(self, events: list[tuple[selectors.SelectorKey, int]]) -> None: ...

        def _asyncgen_firstiter_hook(self, generator: AsyncGenerator[Any, Any]) -> None: ...

        def _asyncgen_finalizer_hook(self, generator: AsyncGenerator[Any, Any]) -> None: ...

    # --- what an operating system would be needed for

    def _make_self_pipe(self) -> None:
        """None is needed: nobody calls from another thread while a turn runs."""

    def _close_self_pipe(self) -> None:
        """There is none."""

    def _write_to_self(self) -> None:
        """There is none."""

    def run_in_executor(self, *_: object) -> NoReturn:
        raise RuntimeError("A thread that the runtime knows nothing of: use runtime.workers.")

    async def getaddrinfo(self, *_: object, **__: object) -> NoReturn:
        raise RuntimeError("A name that the runtime knows nothing of: use runtime.connect.")
