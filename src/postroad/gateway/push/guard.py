"""A stream begins as any other request: who asks is checked, and what it may do, and a refusal is told as
problem details."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from postroad.errors import PostroadError
from postroad.gateway.gateway import Gateway
from postroad.gateway.rest import problems
from postroad.gateway.rest.problems import Refused
from postroad.gateway.rest.serving import authorize
from postroad.gateway.security import rights
from postroad.gateway.security.access import Access
from postroad.gateway.security.rights import Rights

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Work = Callable[[web.Request, Access], Awaitable[web.StreamResponse]]


def guarded(gateway: Gateway, work: Work, wanted: Rights) -> Handler:
    @rights.declared(wanted)
    async def handle(request: web.Request) -> web.StreamResponse:
        path = request.match_info
        try:
            access = await authorize(gateway, request)
            await rights.check(
                access, wanted, gateway.directory, group=path.get("name", ""), topic=path.get("topic", "")
            )
            return await work(request, access)
        except Refused as refused:
            return problems.answer(refused.problem, refused.headers)
        except PostroadError as error:
            return problems.answer(problems.of(error))

    handle.__name__ = work.__name__
    return handle
