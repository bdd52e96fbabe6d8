"""The short way: plain requests (`plain_request.py`) are read and answered without aiohttp, which would cost
more than the rest of a small request.

A connection begins on the short way. With the first request that is not plain it leaves it for good, and
aiohttp gets every byte from there on: no byte is ever looked at by both.

W1 requests of a connection are answered one after the other, in their order; what comes meanwhile is kept.
W2 at most a read more than `KEPT_BYTES_MAX` is kept while a request is answered, else a head and a body
   within the limits of `http`.
W3 a request goes on when its client leaves; whoever handles it may look at `Head.peer`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, Protocol

from aiohttp.http import SERVER_SOFTWARE

from postroad.gateway.access_log import AccessLog, Line
from postroad.gateway.exchange import Head, PlainRoute, Reply
from postroad.gateway.gateway import Gateway
from postroad.gateway.plain_request import OTHER, TARGET, Plain, Unread, read_head

KEPT_BYTES_MAX: Final = 64 * 1024

_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}
_FAILED: Final = Reply(
    500,
    (("Content-Type", "text/plain; charset=utf-8"),),
    b"Internal error; see the gateway's log.\n",
)

log = logging.getLogger(__name__)


class Connected(Protocol):
    """What the short way needs of its connection."""

    began_at: float | None
    held_bytes: int

    def hold(self, now_bytes: int) -> bool:
        """Set how many bytes this connection holds. False: all connections together hold too many."""

    @property
    def transport(self) -> asyncio.Transport | None: ...

    @property
    def writing_paused(self) -> bool: ...

    @property
    def remote(self) -> str: ...

    def take_long_way(self, data: bytes) -> None:
        """These bytes and all that follow are aiohttp's."""


