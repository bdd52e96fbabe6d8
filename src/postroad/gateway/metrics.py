"""`/metrics`: what this gateway counts, and what the nodes tell, on one page for Prometheus.

A node that does not answer in time is left out, and `postroad_node_up` says so. Whoever asks while a page is
being made gets that one. Where there are access keys one is needed here too, as name and password; where
requests are users' it takes Describe on the cluster.
"""

from __future__ import annotations

import asyncio
import resource
import time
from typing import TYPE_CHECKING, Final

from aiohttp import hdrs, web

from postroad import __version__
from postroad.client import nodes
from postroad.errors import ClusterAuthorizationFailed, PostroadError
from postroad.gateway.security import rights
from postroad.metrics.instruments import COUNTS, SECONDS, SERIES_MAX, Count, Distribution, Registry
from postroad.metrics.page import CONTENT_TYPE, COUNTER, GAUGE, Page, labels, merge

if TYPE_CHECKING:
    from postroad.gateway.gateway import Gateway
    from postroad.gateway.security.identities import Identities

SWITCHING_PROTOCOLS: Final = 101
NODE_S: Final = 5.0  # a node's page is waited for so long; Prometheus gives up after 10 s


class GatewayMetrics:
    """What a gateway counts. Made with it, and written on by whoever has something to tell."""

    def __init__(self) -> None:
        registry = self.registry = Registry()
        self.started_at = time.monotonic()
        self.in_flight = 0  # requests
        self.connections = 0
        self.refused = 0  # connections
        self.requests = registry.counters(
            "postroad_http_requests_total", "Answered requests.", "dialect", "action", "status"
        )
        self.took = registry.histograms(
            "postroad_http_request_seconds", "Time from request to answer.", SECONDS, "dialect", "action"
        )
        self._noted: dict[tuple[str, str, int], tuple[Count, Distribution]] = {}  # instead of looking up both
        messages_in = registry.counters("postroad_http_messages_in_total", "Messages that were published.")
        messages_out = registry.counters("postroad_http_messages_out_total", "Messages that were handed out.")
        published = registry.histograms("postroad_http_publish_messages", "Messages in one publish.", COUNTS)
        self.messages_in, self.messages_out, self.published = (
            messages_in.of(),
            messages_out.of(),
            published.of(),
        )
        registry.gauge(
            "postroad_http_requests_in_flight", "Requests that are being answered.", lambda: self.in_flight
        )
        registry.gauge("postroad_http_connections", "Open connections.", lambda: self.connections)

    def note_refusal(self, status: int) -> None:
        """Count a refusal by the door, before a dialect could tell what was asked for."""
        self.requests.of("none", "none", str(status)).add()

    def note_request(self, dialect: str, action: str, status: int, took_ns: int) -> None:
        if status == SWITCHING_PROTOCOLS:  # a WebSocket's life is no latency
            self.requests.of(dialect, action, str(status)).add()
            return
        noted = self._noted.get((dialect, action, status))
        if noted is None:
            noted = self.requests.of(dialect, action, str(status)), self.took.of(dialect, action)
            if len(self._noted) < SERIES_MAX:
                self._noted[dialect, action, status] = noted
        requests, took = noted
        requests.add()
        took.note(took_ns)

    def page(self) -> str:
        page = Page()
        used = resource.getrusage(resource.RUSAGE_SELF)
        page.family("postroad_gateway_info", GAUGE, "1, with the gateway's version.").add(
            1, labels(version=__version__)
        )
        uptime = page.family("postroad_gateway_uptime_seconds", GAUGE, "Time since the gateway was started.")
        uptime.add(time.monotonic() - self.started_at)
        cpu = page.family("postroad_gateway_cpu_seconds_total", COUNTER, "Processor time of its process.")
        cpu.add(used.ru_utime + used.ru_stime)
        refused = page.family(
            "postroad_http_connections_refused_total",
            COUNTER,
            "Connections beyond the limit.",
        )
        refused.add(self.refused)
        self.registry.write(page)
        return page.text()


def routes(gateway: Gateway) -> list[web.RouteDef]:
    identities = gateway.identities
    making: asyncio.Task[str] | None = None

    @rights.declared(rights.Rights(cluster=rights.DESCRIBE))
    async def metrics(request: web.Request) -> web.Response:
        nonlocal making
        gateway.visitors.check(request.headers)
        if identities.required:
            await _check_access(identities, request)
        if making is None or making.done():
            making = asyncio.create_task(_whole_page(gateway), name="metrics")
        text = await asyncio.shield(making)
        return web.Response(body=text.encode(errors="replace"), headers={hdrs.CONTENT_TYPE: CONTENT_TYPE})

    return [web.get("/metrics", metrics)]


async def _whole_page(gateway: Gateway) -> str:
    pages = [gateway.metrics.page()]
    up = Page()
    family = up.family("postroad_node_up", GAUGE, "1 if the node's metrics could be read, 0 if not.")
    for node, page in (await _node_pages(gateway)).items():
        family.add(int(page is not None), labels(node=node))
        if page is not None:
            pages.append(page)
    return merge([*pages, up.text()])


async def _node_pages(gateway: Gateway) -> dict[int, str | None]:
    client = gateway.client
    try:
        async with asyncio.timeout(NODE_S):
            known = await client.nodes()
    except (PostroadError, TimeoutError):
        return {}
    found = await asyncio.gather(*(_page_of(gateway, node) for node in known))
    return dict(zip(known, found, strict=True))


async def _page_of(gateway: Gateway, node: int) -> str | None:
    try:
        async with asyncio.timeout(NODE_S):
            return await nodes.metrics(gateway.client, node, NODE_S)
    except (PostroadError, TimeoutError):
        return None


async def _check_access(identities: Identities, request: web.Request) -> None:
    """Raises HTTPUnauthorized, HTTPForbidden, HTTPServiceUnavailable."""
    try:
        access = await identities.by_header(request.headers.get(hdrs.AUTHORIZATION, ""), request.transport)
        if access is not None:
            access.check_cluster(rights.DESCRIBE)
    except ClusterAuthorizationFailed as error:
        raise web.HTTPForbidden(text=f"{error}\n") from None
    except PostroadError as error:
        raise web.HTTPServiceUnavailable(text=f"{error}\n") from None
    if access is None:
        raise web.HTTPUnauthorized(headers={hdrs.WWW_AUTHENTICATE: 'Basic realm="postroad"'})
