"""No route of any dialect lets in a page from elsewhere, or a foreign name of this machine."""

from __future__ import annotations

import re
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit

import pytest

from postroad.gateway.dialects import DIALECTS
from tests.gateway.conftest import RunningGateway, StartGateway

# They tell nothing but that something is here, and what the documents say anyway.
PAGES = ("/healthz", "/readyz", "/docs", "/docs/page.js", "/docs/page.css", "/openapi.json")
OPEN = {("GET", path) for path in PAGES}
PART = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")  # of a path: what stands for a name
ANY = "0" * 12  # as a name, a number and an account
EVIL = "evil.example"
FOREIGN = [
    {"Host": f"{EVIL}:8080"},  # DNS rebinding
    {"Origin": f"http://{EVIL}"},
    {"Origin": "null"},  # a sandboxed frame, a file
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},  # another port of this machine
]
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway(DIALECTS)


def every_route(gateway: RunningGateway) -> list[tuple[str, str]]:
    """Method and path of each route, as the application has them."""
    found = []
    for routes in DIALECTS:
        for route in routes(gateway.gateway):
            path = PART.sub(ANY, route.path)
            if route.method != "*":  # these refuse everybody
                found.append((route.method, path))
    return [route for route in found if route not in OPEN]


def ask(
    gateway: RunningGateway, method: str, path: str, headers: dict[str, str]
) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection(urlsplit(gateway.url).netloc, timeout=10)
    connection.request(method, path, body=None, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def test_there_are_routes_of_every_dialect(gateway: RunningGateway) -> None:
    paths = {path for _, path in every_route(gateway)}
    assert {"/", "/metrics", "/v1/topics", f"/v1/subscriptions/{ANY}/stream"} <= paths


@pytest.mark.parametrize(
    "foreign", FOREIGN, ids=[f"{name}-{value}" for each in FOREIGN for name, value in each.items()]
)
def test_no_route_serves_a_page_from_elsewhere(gateway: RunningGateway, foreign: dict[str, str]) -> None:
    served = []
    for method, path in every_route(gateway):
        for more in ({}, HANDSHAKE) if path.endswith("/stream") else ({},):
            response, _ = ask(gateway, method, path, {**more, **foreign})
            if response.status != 403:
                served.append((method, path, response.status))
    assert served == []


def test_a_refusal_says_what_to_do(gateway: RunningGateway) -> None:
    response, body = ask(gateway, "GET", "/v1/topics", {"Host": EVIL})
    assert response.headers["Content-Type"].startswith("application/problem+json")
    assert b"http.hosts" in body
