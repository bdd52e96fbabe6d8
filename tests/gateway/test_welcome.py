"""A browser at the address that the gateway prints sees a page; programs get what SQS says."""

from __future__ import annotations

import re
import urllib.request

import pytest

from postroad import __version__
from postroad.gateway import health, metrics, rest, sqs
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.processes import get

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([health.routes, metrics.routes, rest.routes, sqs.routes], console=False)


def test_browser_is_told_what_runs_here_and_where_to_go_on(gateway: RunningGateway) -> None:
    status, text = get(gateway.url + "/", Accept=BROWSER)
    assert status == 200
    assert f"Version {__version__}" in text
    assert gateway.url in text, "the examples work as they are shown"
    links = re.findall(r'href="(/[^"]*)"', text)
    assert {"/docs", "/metrics", "/openapi.json"} <= set(links)
    for link in links:
        assert get(gateway.url + link)[0] == 200, link


def test_page_loads_and_runs_nothing(gateway: RunningGateway) -> None:
    request = urllib.request.Request(gateway.url + "/", headers={"Accept": BROWSER})
    with urllib.request.urlopen(request, timeout=60) as answer:
        text, policy = answer.read().decode(), answer.headers["Content-Security-Policy"]
    assert "default-src 'none'; style-src 'sha256-" in policy
    assert not re.search(r"<script|<img|<link|style=|url\(|@import| on\w+=", text)


def test_host_that_is_no_host_does_not_get_into_the_page(gateway: RunningGateway) -> None:
    status, text = get(gateway.url + "/", Accept=BROWSER, Host='127.0.0.1"><script>')
    assert "<script" not in text
    assert status in (200, 400)


@pytest.mark.parametrize(
    ("path", "accept"),
    [("/", ""), ("/", "*/*"), ("/?Action=", BROWSER)],
    ids=["nothing", "curl", "an action"],
)
def test_programs_get_what_sqs_says(gateway: RunningGateway, path: str, accept: str) -> None:
    status, text = get(gateway.url + path, Accept=accept)
    assert status == 400
    assert "MissingAction" in text


def test_action_in_a_browser_is_answered_as_one(gateway: RunningGateway) -> None:
    status, text = get(gateway.url + "/?Action=ListQueues", Accept=BROWSER)
    assert status == 200
    assert "ListQueuesResponse" in text
