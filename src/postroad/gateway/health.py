"""`/healthz`: this process lives. `/readyz`: the nodes answer, so that requests have a chance.

Restart a gateway that fails the first; send no requests to one that fails the second. `GET` and `HEAD`.

A gateway is ready if every node that its cluster counts as serving answers it: what a node leads can be had
nowhere else, and another gateway may well reach it. A node that has died is not counted any more after a
moment, and then fails nobody.
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from postroad.errors import PostroadError
from postroad.gateway.gateway import Gateway
from postroad.gateway.security import rights
from postroad.wire.messages import api_versions

NODE_S: Final = 1.0  # for each node, all of which are asked at once
ANSWER_S: Final = 2.0  # a node that takes longer is as good as away: probes give up after a second or more
_NO_CACHE: Final = {"Cache-Control": "no-store"}


def routes(gateway: Gateway) -> list[web.RouteDef]:
    @rights.declared(rights.PUBLIC)
    async def healthz(request: web.Request) -> web.Response:
        return web.Response(text="alive\n", headers=_NO_CACHE)

    @rights.declared(rights.PUBLIC)
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
        nodes = await _nodes(gateway)
        answers = await asyncio.gather(*(_answers(gateway, node) for node in nodes))
        silent = [node for node, answered in zip(nodes, answers, strict=True) if not answered]
        if silent:  # one that has died is counted for a moment
            counted = await _nodes(gateway)
            silent = [node for node in silent if node in counted]
    except PostroadError:
        return "no node answers"
    return f"node {silent[0]} does not answer" if silent else ""


async def _nodes(gateway: Gateway) -> list[int]:
    """The nodes that the cluster counts as serving, in order."""
    cluster = await gateway.client.retry(lambda: gateway.client.cluster([]), timeout_s=ANSWER_S)
    return sorted(cluster.nodes)


async def _answers(gateway: Gateway, node: int) -> bool:
    try:
        async with asyncio.timeout(NODE_S):
            await gateway.client.call(api_versions, api_versions.ApiVersionsRequest(), node=node)
    except (PostroadError, TimeoutError):
        return False
    return True
