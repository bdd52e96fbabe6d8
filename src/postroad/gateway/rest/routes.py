"""All endpoints of REST, and the routes to them."""

from __future__ import annotations

from typing import Final

from aiohttp import hdrs, web

from postroad.gateway.gateway import Gateway
from postroad.gateway.rest import publish, pull, serving, subscriptions, topics
from postroad.gateway.rest.endpoint import Endpoint

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    topics.list_topics,
    topics.create_topic,
    topics.get_topic,
    topics.alter_topic,
    topics.delete_topic,
    publish.publish,
    subscriptions.list_subscriptions,
    subscriptions.create_subscription,
    subscriptions.get_subscription,
    subscriptions.alter_subscription,
    subscriptions.delete_subscription,
    pull.receive,
    pull.acknowledge,
    pull.release,
    pull.extend,
    pull.reject,
)


def routes(gateway: Gateway) -> list[web.RouteDef]:
    found: list[web.RouteDef] = []
    allowed: dict[str, list[str]] = {}
    for endpoint in ENDPOINTS:
        found.append(web.route(endpoint.method, endpoint.path, serving.serve(gateway, endpoint)))
        head = [hdrs.METH_HEAD] if endpoint.method == hdrs.METH_GET else []  # aiohttp adds it by itself
        allowed.setdefault(endpoint.path, []).extend([endpoint.method, *head])
    return found + serving.elsewhere(allowed)
