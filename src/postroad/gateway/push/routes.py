"""The routes of all kinds of push."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from postroad.gateway.gateway import Gateway
from postroad.gateway.push.events import Events
from postroad.gateway.push.guard import guarded
from postroad.gateway.push.tail import Tails
from postroad.gateway.push.websocket import WebSocketEdge
from postroad.gateway.rest.history import SEEN
from postroad.gateway.security.rights import READ, RECEIVE, Rights

READS: Final = Rights(topic=READ)


def routes(gateway: Gateway) -> list[web.RouteDef]:
    return [
        web.get("/v1/subscriptions/{name}/stream", guarded(gateway, WebSocketEdge(gateway).stream, RECEIVE)),
        web.get("/v1/topics/{topic}/tail", guarded(gateway, Tails(gateway).tail, READS), allow_head=False),
        web.get("/v1/events", guarded(gateway, Events(gateway).events, SEEN), allow_head=False),
    ]
