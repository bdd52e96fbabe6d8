"""A browser for all tests of this directory, and a gateway with everything in front of the session's node.

Playwright's loop takes the thread for itself, so it must be gone before other tests run: the browser belongs
to this package, and no test here is a coroutine. Whatever a test does, its pages ask no other host for
anything and complain about nothing.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    expect,
    sync_playwright,
)

from postroad.gateway.dialects import CONTEXTS, DIALECTS
from postroad.testing import Node
from tests.gateway.conftest import RunningGateway, gateway_in_thread
from tests.gateway.rest import browser as programs

PATIENCE_MS = 20_000.0  # far above what anything here takes; it only bounds a failure
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    path = programs.program()
    if path is None:
        pytest.skip("there is no Chromium here; on Debian tools/debian-packages installs it")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="package")
def gateway(broker: Node) -> Iterator[RunningGateway]:
    with gateway_in_thread(broker.bootstrap, DIALECTS, contexts=CONTEXTS) as running:
        yield running


class Watch:
    """What pages ask for and complain about."""

    def __init__(self) -> None:
        self.hosts: set[str] = set()
        self.complaints: list[str] = []
        self.allowed: list[str] = []  # parts of complaints that a test expects

    def add(self, page: Page) -> None:
        page.set_default_timeout(PATIENCE_MS)
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    @property
    def unexpected(self) -> list[str]:
        return [text for text in self.complaints if not any(part in text for part in self.allowed)]


@pytest.fixture
def watch() -> Watch:
    return Watch()


NewContext = Callable[..., BrowserContext]


@pytest.fixture
def context(chromium: Browser, watch: Watch) -> Iterator[NewContext]:
    """Any number of browsers without a past: `context(color_scheme="dark")`."""
    made: list[BrowserContext] = []

    def make(**options: Any) -> BrowserContext:
        new = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        new.on("page", watch.add)
        made.append(new)
        return new

    yield make
    for each in made:
        each.close()
    assert watch.unexpected == []
    assert {host.partition(":")[0] for host in watch.hosts} <= {"127.0.0.1", ""}


@pytest.fixture
def page(context: NewContext, gateway: RunningGateway) -> Page:
    return context(base_url=gateway.url).new_page()


def api(url: str, method: str, path: str, body: Any = None) -> Any:
    """What REST answers."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} if data is not None else {}
    request = urllib.request.Request(url + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def live(page: Page) -> None:
    """Wait until the page follows what happens."""
    expect(page.locator("html")).to_have_attribute("data-live", re.compile(r"\d"))


def commands(dialog: Locator) -> list[str]:
    """What a form would do, as `postroad` and as curl, once it shows them."""
    expect(dialog.locator("pre")).to_have_count(2)
    return dialog.locator("pre").all_text_contents()
