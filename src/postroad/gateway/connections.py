"""The door: lets connections in within the limits and shows out the ones that misuse them.

What aiohttp does itself: it closes a connection that is idle for `http.idle_ms`, and refuses requests that
two readers could understand differently (two lengths, a length and chunks, folded lines, bare line feeds).
Here: the number of connections, the time that a request may take to arrive, and peers that read nothing of
their answers. One sweep a second looks at all of them, as in the node's listener; also at those that are idle
and have never come to aiohttp (`short_way.py`).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter as Tally
from typing import Any, Final

from aiohttp import StreamReader, web

from postroad.config.sections import Http
from postroad.gateway.masks import MaskCheck
from postroad.gateway.memory import FREE_BYTES, Memory
from postroad.gateway.metrics import GatewayMetrics
from postroad.gateway.refusals import BAD_LINE, LONG_HEAD, TOO_BUSY, Refused
from postroad.gateway.short_way import ShortWay, ShortWayHandler

BACKLOG: Final = 1024
HANDSHAKE_S: Final = 5.0
SWEEP_S: Final = 1.0
LINGER_S: Final = 5.0  # a client that was refused has so long to read that
READ_BYTES: Final = 64 * 1024  # of a body that its handler has not asked for; twice as much is the end
LINES_A_SECOND: Final = 20  # about connections that were refused or cut; then they are only counted

log = logging.getLogger(__name__)

HEAD_END: Final = b"\r\n\r\n"
NOT_MASKED: Final = b"\x88\x02\x03\xea"  # a close frame, with the code 1002 for a wrong protocol


class Connection(web.RequestHandler):
    """aiohttp's, and what the door's sweep and its memory have to know."""

    __slots__ = (
        "_leftover",
        "_line",
        "_masks",
        "_newest",
        "ahead_bytes",
        "answered",
        "arrived_bytes",
        "began_at",
        "body",
        "door",
        "held_bytes",
        "lingering",
        "refused",
        "refused_at",
        "short_way",
        "stuck_at",
        "unread_bytes",
    )

    def __init__(self, door: Door, manager: web.Server, **options: Any) -> None:
        super().__init__(manager, **options)
        self.door = door
        self.began_at: float | None = None  # when the first byte of a request came that is not complete yet
        self.body: StreamReader | None = None  # of the request that is being answered
        self._leftover: StreamReader | None = None  # a body that nobody reads: its request is answered
        self._newest: StreamReader | None = None  # the body of the last request whose head has come
        self._line: bytes | None = (
            b""  # what has come of a request's first line, where its beginning is known
        )
        self._masks: MaskCheck | None = None  # of a WebSocket
        self.answered = 0  # requests, of those that aiohttp has read
        self.arrived_bytes = 0  # of requests that aiohttp reads or answers
        self.held_bytes = 0  # as the memory has counted them
        self.refused: int | None = None  # the status of the door's own answer
        self.refused_at = 0.0
        self.lingering: asyncio.Transport | None = None  # after a refusal: until the client has read it
        self.ahead_bytes = 0  # of a WebSocket's messages that are not in the write buffer yet
        self.unread_bytes = 0  # of answers, when last looked at; so many since `stuck_at`
        self.stuck_at = 0.0
        self.short_way: ShortWay | None = None  # until the first request that is not plain
        if door.handler is not None:
            self.short_way = ShortWay(door.handler, self, self._loop)

    @property
    def remote(self) -> str:
        return str(self.peername[0]) if self.peername else ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self.short_way is not None:
            self.keep_alive(True)  # ends aiohttp's timer, which knows of its own requests only
        self.door.connections[self] = None
        self.door.metrics.connections = len(self.door.connections)
        self.door.count_address(self)

    async def start(self) -> None:
        """Answer requests. The connection may have ended before its task begins (with Python 3.11 it does not
        begin at once), and aiohttp takes that for a mistake of its own."""
        if self._manager is not None:
            await super().start()

    def connection_lost(self, exc: BaseException | None) -> None:
        if self in self.door.connections:
            del self.door.connections[self]
            self.door.uncount_address(self)
        self.door.metrics.connections = len(self.door.connections)
        self.door.memory.count_unread(self, 0)
        self.lingering = None
        self._let_go(exc)

    # --- in

    def data_received(self, data: bytes) -> None:
        way = self.short_way
        if way is not None:
            size = len(data)
            if way.kept or way.body_bytes:  # else a small request is all that this connection holds
                size += len(way.kept) + way.body_bytes
            if size > FREE_BYTES and not self.hold(size):
                self._refuse(TOO_BUSY)
                return
            way.take(data)
            if self.held_bytes and self.short_way is way:
                self.hold(len(way.kept) + way.body_bytes)
        elif self.refused is None:
            self._take_long(data)

    def _take_long(self, data: bytes) -> None:
        if not data:  # aiohttp goes on with what it has
            super().data_received(data)
            return
        if self.began_at is None and self.body is None:
            self.began_at = self._loop.time()
        if not self.is_discarding() and not self.count_arrived(len(data)):
            return
        if self._line is not None and not self._line_passes(data):
            self._refuse(BAD_LINE)
            return
        if self._masks is not None and not self._frames_pass(self._masks, data):
            return
        super().data_received(data)
        if self._messages:
            self._newest = self._messages[-1][1]
        if data.endswith(HEAD_END) and not self._upgraded and self._newest is not None:
            self._line = b"" if self._newest.is_eof() else None
        reads_head = self._request_count == self.answered and not self.is_discarding()
        if reads_head and self.arrived_bytes > self.door.http.header_bytes_max:
            self._refuse(LONG_HEAD)

    def _line_passes(self, data: bytes) -> bool:
        """aiohttp takes any number of blanks between the words of a request's first line; others may not.
        It is looked at where it is known to begin: first on the connection, or behind an empty line."""
        assert self._line is not None
        line, ended, _ = (self._line + data).lstrip(b"\r\n").partition(b"\n")
        self._line = None if ended else line[: self.door.http.header_bytes_max]
        return b"  " not in line and b"\t" not in line

    def _frames_pass(self, masks: MaskCheck, data: bytes) -> bool:
        """Pings and pongs are never handed to anybody, so nothing else would take them off the count."""
        control_bytes = masks.control_bytes
        if not masks.passes(data):
            self._end_websocket()
            return False
        self.arrived_bytes -= masks.control_bytes - control_bytes
        self.hold(self.arrived_bytes)
        return True

    def set_parser(self, parser: Any, *more: Any, **named: Any) -> None:
        """From here on it is a WebSocket; its first frames may have come before it was one."""
        self._masks, self._line = MaskCheck(), None
        if self._masks.passes(self._message_tail):
            super().set_parser(parser, *more, **named)
        else:
            self._message_tail = b""
            super().set_parser(parser, *more, **named)
            self._end_websocket()

    def _end_websocket(self) -> None:
        self.door.say("the WebSocket of %s is cut: its frames are not masked", self.peername)
        if self.transport is not None:
            self.transport.write(NOT_MASKED)
            self.transport.close()

    def take_long_way(self, data: bytes) -> None:
        self.short_way = None
        self.data_received(data)

    def count_arrived(self, more_bytes: int) -> bool:
        """Count bytes that arrived for a request that is not answered yet. False: the request was refused."""
        self.arrived_bytes += more_bytes
        if self.hold(self.arrived_bytes):
            return True
        self._refuse(TOO_BUSY)
        return False

    def hold(self, now_bytes: int) -> bool:
        """Set how many bytes this connection holds. False: all connections together hold too many."""
        if now_bytes <= FREE_BYTES:
            now_bytes = 0
        was_bytes, self.held_bytes = self.held_bytes, now_bytes
        return self.door.memory.count_received(was_bytes, now_bytes)

    def is_receiving(self) -> bool:
        return self.body is None or not self.body.is_eof()

    def is_discarding(self) -> bool:
        """What comes belongs to a request that is answered already: aiohttp throws it away."""
        return self._leftover is not None and not self._leftover.is_eof()

    # --- requests that aiohttp has read

    def request_came(self, body: StreamReader) -> None:
        """A request's head is complete and it is being answered; the body may still be on its way."""
        self.body = body

    def request_went(self, request: web.Request) -> None:
        self.answered += 1
        self._leftover = None if self.body is None or self.body.is_eof() else self.body
        self.began_at = self.body = None
        self.arrived_bytes = max(0, self.arrived_bytes - _size(request)) if self._messages else 0
        self.hold(self.arrived_bytes)

    def frame_came(self) -> None:
        """A WebSocket's frame is complete."""
        self.arrived_bytes = 0
        self.hold(0)

    # --- out

    def pause_writing(self) -> None:
        super().pause_writing()
        self._count_unread()

    def resume_writing(self) -> None:
        self.door.memory.count_unread(self, 0)
        super().resume_writing()
        if self.short_way is not None:
            self.short_way.go_on()

    def count_ahead(self, ahead_bytes: int) -> None:
        """Note how many bytes of messages wait to be written: they count while the client does not read."""
        self.ahead_bytes = ahead_bytes
        if self.writing_paused:
            self._count_unread()

    def _count_unread(self) -> None:
        if self.transport is not None:
            self.door.count_unread(self, self.transport.get_write_buffer_size() + self.ahead_bytes)

    def _refuse(self, refusal: Refused) -> None:
        """The request gets this answer, and what is left of it is dropped as it comes, for closing at once
        could take the answer away again. To aiohttp it looks as if the client had gone."""
        transport = self.transport
        if transport is None:
            return
        self.door.say("a request from %s is refused with %d", self.peername, refusal.status)
        if self.body is None:  # else whoever handles it tells
            self.door.metrics.note_refusal(refusal.status)
        if self._owes_answer():  # that one must come first
            transport.abort()
            return
        self.refused, self.refused_at = refusal.status, self._loop.time()
        self.transport, self.lingering = None, transport
        transport.write(refusal.data)
        if transport.can_write_eof():
            transport.write_eof()
        self._let_go(ConnectionResetError(f"refused with {refusal.status}"))

    def _owes_answer(self) -> bool:
        """A whole request has come that is not answered."""
        if self.short_way is not None:
            return self.short_way.is_answering
        waiting = self._request_count - self.answered
        return waiting > 1 or (waiting == 1 and self._newest is not None and self._newest.is_eof())

    def _let_go(self, exc: BaseException | None) -> None:
        """Nothing that was held for the client is reached from here any more: memory does not wait for the
        collector of cycles, which may come late."""
        if self.short_way is not None:
            self.short_way.close()
            self.hold(self.short_way.body_bytes)  # that request is answered all the same
        elif self.body is None:
            self.hold(0)
        self.short_way = self.body = self._leftover = self._newest = None
        super().connection_lost(exc)
        self._messages.clear()
        self._message_tail = b""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What can't be read as HTTP: a short answer and a line, for a stranger must not fill the log."""
        if status >= 500:
            return super().handle_error(request, status, exc, message)
        self.door.say(
            "a request from %s can't be read: %s", request.remote, (message or "").partition(":")[0]
        )
        refusal = web.Response(status=status, text="The request is not valid HTTP.\n")
        refusal.force_close()
        return refusal


