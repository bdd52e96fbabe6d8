"""Endpoints of web hooks: real HTTP servers that do what a test tells them to."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiohttp import web
from multidict import CIMultiDictProxy

SOON_S = 10.0


class Got(NamedTuple):
    headers: CIMultiDictProxy[str]
    body: bytes


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
        got = Got(request.headers, await request.read())
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