class ShortWay:
    """One connection's."""

    __slots__ = (
        "_connection",
        "_handler",
        "_is_going_on",
        "_is_held",
        "_loop",
        "_plain",
        "body_bytes",
        "idle_since",
        "is_answering",
        "kept",
    )

    def __init__(
        self, handler: ShortWayHandler, connection: Connected, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._handler = handler
        self._connection = connection
        self._loop = loop
        self.kept: bytes | bytearray = b""
        self._plain: Plain | None = None  # its head is read, its body is on the way
        self.body_bytes = 0  # of the request that is being answered
        self._is_going_on = False
        self._is_held = False  # reading is paused
        self.is_answering = False
        self.idle_since = loop.time()

    def take(self, data: bytes) -> None:
        """What came over the connection."""
        if self.kept:
            if isinstance(self.kept, bytes):
                self.kept = bytearray(self.kept)  # a body may come in many small pieces
            self.kept += data
        else:
            self.kept = data
        self.go_on()
        if len(self.kept) > KEPT_BYTES_MAX and self._must_wait():  # W2
            self._hold(True)

    def go_on(self) -> None:
        """With what is kept; called again when the peer has read its answers."""
        if self._is_going_on:
            return  # a request that was answered at once: the loop below goes on
        self._is_going_on = True
        while self.kept and not self._must_wait() and self._begin_next():
            pass
        self._is_going_on = False

    def answer(self, data: bytes) -> None:
        """To the request that is being answered; then the next one's turn has come."""
        self.is_answering = False
        self.body_bytes = 0
        self.idle_since = self._loop.time()
        if self._connection.held_bytes:
            self._connection.hold(len(self.kept))
        transport = self._connection.transport
        if transport is not None and not transport.is_closing():
            transport.write(data)
            if self.kept:
                self.go_on()

    def close(self) -> None:
        """The client has gone. What is under way goes on (W3), and its answer is dropped."""
        self.kept = b""
        self._plain = None

    def _must_wait(self) -> bool:
        return self.is_answering or self._connection.writing_paused

    def _begin_next(self) -> bool:
        """Whether what is kept began with a whole plain request."""
        data, handler = self.kept, self._handler
        limits = handler.gateway.http
        plain = self._plain or read_head(data, limits.header_bytes_max, limits.body_bytes_max)
        if handler.is_closed or plain is OTHER:
            self._leave()
        elif isinstance(plain, Unread):
            self._wait_for_more()
        elif plain.headers[TARGET] not in handler.routes:
            self._leave()
        elif len(data) < plain.end:
            self._wait_for_body(plain)
        else:
            self._begin(plain, data)
            return True
        return False

    def _begin(self, plain: Plain, data: bytes | bytearray) -> None:
        body = bytes(data[plain.body_at : plain.end])
        self.kept = data[plain.end :]
        self._plain = None
        self._connection.began_at = None
        self.is_answering = True
        self.body_bytes = len(body)
        if self._is_held and len(self.kept) <= KEPT_BYTES_MAX:
            self._hold(False)
        self._handler.take(plain, body, self._connection, self)

    def _wait_for_body(self, plain: Plain) -> None:
        """Who asks is looked at first: a stranger's body is nothing to keep."""
        if self._plain is None and not self._handler.routes[plain.headers[TARGET]].admits(plain.headers):
            self._leave()
            return
        self._plain = plain
        self._wait_for_more()

    def _wait_for_more(self) -> None:
        if self._connection.began_at is None:
            self._connection.began_at = self._loop.time()
        self._hold(False)

    def _leave(self) -> None:
        data, self.kept = bytes(self.kept), b""
        self._hold(False)
        self._connection.take_long_way(data)

    def _hold(self, hold: bool) -> None:
        transport = self._connection.transport
        if hold == self._is_held or transport is None:
            return
        self._is_held = hold
        if hold:
            transport.pause_reading()
        else:
            transport.resume_reading()


class ShortWayHandler:
    """Where the plain requests of all connections are answered."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.routes = gateway.plain_routes
        self.access_log = AccessLog(gateway.http)
        self.is_closed = False  # what comes now is for aiohttp
        self._scheme = gateway.http.scheme
        self._under_way = 0
        self._all_answered = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = (0, "")  # in which second, and how

    def take(self, plain: Plain, body: bytes, connection: Connected, way: ShortWay) -> None:
        """`way` gets the answer."""
        self._under_way += 1
        self.gateway.metrics.in_flight += 1
        route = self.routes[plain.headers[TARGET]]
        request = _Request(self, way, route, plain, connection)
        head = Head(
            "POST", plain.target, plain.headers, f"{self._scheme}://{plain.headers['host']}", connection
        )
        try:
            work = route.handler(head, body, request.answer)
        except Exception:
            log.exception("POST %s failed", plain.target)
            request.answer(_FAILED)
            return
        if work is not None:
            task = asyncio.get_running_loop().create_task(self._see_through(work, request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def finish(self, timeout_s: float) -> None:
        """No new requests; those that are under way are answered, or their time is over."""
        self.is_closed = True
        if self._under_way:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._all_answered.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def note_answer(self, dialect: str, action: str, status: int, took_ns: int) -> None:
        metrics = self.gateway.metrics
        metrics.in_flight -= 1
        metrics.note_request(dialect, action, status, took_ns)
        self._under_way -= 1
        if self.is_closed and not self._under_way:
            self._all_answered.set()

    def write(self, reply: Reply) -> bytes:
        """The same lines in the same order as aiohttp writes them."""
        status, headers, body, _ = reply
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
        first = f"HTTP/1.1 {status} {_REASONS.get(status, '')}\r\n"
        return f"{first}{lines}Content-Length: {len(body)}\r\n{self._end()}".encode() + body

    @staticmethod
    async def _see_through(work: Awaitable[Reply], request: _Request) -> None:
        reply = _FAILED
        try:
            reply = await work
        except Exception:
            log.exception("a request failed")
        finally:
            request.answer(reply)

    def _end(self) -> str:
        """The lines that end every head, written once a second."""
        second = int(time.time())
        if self._ended[0] != second:
            date = formatdate(second, usegmt=True)
            self._ended = second, f"Date: {date}\r\nServer: {SERVER_SOFTWARE}\r\n\r\n"
        return self._ended[1]


class _Request:
    """An HTTP request while it is being answered."""

    __slots__ = ("_began_ns", "_connection", "_handler", "_plain", "_route", "_way")

    def __init__(
        self, handler: ShortWayHandler, way: ShortWay, route: PlainRoute, plain: Plain, connection: Connected
    ) -> None:
        self._began_ns = time.perf_counter_ns()
        self._handler = handler
        self._way = way
        self._route = route
        self._plain = plain
        self._connection = connection

    def answer(self, reply: Reply) -> None:
        handler = self._handler
        self._way.answer(handler.write(reply))
        took_ns = time.perf_counter_ns() - self._began_ns
        dialect, action = self._route.dialect, reply.action or self._route.action
        handler.note_answer(dialect, action, reply.status, took_ns)
        if handler.access_log.wants(reply.status):
            plain = self._plain
            sizes, peer = (plain.end - plain.body_at, len(reply.body)), self._connection.remote
            handler.access_log.note(
                Line("POST", plain.target, reply.status, took_ns, dialect, action, *sizes, peer)
            )