class Overcrowded(asyncio.Protocol):
    """One connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class Door:
    """Without a handler for plain ones all requests are aiohttp's."""

    def __init__(
        self,
        runner: web.AppRunner,
        http: Http,
        metrics: GatewayMetrics,
        handler: ShortWayHandler | None = None,
        memory: Memory[Any] | None = None,
    ) -> None:
        assert runner.server is not None, "set up before"
        self.handler = handler
        self.connections: dict[Connection, None] = {}
        self.metrics = metrics
        self._per_address: Tally[str] = Tally()
        self.memory: Memory[Connection] = memory or Memory(http)
        self.http = http
        self._manager = runner.server
        self._loop = asyncio.get_running_loop()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._said = 0

    async def open(self, sock: socket.socket, context: ssl.SSLContext | None = None) -> None:
        """With a context, TLS is spoken."""
        patience = None if context is None else HANDSHAKE_S
        self._server = await self._loop.create_server(
            self._admit, sock=sock, backlog=BACKLOG, ssl=context, ssl_handshake_timeout=patience
        )
        self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)

    def close(self) -> None:
        """No new connections; those that are here stay."""
        if self._server is not None:
            self._server.close()
        if self._sweeper is not None:
            self._sweeper.cancel()

    def say(self, text: str, *facts: object) -> None:
        """A line in the log; a flood gets one line a second for all that follow."""
        self._said += 1
        if self._said <= LINES_A_SECOND:
            log.info(text, *facts)

    def count_address(self, connection: Connection) -> None:
        """One too many from its address is closed again."""
        self._per_address[connection.remote] += 1
        if self._per_address[connection.remote] > self.http.connections_per_address_max:
            self.metrics.refused += 1
            limit = self.http.connections_per_address_max
            self.say("a connection is refused: http.connections_per_address_max is %d", limit)
            connection.force_close()

    def uncount_address(self, connection: Connection) -> None:
        self._per_address[connection.remote] -= 1
        if not self._per_address[connection.remote]:
            del self._per_address[connection.remote]

    def count_unread(self, connection: Connection, unread_bytes: int) -> None:
        """Cuts off those who read least, if too much waits to be read."""
        self.memory.count_unread(connection, unread_bytes)
        while (slowest := self.memory.slowest()) is not None:
            self.memory.count_unread(slowest, 0)
            self.say("the connection from %s is cut: others need the memory of its answers", slowest.peername)
            if slowest.transport is not None:
                slowest.transport.abort()

    def _admit(self) -> asyncio.Protocol:
        if len(self.connections) >= self.http.connections_max:
            self.metrics.refused += 1
            self.say("a connection is refused: http.connections_max is %d", self.http.connections_max)
            return Overcrowded()
        return Connection(
            self,
            self._manager,
            loop=self._loop,
            keepalive_timeout=self.http.idle_ms / 1000,
            max_line_size=self.http.header_bytes_max,
            max_field_size=self.http.header_bytes_max,
            read_bufsize=READ_BYTES,
            access_log=None,
        )

    def _sweep(self) -> None:
        if self._said > LINES_A_SECOND:
            log.info("%d more connections were closed or refused", self._said - LINES_A_SECOND)
        self._said = 0
        now = self._loop.time()
        for connection in list(self.connections):
            if connection.lingering is not None:
                if now - connection.refused_at > LINGER_S:
                    connection.lingering.abort()
                continue
            reason = self._overdue(connection, now)
            if reason and connection.transport is not None:
                self.say("the connection from %s is cut: %s", connection.peername, reason)
                connection.transport.abort()
            elif self._is_idle(connection, now):
                connection.force_close()
        self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)

    def _overdue(self, connection: Connection, now: float) -> str:
        began = connection.began_at
        if began is not None and not connection.is_receiving():
            connection.began_at = None  # whatever comes while it is answered belongs to the next
        elif began is not None and (now - began) * 1000 > self.http.request_ms:
            return f"a request was not finished within {self.http.request_ms} ms"
        unread = 0 if connection.transport is None else connection.transport.get_write_buffer_size()
        if unread != connection.unread_bytes or not unread:
            connection.unread_bytes, connection.stuck_at = unread, now
            if connection.writing_paused:
                self.count_unread(connection, unread + connection.ahead_bytes)
        elif (now - connection.stuck_at) * 1000 > self.http.idle_ms:
            return f"it read nothing for {self.http.idle_ms} ms"
        return ""

    def _is_idle(self, connection: Connection, now: float) -> bool:
        """aiohttp closes its own."""
        way = connection.short_way
        if way is None or way.is_answering or connection.unread_bytes:
            return False
        return (now - way.idle_since) * 1000 > self.http.idle_ms


def _size(request: web.Request) -> int:
    """How many bytes the request had, but for a few blanks."""
    head = len(request.method) + len(request.raw_path) + len(" / HTTP/1.1\r\n\r\n")
    return (
        head
        + sum(len(name) + len(value) + 4 for name, value in request.raw_headers)
        + (request.content.total_bytes)
    )
