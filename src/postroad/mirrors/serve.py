"""A mirror as a process: from its settings to its last word, with a page of metrics beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

from aiohttp import web

from postroad import process
from postroad.client import Client
from postroad.client.login import Credentials
from postroad.client.metadata import Address
from postroad.metrics.page import CONTENT_TYPE
from postroad.mirrors.errors import MirrorError
from postroad.mirrors.mirror import Mirror, MirrorSettings
from postroad.mirrors.page import facts, page

Logins = tuple[Credentials | None, Credentials | None]
"""Who the mirror is at the source, and at the target."""


def run(
    settings: MirrorSettings, logins: Logins, metrics: Address | None, timeout_s: float
) -> dict[str, Any]:
    """Until SIGTERM or SIGINT, or until it is done; what it did. Raises what it can't go on with."""
    process.log_to_stderr("info", "text")
    with process.event_loop() as runner:
        return runner.run(_run(settings, logins, metrics, timeout_s))


async def _run(
    settings: MirrorSettings, logins: Logins, metrics: Address | None, timeout_s: float
) -> dict[str, Any]:
    stopping = process.told_to_stop()

    def client(bootstrap: str, login: Credentials | None) -> Client:
        return Client(bootstrap, client_id="postroad-mirror", timeout_s=timeout_s, credentials=login)

    with (  # not connected yet: the mirror waits for a cluster that is away
        closing(client(settings.source, logins[0])) as source,
        closing(client(settings.target, logins[1])) as target,
    ):
        mirror = Mirror(settings, source, target)
        async with _served(mirror, metrics, source):
            await mirror.run(stopping)
        return {**facts(mirror), "is_complete": settings.once and not stopping.is_set()}


@asynccontextmanager
async def _served(mirror: Mirror, metrics: Address | None, client: Client) -> AsyncIterator[None]:
    """The page of metrics, if one is wanted."""
    if metrics is None:
        yield
        return
    began = asyncio.get_running_loop().time()

    async def show(request: web.Request) -> web.Response:
        text = page(mirror, client.runtime.clock.now_ms(), began)
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.router.add_get("/metrics", show)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, *metrics).start()
        except OSError as error:
            raise MirrorError(f"can't serve metrics at {metrics}: {error.strerror}") from None
        yield
    finally:
        await runner.cleanup()
