"""The gateway's HTTP application: the dialects' routes, and what holds for every request.

Every request has a bound on its size and on its time; one that can't be read is refused with a clear text.
What goes wrong inside is logged with its traceback and answered with 500 and nothing else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from postroad.gateway.gateway import Gateway

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Routes = Callable[[Gateway], list[web.RouteDef]]

GATEWAY: Final = web.AppKey("gateway", Gateway)

access_log = logging.getLogger("postroad.access")
log = logging.getLogger(__name__)


def create_app(gateway: Gateway, dialects: list[Routes]) -> web.Application:
    app = web.Application(middlewares=[_access], client_max_size=gateway.http.body_bytes_max)
    app[GATEWAY] = gateway
    for routes in dialects:
        app.add_routes(routes(gateway))
    return app


@web.middleware
async def _access(request: web.Request, handler: Handler) -> web.StreamResponse:
    began = time.monotonic()
    status = 500
    try:
        response = await handler(request)
        status = response.status
        return response
    except web.HTTPException as refused:
        status = refused.status
        raise
    finally:
        if access_log.isEnabledFor(logging.INFO):
            took_ms = (time.monotonic() - began) * 1000
            access_log.info("%s %s %d %.1f ms", request.method, request.path, status, took_ms)
