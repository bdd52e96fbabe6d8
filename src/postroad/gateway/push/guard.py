"""A stream begins as any other request: who asks is checked, and a refusal is told as problem details."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from postroad.errors import PostroadError
from postroad.gateway.gateway import Gateway
from postroad.gateway.rest import problems
from postroad.gateway.rest.problems import Refused
from postroad.gateway.rest.serving import authorize

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def guarded(gateway: Gateway, work: Handler) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            authorize(gateway, request)
            return await work(request)
        except Refused as refused:
            return problems.answer(refused.problem, refused.headers)
        except PostroadError as error:
            return problems.answer(problems.of(error))

    handle.__name__ = work.__name__
    return handle
