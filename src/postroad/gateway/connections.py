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
from typing import Any, Final

from aiohttp import StreamReader, web

from postroad.config.sections import Http
from postroad.gateway.metrics import GatewayMetrics
from postroad.gateway.short_way import Counter, ShortWay

BACKLOG: Final = 1024
SWEEP_S: Final = 1.0
LINES_A_SECOND: Final = 20  # about connections that were refused or cut; then they are only counted

log = logging.getLogger(__name__)


class Connection(web.RequestHandler):
    """aiohttp's, and what the door's sweep has to know."""

    __slots__ = ("began_at", "body", "door", "short_way", "stuck_at", "unread_bytes")

    def __init__(self, door: Door, manager: web.Server, **options: Any) -> None:
        super().__init__(manager, **options)
        self.door = door
        self.began_at: float | None = None  # when the first byte of a request came that is not complete yet
        self.body: StreamReader | None = None  # of the request that is being answered
        self.unread_bytes = 0  # of answers, when last looked at; so many since `stuck_at`
        self.stuck_at = 0.0
        self.short_way: ShortWay | None = None  # until the first request that is not plain
        if door.counter is not None:
            self.short_way = ShortWay(door.counter, self, self._loop)

    @property
    def remote(self) -> str:
        return str(self.peername[0]) if self.peername else ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self.short_way is not None:
            self.keep_alive(True)  # ends aiohttp's timer, which knows of its own requests only
        self.door.connections[self] = None
        self.door.metrics.connections = len(self.door.connections)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.door.connections.pop(self, None)
        self.door.metrics.connections = len(self.door.connections)
        self.short_way = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.short_way is not None:
            self.short_way.take(data)
            return
        if self.began_at is None and self.body is None:
            self.began_at = self._loop.time()
        super().data_received(data)

    def take_long_way(self, data: bytes) -> None:
        self.short_way = None
        self.data_received(data)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.short_way is not None:
            self.short_way.go_on()

    def request_came(self, body: StreamReader) -> None:
        """A request's head is complete and it is being answered; the body may still be on its way."""
        self.body = body

    def request_went(self) -> None:
        self.began_at = self.body = None

    def is_receiving(self) -> bool:
        return self.body is None or not self.body.is_eof()

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


class Refusal(asyncio.Protocol):
    """One connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class Door:
    """Without a counter all requests are aiohttp's."""

    def __init__(
        self, runner: web.AppRunner, http: Http, metrics: GatewayMetrics, counter: Counter | None = None
    ) -> None:
        assert runner.server is not None, "set up before"
        self.counter = counter
        self.connections: dict[Connection, None] = {}
        self.metrics = metrics
        self._http = http
        self._manager = runner.server
        self._loop = asyncio.get_running_loop()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._said = 0

    async def open(self, sock: socket.socket) -> None:
        self._server = await self._loop.create_server(self._admit, sock=sock, backlog=BACKLOG)
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

    def _admit(self) -> asyncio.Protocol:
        if len(self.connections) >= self._http.connections_max:
            self.metrics.refused += 1
            self.say("a connection is refused: http.connections_max is %d", self._http.connections_max)
            return Refusal()
        return Connection(
            self,
            self._manager,
            loop=self._loop,
            keepalive_timeout=self._http.idle_ms / 1000,
            max_line_size=self._http.header_bytes_max,
            max_field_size=self._http.header_bytes_max,
            access_log=None,
        )

    def _sweep(self) -> None:
        if self._said > LINES_A_SECOND:
            log.info("%d more connections were closed or refused", self._said - LINES_A_SECOND)
        self._said = 0
        now = self._loop.time()
        for connection in list(self.connections):
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
        elif began is not None and (now - began) * 1000 > self._http.request_ms:
            return f"a request was not finished within {self._http.request_ms} ms"
        unread = 0 if connection.transport is None else connection.transport.get_write_buffer_size()
        if unread != connection.unread_bytes or not unread:
            connection.unread_bytes, connection.stuck_at = unread, now
        elif (now - connection.stuck_at) * 1000 > self._http.idle_ms:
            return f"it read nothing for {self._http.idle_ms} ms"
        return ""

    def _is_idle(self, connection: Connection, now: float) -> bool:
        """aiohttp closes its own."""
        way = connection.short_way
        if way is None or way.is_answering or connection.unread_bytes:
            return False
        return (now - way.idle_since) * 1000 > self._http.idle_ms
