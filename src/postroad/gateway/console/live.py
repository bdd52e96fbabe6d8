"""Ticks: while somebody looks at a page it is made anew every two seconds, and what has changed is sent.

    data: <hx-partial hx-target="#topics-orders" hx-swap="outerMorph"><tr …></tr></hx-partial>

A page marks what may be renewed (`Visit.live`, and `Visit.frame` around rows); nothing else is touched, so
forms, the focus and what is selected stay. The browser lets go of the connection while its tab is in the
background.

T1 A page that takes long to make is made less often: at most `SHARE` of a processor is spent with it, but
   every `PAUSE_MAX_S` it is made in any case. What is waited for meanwhile costs nothing.
T2 At most `STREAMS_MAX` pages are followed at once, so open tabs can't take the gateway's time away.
T3 Who is looking is asked anew with each tick: a session that has ended sees nothing more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from aiohttp import hdrs, web

from postroad.errors import PostroadError
from postroad.gateway.bodies import has_gone
from postroad.gateway.console.assets import HEADERS
from postroad.gateway.console.visit import Visit
from postroad.gateway.gateway import Gateway
from postroad.gateway.rest.problems import Refused
from postroad.markup import Html, join, tag

TICK_S: Final = 2.0
SHARE: Final = 0.02
PAUSE_MAX_S: Final = 10.0
STREAMS_MAX: Final = 100
ALIVE_S: Final = 15.0  # so often a comment says that there is nothing new
TOO_MANY: Final = b": too many pages are followed\n\n"
RELOAD: Final = b"event: console:reload\ndata: 1\n\n"

MakeVisit = Callable[[], Awaitable[Visit | None]]
"""One more look at the same page, already rendered; None: the visitor may not look any more."""


class Streams:
    """The pages that are followed now."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.open = 0

    async def follow(self, request: web.Request, look: MakeVisit) -> web.StreamResponse:
        """Until the browser leaves, the gateway ends or the visitor's session does. One too many hears so,
        and its browser asks again soon: after an error it would not."""
        if self.open >= STREAMS_MAX:
            return await _too_many(request)
        self.open += 1
        try:
            return await self._follow(request, look)
        finally:
            self.open -= 1

    async def _follow(self, request: web.Request, look: MakeVisit) -> web.StreamResponse:
        response = await _begun(request)
        sent = _Sent()
        said_at = time.monotonic()
        while not self._gateway.closing.is_set() and not has_gone(request):
            began, used = time.monotonic(), time.thread_time()
            visit: Visit | _Unchanged | None
            try:
                visit = await look()
            except (Refused, PostroadError):
                visit = None if self._gateway.closing.is_set() else _UNCHANGED
            if visit is None:
                await response.write(RELOAD)
                break
            news = sent.news(visit) if isinstance(visit, Visit) else Html("")
            if news:
                await response.write(_event(news))
            elif began - said_at > ALIVE_S:
                await response.write(b": nothing new\n\n")
            said_at = began if news or began - said_at > ALIVE_S else said_at
            used = time.thread_time() - used
            await self._pause(max(TICK_S, min(used / SHARE, PAUSE_MAX_S)) - (time.monotonic() - began))
        return response

    async def _pause(self, pause_s: float) -> None:
        try:
            async with asyncio.timeout(pause_s):
                await self._gateway.closing.wait()
        except TimeoutError:
            return


async def _begun(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={**HEADERS, hdrs.CACHE_CONTROL: "no-store"})
    response.content_type = "text/event-stream"
    await response.prepare(request)
    return response


async def _too_many(request: web.Request) -> web.StreamResponse:
    response = await _begun(request)
    await response.write(TOO_MANY)
    return response


class _Unchanged:
    """Nodes did not answer this time: the page stays as it is."""


_UNCHANGED: Final = _Unchanged()


class _Sent:
    """What the browser has."""

    def __init__(self) -> None:
        self._parts: dict[str, int] = {}
        self._frames: dict[str, tuple[str, ...]] = {}

    def news(self, visit: Visit) -> Html:
        """Frames whose rows are others are sent whole, then what is new in the rest."""
        return join(self._changed(visit))

    def _changed(self, visit: Visit) -> Iterator[Html]:
        covered: set[str] = set()
        for id_, (rows, whole) in visit.frames.items():
            if self._frames.get(id_) != rows:
                self._frames[id_] = rows
                yield _partial(id_, whole)
                covered.update(f"{id_}-{row}" for row in rows)
        parts = {id_: hash(part) for id_, part in visit.parts.items()}
        for id_, part in visit.parts.items():
            if self._parts.get(id_) != parts[id_] and id_ not in covered:
                yield _partial(id_, part)
        self._parts = parts


def _partial(id_: str, made: Html) -> Html:
    return tag("hx-partial", made, hx_target=f"[id={_quoted(id_)}]", hx_swap="outerMorph")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _event(news: Html) -> bytes:
    lines = news.replace("\r", "&#13;").split("\n")
    return "".join(f"data: {line}\n" for line in lines).encode(errors="replace") + b"\n"
