"""Endpoints of web hooks: real HTTP servers that do what a test tells them to."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple

from aiohttp import web
from multidict import CIMultiDictProxy

SOON_S = 20.0  # and not only when a lock of 25 s ends


class Got(NamedTuple):
    """`at`: on the monotonic clock, before it was answered."""

    headers: CIMultiDictProxy[str]
    body: bytes
    at: float


Behaviour = Callable[[Got], Awaitable[web.StreamResponse] | web.StreamResponse]


async def fine(_: Got) -> web.StreamResponse:
    return web.Response(status=204)


class Endpoint:
    """`behave` says what a request is answered; challenges are answered as they should be."""

    def __init__(self, behave: Behaviour) -> None:
        self.behave = behave
        self.echo = True
        self.got: list[Got] = []
        self.challenges: list[Got] = []
        self.at_once = self.most_at_once = 0
        self.url = ""
        self._arrived = asyncio.Condition()

    @property
    def values(self) -> list[bytes]:
        return [got.body for got in self.got]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        got = Got(request.headers, await request.read(), time.monotonic())
        token = request.headers.get("Postroad-Challenge")
        if token is not None:
            self.challenges.append(got)
            return web.Response(text=token if self.echo else "what?")
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            async with self._arrived:
                self.got.append(got)
                self._arrived.notify_all()
            answer = self.behave(got)
            return answer if isinstance(answer, web.StreamResponse) else await answer
        finally:
            self.at_once -= 1

    async def has_got(self, count: int, within_s: float = SOON_S) -> None:
        async with asyncio.timeout(within_s), self._arrived:
            await self._arrived.wait_for(lambda: len(self.got) >= count)


@contextmanager
def nobody() -> Iterator[str]:
    """A URL where nobody is, nor comes meanwhile: the port is taken, and refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/hook"


@asynccontextmanager
async def endpoint(behave: Behaviour = fine, tls: ssl.SSLContext | None = None) -> AsyncIterator[Endpoint]:
    made = Endpoint(behave)
    app = web.Application(client_max_size=1 << 24)
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    scheme, host = ("https", "localhost") if tls is not None else ("http", "127.0.0.1")
    made.url = f"{scheme}://{host}:{runner.addresses[0][1]}/hook"
    try:
        yield made
    finally:
        await runner.cleanup()
