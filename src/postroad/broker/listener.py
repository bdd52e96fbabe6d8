"""The door: accepts connections within the limits and shows out the ones that misuse them.

Limits: connections in total (as many as the logs leave descriptors for) and for each address, memory in
receive buffers, time for an unfinished frame, idle time, time without the peer taking a byte. One sweep a
second looks at all of them; a deadline for each connection would cost a timer for each request.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from postroad.broker.connection import Connection
from postroad.broker.descriptors import Descriptors
from postroad.broker.turn import Turn
from postroad.config.listeners import Listener as ListenerSettings
from postroad.config.sections import Limits
from postroad.errors import ConfigurationError
from postroad.security.principals import ANONYMOUS, Principal
from postroad.system.stream import Accepted, Listening, Stream

if TYPE_CHECKING:  # nodes without TLS don't load it
    from postroad.broker.certificates import Certificates
    from postroad.broker.handshakes import Handshakes
    from postroad.system.tls_stream import TlsStream

BACKLOG: Final = 1024
ACCEPTS_AT_ONCE: Final = 64  # then others get their turn
ACCEPT_PAUSE_S: Final = 1.0
SWEEP_S: Final = 1.0
LINES_A_SECOND: Final = 20  # about connections that were closed; then they are only counted
SHRINK_AFTER_S: Final = 10.0  # a receive buffer that grew is given back after this pause

log = logging.getLogger(__name__)


class BoundListener(NamedTuple):
    settings: ListenerSettings
    listening: Listening


Handle = Callable[[Connection, list[memoryview], int], int]
Listen = Callable[[str, int, int], Listening]


class Listener:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        turn: Turn,
        limits: Limits,
        descriptors: Descriptors,
        handle: Handle,
        listen: Listen,
        certificates: Certificates | None = None,
        handshakes: Handshakes | None = None,
    ) -> None:
        """The last two are there if a listener speaks TLS."""
        self.handle = handle
        self.connections: dict[Connection, None] = {}
        self.latest: Connection | None = None
        self._loop = loop
        self._turn = turn
        self._limits = limits
        self._descriptors = descriptors
        self._per_address: Counter[str] = Counter()
        self._buffered_bytes = 0
        self._said = 0  # lines about connections, since the last sweep
        self._listen = listen
        self._certificates = certificates
        self._handshakes = handshakes
        self._bound: list[BoundListener] = []
        self.admitted: Callable[[Connection], None] | None = None  # is told of each before it is read
        self.accepted = 0  # connections so far
        self._sweeper: asyncio.TimerHandle | None = None

    def bind(self, settings: ListenerSettings) -> int:
        """Take the address; answers the port (one that was free, where 0 was asked for)."""
        host, port = settings.host, settings.port
        try:
            listening = self._listen(host, port, BACKLOG)
        except OSError as error:
            raise ConfigurationError(
                f"can't listen on {host}:{port}: {error.strerror or error}. "
                "Is another node running? Choose another port with --kafka HOST:PORT."
            ) from None
        self._bound.append(BoundListener(settings, listening))
        return listening.port

    def start_accepting(self) -> None:
        """Accept connections from here on."""
        wanted = self._limits.connections_max
        allowed = self._descriptors.for_connections(wanted)
        if allowed < wanted:
            log.warning("at most %d connections: %s", allowed, self._descriptors.explain(wanted))
        for bound in self._bound:
            self._loop.add_reader(bound.listening.fileno(), self._accept, bound)
        self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)

    def stop_accepting(self) -> None:
        """No new connections; those that are here stay."""
        for bound in self._bound:
            self._loop.remove_reader(bound.listening.fileno())
            bound.listening.close()
        self._bound.clear()

    def stop_reading(self) -> None:
        """The last requests are those that were received."""
        for connection in self.connections:
            connection.stop_reading()

    def close(self) -> None:
        self.stop_accepting()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in list(self.connections):
            connection.close("")

    # --- what a connection asks of its owner

    def may_buffer(self, more_bytes: int) -> bool:
        self._buffered_bytes += more_bytes
        return self._buffered_bytes <= self._limits.receive_bytes_max

    def forget(self, connection: Connection, reason: str) -> None:
        if reason:
            self._say("connection from %s closed: %s", connection.peer, reason)
        if connection.login is not None:
            connection.login.close()
        if connection in self.connections:
            del self.connections[connection]
            self.latest = None
            self._buffered_bytes = max(0, self._buffered_bytes - connection.frames.capacity)
            self._leave(connection.peer.rpartition(":")[0])

    # --- helpers

    def _accept(self, bound: BoundListener) -> None:
        listening = bound.listening
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                accepted = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no file descriptors left: the connection waits in the backlog
                log.error(
                    "can't accept a connection: %s; trying again in %g s", error.strerror, ACCEPT_PAUSE_S
                )
                self._loop.remove_reader(listening.fileno())  # it stays readable: the loop would spin
                self._loop.call_later(ACCEPT_PAUSE_S, self._accept_again, bound)
                return
            self._admit(accepted, bound.settings)

    def _accept_again(self, bound: BoundListener) -> None:
        if bound in self._bound:
            self._loop.add_reader(bound.listening.fileno(), self._accept, bound)

    def _admit(self, accepted: Accepted, settings: ListenerSettings) -> None:
        stream, host, port = accepted
        limits = self._limits
        count = len(self.connections) + (self._handshakes.count if self._handshakes is not None else 0)
        if count >= limits.connections_max:
            refusal = f"limits.connections_max is {limits.connections_max}"
        elif count >= self._descriptors.for_connections(limits.connections_max):
            refusal = self._descriptors.explain(limits.connections_max)
        elif self._per_address[host] >= limits.connections_per_address_max:
            refusal = f"limits.connections_per_address_max is {limits.connections_per_address_max}"
        else:
            self._per_address[host] += 1
            if settings.is_tls:
                self._shake_hands(accepted, settings)
            else:
                self._connect(stream, f"{host}:{port}", settings.name, ANONYMOUS, is_encrypted=False)
            return
        self._say("connection from %s refused: %s", f"{host}:{port}", refusal)
        stream.close()

    def _connect(
        self, stream: Stream, peer: str, listener: str, principal: Principal, *, is_encrypted: bool
    ) -> None:
        self.accepted += 1
        connection = Connection(
            stream,
            peer,
            self,
            self._loop,
            self._turn,
            self._limits.request_bytes_max,
            self._limits.write_buffer_bytes_max,
            self.accepted,
            listener,
            principal,
        )
        connection.encrypted = is_encrypted
        self.connections[connection] = None
        if self.admitted is not None:
            self.admitted(connection)

    def _shake_hands(self, accepted: Accepted, settings: ListenerSettings) -> None:
        certificates, handshakes = self._certificates, self._handshakes
        assert certificates is not None, "a listener with TLS has certificates"
        assert handshakes is not None, "a listener with TLS has handshakes"

        def finished(accepted: Accepted, stream: TlsStream) -> None:
            principal = certificates.principal(settings, stream)
            if isinstance(principal, str) or not self._bound:  # the node stops
                stream.close()
                failed(accepted, str(principal))
            else:
                peer = f"{accepted.host}:{accepted.port}"
                self._connect(stream, peer, settings.name, principal, is_encrypted=True)

        def failed(accepted: Accepted, reason: str) -> None:
            self._leave(accepted.host)
            self._say("connection from %s closed: %s", f"{accepted.host}:{accepted.port}", reason)

        handshakes.begin(accepted, certificates.of(settings).context, finished, failed)

    def _leave(self, host: str) -> None:
        self._per_address[host] -= 1
        if not self._per_address[host]:
            del self._per_address[host]

    def _say(self, text: str, peer: str, reason: str) -> None:
        """A line in the log; a flood of connections gets one line a second for all that follow."""
        self._said += 1
        if self._said <= LINES_A_SECOND:
            log.info(text, peer, reason)

    def _sweep(self) -> None:
        self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)
        if self._said > LINES_A_SECOND:
            log.info("%d more connections were closed or refused", self._said - LINES_A_SECOND)
        self._said = 0
        now = self._loop.time()
        for connection in list(self.connections):
            reason = self._overdue(connection, now)
            if reason:
                connection.close(reason)
            elif now - connection.last_active > SHRINK_AFTER_S:
                connection.frames.shrink()
        self._buffered_bytes = sum(connection.frames.capacity for connection in self.connections)

    def _overdue(self, connection: Connection, now: float) -> str:
        limits = self._limits
        if connection.login is not None and connection.login.is_overdue:
            return f"it has not logged in within {connection.login.login_ms} ms"
        began = connection.frame_began_at
        if began is not None and (now - began) * 1000 > limits.frame_ms:
            return f"a request was not finished within {limits.frame_ms} ms"
        idle_ms = (now - connection.last_active) * 1000
        if connection.idle and idle_ms > limits.idle_ms:
            return f"idle for {limits.idle_ms} ms"
        if connection.stuck and idle_ms > limits.idle_ms:
            return f"read nothing for {limits.idle_ms} ms"
        return ""
