"""The registry's routes."""

from __future__ import annotations

from aiohttp import web

from postroad.gateway.gateway import Gateway
from postroad.gateway.schemas import serving
from postroad.gateway.schemas.endpoints import ENDPOINTS, ROOTS


def routes(gateway: Gateway) -> list[web.RouteDef]:
    found = [
        web.route(endpoint.method, endpoint.path, serving.serve(gateway, endpoint)) for endpoint in ENDPOINTS
    ]
    return found + serving.elsewhere(list(ROOTS))
