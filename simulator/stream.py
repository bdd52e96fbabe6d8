"""TCP as two processes see it: the ends of connections, and the addresses that accept them.

An end keeps what has arrived for it and what it has sent and has not arrived; `network` carries the bytes
from one to the other. The methods are those of `postroad.system.stream`; a dead process that calls them gets
SystemExit.
"""

from __future__ import annotations

import errno
import os
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Sequence
from selectors import EVENT_READ, EVENT_WRITE
from typing import TYPE_CHECKING, Final

from postroad.system.stream import Accepted, Buffer, SentFile
from simulator.process import Process

if TYPE_CHECKING:
    from simulator.network import Network

FILE_BYTES_MAX: Final = 64 * 1024  # of one `send_file`


def failure(number: int) -> OSError:
    return OSError(number, os.strerror(number))


class SimulatedStream:
    """One end of a connection."""

    peer: SimulatedStream

    def __init__(self, network: Network, host: str, port: int, window: int) -> None:
        self.network = network
        self.host = host
        self.port = port
        self.number = network.next_number()
        self.process: Process | None = None  # None: nobody has accepted it yet
        self.arrived = bytearray()
        self.ended = False  # the peer sends no more
        self.broken = 0  # an errno
        self.closed = False
        self.gone = False  # its process or machine forgot it: whoever sends to it is told so
        self.sent: deque[bytes] = deque()  # what has not arrived; b"" is the end
        self.held = 0  # pieces of that which a cut keeps back
        self.arrives_at = 0.0  # the last of them, if nothing keeps it back
        self._window = window
        self._unread = 0  # bytes that we sent and the peer has not read
        self._outlive: Callable[[], object] | None = None  # the end of the process need not be told any more

    # --- the port

    def receive_into(self, space: memoryview, /) -> int:
        self._check()
        arrived = self.arrived
        if not arrived:
            if self.ended:
                return 0
            raise BlockingIOError(errno.EAGAIN, "nothing has arrived")
        size = self.network.shorten(min(len(space), len(arrived)), "a short receive")
        space[:size] = arrived[:size]
        del arrived[:size]
        self.peer.was_read(size)
        return size

    def send(self, data: Buffer, flags: int = 0, /) -> int:
        size = self.network.shorten(min(self._room(), len(data)), "a short send")
        if size:
            self._unread += size
            self.network.carry(self, bytes(data[:size]))
        return size

    def send_pieces(self, pieces: Sequence[Buffer], /) -> int:
        return self.send(b"".join(pieces))

    def send_file(self, file: SentFile, position: int, length: int) -> int:
        data = file.read(position, min(length, self._room(), FILE_BYTES_MAX))
        self.network.world.sometimes("records were sent from a file")
        return self.send(data)

    def start_reading(self, loop: AbstractEventLoop, call: Callable[[], object]) -> None:
        loop.add_reader(self.number, call)

    def stop_reading(self, loop: AbstractEventLoop) -> None:
        loop.remove_reader(self.number)

    def expect(self, count: int) -> None:
        """Nothing, as at a socket."""

    def call_from(self, count: int) -> None:
        """Nothing: a kernel may call for fewer bytes, too."""

    def fileno(self) -> int:
        return -1 if self.closed else self.number

    def close(self) -> None:
        """What was sent still arrives, unless something of the peer's is left unread: then it is a reset."""
        process = self.process
        if self.closed or process is None or not process.alive:
            return
        process.loop.selector.detach(self.number)
        if self._outlive is not None:
            self._outlive()
        self.forget()

    # --- what the network calls

    def adopt(self, process: Process) -> None:
        """The process has it from here on."""
        self.process = process
        process.loop.selector.attach(self.number, self)
        self._outlive = process.when_ended(self._process_ended)

    def ready(self) -> int:
        events = 0
        if self.arrived or self.ended or self.broken:
            events |= EVENT_READ
        if self.broken or self._unread < self._window:
            events |= EVENT_WRITE
        return events

    def changed(self) -> None:
        process = self.process
        if process is not None and process.alive and process.loop.selector.changed(self.number):
            process.loop.schedule()

    def was_read(self, size: int) -> None:
        was_full = self._unread >= self._window
        self._unread -= size
        if was_full:
            self.network.world.after(self.network.delay(), self.changed)

    def forget(self) -> None:
        """Let the kernel end it in good order."""
        self.closed = self.gone = True
        if self.arrived:
            self.network.reset(self)
        elif not self.broken:
            self.network.carry(self, b"")

    # --- helpers

    def _process_ended(self, power: bool) -> None:
        if power:
            self.closed = self.gone = True
            self.broken = errno.ECONNRESET
        else:
            self.forget()

    def _check(self) -> None:
        if self.process is not None:
            self.process.check()
        if self.closed:
            raise failure(errno.EBADF)
        if self.broken:
            raise failure(self.broken)

    def _room(self) -> int:
        """How many bytes can be taken; BlockingIOError if none."""
        self._check()
        room = self._window - self._unread
        if room <= 0:
            self.network.world.sometimes("a sender had to wait")
            raise BlockingIOError(errno.EAGAIN, "the window is full")
        return room


class SimulatedListening:
    """An address of a host that peers connect to."""

    def __init__(self, network: Network, process: Process, port: int, backlog: int) -> None:
        self.port = port
        self.process = process
        self._network = network
        self._number = network.next_number()
        self._backlog = backlog
        self._waiting: deque[SimulatedStream] = deque()
        self._closed = False
        process.loop.selector.attach(self._number, self)
        self._outlive = process.when_ended(self._let_go)

    # --- the port

    def accept(self) -> Accepted:
        self.process.check()
        if self._closed:
            raise failure(errno.EBADF)
        if not self._waiting:
            raise BlockingIOError(errno.EAGAIN, "nobody waits")
        stream = self._waiting.popleft()
        stream.adopt(self.process)
        return Accepted(stream, stream.peer.host, stream.peer.port)

    def fileno(self) -> int:
        return -1 if self._closed else self._number

    def close(self) -> None:
        if not self._closed and self.process.alive:
            self.process.loop.selector.detach(self._number)
            self._outlive()
            self._let_go(power=False)

    # --- what the network calls

    def ready(self) -> int:
        return EVENT_READ if self._waiting else 0

    @property
    def full(self) -> bool:
        return len(self._waiting) >= self._backlog

    def offer(self, stream: SimulatedStream) -> None:
        """A connection that waits to be accepted."""
        self._waiting.append(stream)
        if self.process.loop.selector.changed(self._number):
            self.process.loop.schedule()

    def _let_go(self, power: bool) -> None:
        self._closed = True
        self._network.stop_listening(self)
        for stream in self._waiting:
            stream.closed = stream.gone = True
            if not power:
                self._network.reset(stream)
        self._waiting.clear()
