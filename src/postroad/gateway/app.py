"""The gateway's HTTP application: the dialects' routes, and what holds for every request.

Every request has a bound on its size and on its time; one that can't be read is refused with a clear text.
What goes wrong inside is logged with its traceback and answered with 500 and nothing else.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from aiohttp import hdrs, web
from aiohttp.web_protocol import RequestPayloadError

from postroad.gateway.access_log import AccessLog, Line
from postroad.gateway.bodies import BODY, has_gone
from postroad.gateway.connections import Connection
from postroad.gateway.gateway import Gateway

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Routes = Callable[[Gateway], list[web.RouteDef]]
Context = Callable[[Gateway], Callable[[web.Application], AsyncIterator[None]]]

GATEWAY: Final = web.AppKey("gateway", Gateway)
ACTION: Final = web.RequestKey("action", str)  # what it asks for, where the route alone does not tell
CLIENT_GONE: Final = 499  # in metrics and logs: the client hung up, and no answer was sent
NOWHERE: Final = ("none", "none")  # dialect and action of a request that no route takes

_LENGTH: Final = re.compile(r"0|[1-9][0-9]*")

log = logging.getLogger(__name__)


def create_app(gateway: Gateway, dialects: list[Routes], contexts: Sequence[Context] = ()) -> web.Application:
    """`contexts`: what runs beside the requests, from the application's start to its end."""
    edge = _Edge(gateway)
    app = web.Application(middlewares=[edge.handle], client_max_size=gateway.http.body_bytes_max)
    app[GATEWAY] = gateway
    for routes in dialects:
        app.add_routes(edge.named(_dialect(routes), routes(gateway)))
    app.cleanup_ctx.extend(context(gateway) for context in contexts)
    return app


class _Edge:
    """Around every handler."""

    def __init__(self, gateway: Gateway) -> None:
        self._metrics = gateway.metrics
        self._access_log = AccessLog(gateway.http)
        self._head_bytes_max = gateway.http.header_bytes_max
        self._names: dict[object, tuple[str, str]] = {}  # by handler

    def named(self, dialect: str, routes: list[web.RouteDef]) -> list[web.RouteDef]:
        for route in routes:
            self._names[route.handler] = dialect, getattr(route.handler, "__name__", "handler")
        return routes

    @web.middleware
    async def handle(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        began = time.perf_counter_ns()
        status, sent = CLIENT_GONE, 0
        self._metrics.in_flight += 1
        connection = request.protocol
        if isinstance(connection, Connection):
            connection.request_came(request.content)
        try:
            response = await self._answer(request, handler)
            status, sent = response.status, response.content_length or 0
            if _is_other_upgrade(request):
                response.force_close()
            return response
        except web.HTTPException as refused:
            status = refused.status
            if _is_other_upgrade(request):
                refused.force_close()
            raise
        finally:
            request.pop(BODY, None)
            if isinstance(connection, Connection):
                status = connection.refused or status
                connection.request_went(request)
            self._note(request, status, sent, time.perf_counter_ns() - began)

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            _refuse_ambiguous(request)
            self._check_head(request)
            return await handler(request)
        except web.HTTPException:
            raise
        except RequestPayloadError:
            raise web.HTTPBadRequest(text="The request's body can't be read.\n") from None
        except Exception as error:
            if isinstance(error, ConnectionError) and has_gone(request):
                return web.Response(status=CLIENT_GONE)  # aiohttp finds that nobody is there to get it
            log.exception("%s %s failed", request.method, request.path)
            return web.Response(status=500, text="Internal error; see the gateway's log.\n")

    def _check_head(self, request: web.Request) -> None:
        """One that came in a single piece has not been measured before."""
        head = len(request.raw_path) + sum(len(name) + len(value) for name, value in request.raw_headers)
        if head > self._head_bytes_max:
            raise web.HTTPRequestHeaderFieldsTooLarge(text="The setting is http.header_bytes_max.\n")

    def _note(self, request: web.Request, status: int, sent: int, took_ns: int) -> None:
        dialect, action = self._names.get(request.match_info.handler, NOWHERE)
        action = request.get(ACTION, action)
        self._metrics.note_request(dialect, action, status, took_ns)
        self._metrics.in_flight -= 1
        if self._access_log.wants(status):
            sizes, peer = (request.content_length or 0, sent), request.remote or ""
            self._access_log.note(
                Line(request.method, request.path, status, took_ns, dialect, action, *sizes, peer)
            )


def _dialect(routes: Routes) -> str:
    """`sqs` of `postroad.gateway.sqs.routes`."""
    return routes.__module__.removeprefix("postroad.gateway.").partition(".")[0]


def _refuse_ambiguous(request: web.Request) -> None:
    """What aiohttp lets pass, and a proxy before us may understand in another way."""
    coding = request.headers.get(hdrs.TRANSFER_ENCODING)
    if coding is not None and (coding.strip().lower() != "chunked" or request.version < (1, 1)):
        raise web.HTTPNotImplemented(text="The only supported transfer coding is chunked, with HTTP/1.1.\n")
    if not _LENGTH.fullmatch(request.headers.get(hdrs.CONTENT_LENGTH, "0")):
        refused = web.HTTPBadRequest(text="Content-Length must be a number without leading zeros.\n")
        refused.force_close()
        raise refused


def _is_other_upgrade(request: web.Request) -> bool:
    """Such as to h2c, which is not done here. aiohttp has dropped what came behind it: so it is the last."""
    upgrade = request.headers.get(hdrs.UPGRADE)
    return upgrade is not None and upgrade.strip().lower() != "websocket"
