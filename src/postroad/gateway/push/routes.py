"""The routes of both kinds of push."""

from __future__ import annotations

from aiohttp import web

from postroad.gateway.gateway import Gateway
from postroad.gateway.push.websocket import WebSocketEdge


def routes(gateway: Gateway) -> list[web.RouteDef]:
    sockets = WebSocketEdge(gateway)
    return [web.get("/v1/subscriptions/{name}/stream", sockets.stream)]
