"""What a client runs on: everything outside of it, handed to it in one piece.

A client takes wall time, chance and connections from its runtime and from nowhere else, and waits by the
event loop that it runs on. So the simulator can run the very same client on virtual time, over a network
that fails as a seed says. A node's runtime (`broker.runtime`) will do as well.
"""

from __future__ import annotations

from random import Random, SystemRandom
from typing import Final, Protocol

from postroad.system import sockets
from postroad.system.clock import Clock, SystemClock
from postroad.system.stream import Stream


class Runtime(Protocol):
    @property
    def clock(self) -> Clock: ...

    @property
    def random(self) -> Random:
        """For ids as well as for jitter: no two clients may draw the same."""

    async def connect(self, host: str, port: int) -> Stream:
        """A stream to that address, or an OSError."""


class _OperatingSystem:
    def __init__(self) -> None:
        self.clock = SystemClock()
        self.random = SystemRandom()
        self.connect = sockets.connect


OPERATING_SYSTEM: Final[Runtime] = _OperatingSystem()
