"""A clock that the test puts forward: a minute takes no time, and a test that is held up does no harm."""

from __future__ import annotations

from typing import Any

from tests.broker.harness import Running


class HandClock:
    """Stands in for the loop of a node's listener, and of all connections that it accepts from now on."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._loop = running.node.loop
        self._ahead_s = 0.0
        running.on_loop(lambda: setattr(running.node.listener, "_loop", self))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def time(self) -> float:
        return self._loop.time() + self._ahead_s

    def put_forward(self, by_s: float) -> None:
        """Then the listener looks who is overdue."""
        listener = self._running.node.listener

        def sweep() -> None:
            self._ahead_s += by_s
            assert listener._sweeper is not None
            listener._sweeper.cancel()
            listener._sweep()

        self._running.on_loop(sweep)
