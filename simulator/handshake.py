"""How a connection comes about: the attempts of TCP to reach an address, and their answer."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Final

from simulator.process import Process
from simulator.stream import SimulatedStream, failure

if TYPE_CHECKING:
    from simulator.network import Network

FIRST_RETRY_S: Final = 1.0  # then twice as long each time, as Linux does
ATTEMPTS_MAX: Final = 7


class Handshake:
    def __init__(self, network: Network, process: Process, host: str, port: int) -> None:
        self._network = network
        self._world = network.world
        self._process = process
        self._host = host
        self._port = port
        self._attempts = 0
        self._answer: asyncio.Future[SimulatedStream] = process.loop.create_future()
        self._near: SimulatedStream | None = None

    async def stream(self) -> SimulatedStream:
        """The stream, or an OSError that says why there is none."""
        self._process.check()
        self._world.at(self._process.loop.time() + self._network.delay(), self._request_arrives)
        try:
            return await self._answer
        except asyncio.CancelledError:
            self._abandon()
            raise

    def _request_arrives(self) -> None:
        if not self._process.alive or self._answer.done():
            return
        listening = self._network.listening(self._host, self._port)
        lost = not self._network.reaches(self._process.host, self._host)
        if lost or (listening is not None and listening.full):
            self._try_again()
        elif listening is None:
            self._reply(failure(errno.ECONNREFUSED))
        else:
            window = self._network.window()
            far = SimulatedStream(self._network, self._host, self._port, window)
            near = SimulatedStream(self._network, self._process.host, self._network.next_port(), window)
            far.peer, near.peer = near, far
            self._network.track(near)
            self._near = near
            listening.offer(far)
            self._reply(None)

    def _try_again(self) -> None:
        self._attempts += 1
        wait_s = FIRST_RETRY_S * 2 ** (self._attempts - 1)
        if self._attempts < ATTEMPTS_MAX:
            self._world.after(wait_s, self._request_arrives)
        else:
            self._world.after(wait_s, self._deliver, failure(errno.ETIMEDOUT))

    def _reply(self, error: OSError | None) -> None:
        self._world.after(self._network.delay(), self._reply_arrives, error)

    def _reply_arrives(self, error: OSError | None) -> None:
        if self._process.alive and not self._network.reaches(self._host, self._process.host):
            self._world.after(FIRST_RETRY_S, self._reply_arrives, error)
        else:
            self._deliver(error)

    def _deliver(self, error: OSError | None) -> None:
        if self._process.alive:
            self._process.loop.call_soon_threadsafe(self._finish, error)
        else:
            self._abandon()

    def _finish(self, error: OSError | None) -> None:
        near = self._near
        if self._answer.done():
            return
        if error is not None or near is None:
            self._answer.set_exception(error or failure(errno.ECONNREFUSED))
        else:
            near.adopt(self._process)
            self._answer.set_result(near)

    def _abandon(self) -> None:
        """Nobody waits any more: the far end is told."""
        near = self._near
        if near is not None and not near.closed:
            near.closed = near.gone = True
            self._network.reset(near)
