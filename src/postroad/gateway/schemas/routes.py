"""The registry's routes."""

from __future__ import annotations

from aiohttp import hdrs, web

from postroad.gateway.gateway import Gateway
from postroad.gateway.schemas import serving
from postroad.gateway.schemas.endpoints import ENDPOINTS, ROOTS


def routes(gateway: Gateway) -> list[web.RouteDef]:
    found = [
        web.route(endpoint.method, endpoint.path, serving.serve(gateway, endpoint)) for endpoint in ENDPOINTS
    ]
    allowed: dict[str, list[str]] = {}
    for endpoint in ENDPOINTS:
        head = [hdrs.METH_HEAD] if endpoint.method == hdrs.METH_GET else []  # aiohttp adds it by itself
        allowed.setdefault(endpoint.path, []).extend([endpoint.method, *head])
    return found + serving.elsewhere(list(ROOTS), allowed)
