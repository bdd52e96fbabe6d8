"""Every page for everybody: axe-core finds nothing, in both schemes, on a desk and on a phone."""

from __future__ import annotations

import json
import urllib.request

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from postroad.client import groups
from postroad.client.metadata import TopicPartition
from tests.gateway.conftest import RunningGateway
from tests.gateway.console.conftest import NewContext, Watch, api

SIZES = {"desk": (1280, 900), "phone": (390, 844)}
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
}
TOO_WIDE = """
(document.documentElement.scrollWidth > innerWidth ? ["the page scrolls sideways"] : [])
  .concat([...document.querySelectorAll("body *")]
  .filter((each) => !each.closest(".scroll, [popover], .skip"))
  .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
  .map((each) => each.outerHTML.slice(0, 99)))
"""

OPEN_ALL = """
for (const each of document.querySelectorAll("[popover]")) { each.popover = "manual"; each.showPopover(); }
"""

OTHERS = ["/console/groups", "/console/groups/seen-group", "/console/cluster", "/console/access"]
SEEN = "seen-topic"
PATHS = [
    "/console",
    "/console/topics",
    f"/console/topics/{SEEN}",
    f"/console/topics/{SEEN}/messages",
    f"/console/topics/{SEEN}/messages/0/0",
    "/console/subscriptions",
    f"/console/subscriptions/{SEEN}",
    f"/console/subscriptions/{SEEN}/dead-letters",
    f"/console/subscriptions/{SEEN}/webhook",
    "/console/topics/no-such-topic",
    *OTHERS,
]


@pytest.fixture(scope="module")
def filled(gateway: RunningGateway) -> RunningGateway:
    """A gateway with something of everything."""
    api(gateway.url, "POST", "/v1/topics", {"name": SEEN, "partitions": 2})
    api(gateway.url, "POST", "/v1/subscriptions", {"name": SEEN, "topics": [SEEN], "attempts": 1})
    written = [{"value": '{"a": 1}', "key": "k", "headers": {"h": "v"}, "partition": 0} for _ in range(5)]
    api(gateway.url, "POST", f"/v1/topics/{SEEN}/messages", written)
    held = api(gateway.url, "POST", f"/v1/subscriptions/{SEEN}/receive", {"max": 2, "wait_ms": 20_000})
    receipts = [message["receipt"] for message in held["messages"][:1]]
    api(gateway.url, "POST", f"/v1/subscriptions/{SEEN}/reject", {"receipts": receipts, "reason": "no"})
    gateway.run(groups.commit(gateway.gateway.client, "seen-group", {TopicPartition(SEEN, 0): 0}))
    return gateway


def violations(page: Page) -> list[str]:
    # Scripts come by the browser's own protocol: the page's policy lets in none of elsewhere.
    found = Axe().run(page, options=RULES).response["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


@pytest.mark.parametrize(
    ("scheme", "size"),
    [
        ("light", "desk"),
        ("dark", "phone"),
        pytest.param("light", "phone", marks=pytest.mark.cluster_slow),
        pytest.param("dark", "desk", marks=pytest.mark.cluster_slow),
    ],
)
def test_axe_finds_nothing(
    context: NewContext, filled: RunningGateway, watch: Watch, scheme: str, size: str
) -> None:
    watch.allowed = ["404"]  # one of the pages says that there is nothing
    width, height = SIZES[size]
    page = context(
        base_url=filled.url, color_scheme=scheme, viewport={"width": width, "height": height}
    ).new_page()
    found = {}
    for path in PATHS:
        page.goto(path)
        found[path] = violations(page) + page.evaluate(TOO_WIDE)
    assert found == {path: [] for path in PATHS}


@pytest.mark.parametrize(
    "path",
    ["/console/topics", *(pytest.param(path, marks=pytest.mark.cluster_slow) for path in PATHS[2:])],
)
def test_open_dialogs_are_as_accessible(page: Page, filled: RunningGateway, watch: Watch, path: str) -> None:
    """All of a page at once."""
    watch.allowed = ["404"]
    page.goto(path)
    page.evaluate(OPEN_ALL)
    assert violations(page) == []


def test_login_page(context: NewContext, filled: RunningGateway) -> None:
    page = context(base_url=filled.url).new_page()
    page.goto("/console/login")
    assert violations(page) == []


def test_openapi_describes_what_the_console_asks(filled: RunningGateway) -> None:
    with urllib.request.urlopen(f"{filled.url}/openapi.json", timeout=60) as answer:
        paths = json.load(answer)["paths"]
    assert {"/v1/history", "/v1/figures"} <= set(paths)
