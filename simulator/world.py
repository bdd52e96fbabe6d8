"""Virtual time: one thread of control that takes one event after the other, as one seed says.

Everything that happens is an event (`at`, `after`): a turn of a process's loop, bytes that arrive, a disk
that answers, a fault. Between events no time passes, so a minute of calm costs nothing. Events of the same
moment happen in the order in which they were scheduled.

Chance is split by name: `random("network")` and `random("node-1 disk")` are generators of their own, derived
from the seed and the name. A new draw in one place changes nothing in another.

The collector is off while a world exists: it would run `__del__` and `finally` blocks of dead processes
wherever it likes. What has died lies in the graveyard until `close`.
"""

from __future__ import annotations

import gc
import heapq
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from simulator.baton import Baton
from simulator.grave import Grave
from simulator.trace import Trace

if TYPE_CHECKING:
    from simulator.process import Process

START_S: Final = 1000.0  # not 0, which a program may take for "never"; machines have been up for a while


class Complaint(NamedTuple):
    """An exception that nobody handled: it reached the exception handler of a process's loop."""

    at: float
    process: str
    message: str
    exception: BaseException | None


class World:
    """Use it as a context manager, or call `close`: until then the garbage collector is off."""

    def __init__(self, seed: int, trace: Path | None = None) -> None:
        self.seed = seed
        self.now = START_S
        self.until = START_S  # where the present `run` ends
        self.trace = Trace(trace)
        self.seen: Counter[str] = Counter()  # by `sometimes`
        self.moments: dict[str, list[float]] = {}  # … and when
        self.complaints: list[Complaint] = []
        self.processes: list[Process] = []  # those alive
        self.graveyard: list[Grave] = []
        self.turns = 0  # turns of all loops
        self.baton = Baton()
        self._generators: dict[str, Random] = {}
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = count()
        self._collects = gc.isenabled()
        gc.disable()

    # --- chance and time

    def random(self, name: str) -> Random:
        """The generator of this name; always the same object."""
        found = self._generators.get(name)
        if found is None:
            found = self._generators[name] = Random(f"{self.seed} {name}")
        return found

    def at(self, when: float, call: Callable[..., None], *args: Any) -> None:
        """Call it at this moment, or now if that has passed."""
        heapq.heappush(self._events, (when, next(self._numbers), call, args))

    def after(self, delay: float, call: Callable[..., None], *args: Any) -> None:
        heapq.heappush(self._events, (self.now + delay, next(self._numbers), call, args))

    def run(self, until: float) -> None:
        """Let everything happen that is due before this moment; then it is this moment."""
        self.until = until
        events = self._events
        hooks = sys.get_asyncgen_hooks()  # each loop sets its own
        try:
            while events and events[0][0] < until:
                when, _, call, args = heapq.heappop(events)
                if when > self.now:
                    self.now = when
                call(*args)
        finally:
            sys.set_asyncgen_hooks(*hooks)
        self.now = max(self.now, until)

    def run_for(self, seconds: float) -> None:
        self.run(self.now + seconds)

    def run_until(self, condition: Callable[[], bool], within: float, step: float = 0.01) -> None:
        """Let time pass until the condition holds; TimeoutError when it does not within so many seconds."""
        deadline = self.now + within
        while not condition():
            if self.now >= deadline:
                raise TimeoutError(f"seed {self.seed}: not within {within:g} virtual seconds")
            self.run(min(self.now + step, deadline))

    def skip_to(self, when: float) -> bool:
        """Make it this moment, if nothing else would happen until then and the run lasts as long.

        A shorter way for whoever would otherwise schedule an event and wait for it; the order is the same.
        """
        events = self._events
        if when >= self.until or (events and events[0][0] <= when):
            return False
        if when > self.now:
            self.now = when
        return True

    # --- what happened

    def note(self, who: str, what: str, detail: object = "") -> None:
        """A line of the trace. The detail must be the same in each run of the seed."""
        self.trace.note(self.now, who, what, detail)

    def sometimes(self, event: str) -> None:
        """Count an event that must be reached over a run of seeds."""
        self.seen[event] += 1
        self.moments.setdefault(event, []).append(self.now)

    def complain(self, process: str, message: str, exception: BaseException | None) -> None:
        self.complaints.append(Complaint(self.now, process, message, exception))
        self.note(process, "complaint", type(exception).__name__)

    # --- its end

    def close(self) -> None:
        """End every process and bury the dead; the collector is as it was before."""
        for process in list(self.processes):
            process.end()
        self._events.clear()
        self.baton.close()
        with _unheard():
            closed = [grave.bury() for grave in self.graveyard]
            self.graveyard.clear()
            if not all(closed):
                gc.collect()  # or the rest would be closed in the midst of something else
        self.trace.close()
        if self._collects:
            gc.enable()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def _unheard() -> Iterator[None]:
    """Nothing is reported that is raised while objects are destroyed: they are of the dead."""
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        yield
    finally:
        sys.unraisablehook = before
