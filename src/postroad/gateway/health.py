"""`/healthz`: this process lives. `/readyz`: the nodes answer, so that requests have a chance.

Restart a gateway that fails the first; send no requests to one that fails the second. `GET` and `HEAD`.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web

from postroad.errors import PostroadError
from postroad.gateway.gateway import Gateway

ANSWER_S: Final = 2.0  # a node that takes longer is as good as away: probes give up after a second or more
_NO_CACHE: Final = {"Cache-Control": "no-store"}


def routes(gateway: Gateway) -> list[web.RouteDef]:
    async def healthz(request: web.Request) -> web.Response:
        return web.Response(text="alive\n", headers=_NO_CACHE)

    async def readyz(request: web.Request) -> web.Response:
        reason = await _not_ready(gateway)
        if reason:
            return web.Response(status=503, text=f"not ready: {reason}\n", headers=_NO_CACHE)
        return web.Response(text="ready\n", headers=_NO_CACHE)

    return [web.get("/healthz", healthz), web.get("/readyz", readyz)]  # aiohttp adds HEAD to GET


async def _not_ready(gateway: Gateway) -> str:
    """Why requests would fail; empty if they would not."""
    if gateway.closing.is_set():
        return "stopping"
    try:
        await gateway.client.retry(lambda: gateway.client.cluster([]), timeout_s=ANSWER_S)
    except PostroadError:
        return "no node answers"
    return ""
