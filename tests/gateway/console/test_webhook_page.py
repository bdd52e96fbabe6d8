"""A web hook in a browser: set up, tried, given another secret, paused, taken away."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page, expect

from postroad.gateway.dialects import CONTEXTS, DIALECTS
from postroad.testing import Node
from tests.gateway.conftest import RunningGateway, gateway_in_thread
from tests.gateway.console.conftest import NewContext, api
from tests.gateway.console.test_topic_page import opened


class Endpoint(BaseHTTPRequestHandler):
    """Echoes challenges, and takes everything else."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        said = b"taken"
        if b"postroad.webhook.challenge" in body:
            said = str(json.loads(body)["challenge"]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the library's name
        pass


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/hook"
    server.shutdown()
    server.server_close()
    thread.join(30)


@pytest.fixture(scope="module")
def hooking(broker: Node) -> Iterator[RunningGateway]:
    """A gateway that may send to this machine."""
    with gateway_in_thread(broker.bootstrap, DIALECTS, contexts=CONTEXTS, webhooks_private=True) as running:
        yield running


def test_a_web_hook_is_set_up_and_steered(
    context: NewContext, hooking: RunningGateway, endpoint: str, name: str
) -> None:
    api(hooking.url, "POST", "/v1/topics", {"name": name})
    api(hooking.url, "POST", "/v1/subscriptions", {"name": name, "topics": [name], "start": "earliest"})
    page: Page = context(base_url=hooking.url).new_page()
    page.goto(f"/console/subscriptions/{name}/webhook")
    dialog = opened(page, "Set up a web hook…", f"Web hook of {name}")
    dialog.get_by_label("URL").fill(endpoint)
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator("#secret")).to_contain_text("whsec_")
    secret = page.locator("#secret").text_content()
    api(hooking.url, "POST", f"/v1/topics/{name}/messages", {"value": "hello"})
    expect(page.locator("#deliveries tbody tr")).to_contain_text("HTTP 200")
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="answered the test with HTTP 200")).to_be_visible()
    dialog = opened(page, "New secret…", "Give it a new secret")
    dialog.get_by_role("button", name="Make a new secret").click()
    expect(page.locator("#secret")).not_to_have_text(secret or "")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("status").filter(has_text="Paused")).to_be_visible()
    assert api(hooking.url, "GET", f"/v1/subscriptions/{name}/webhook")["enabled"] is False
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_role("status").filter(has_text="echoed the challenge")).to_be_visible()
    dialog = opened(page, "Delete…", "Delete the web hook")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("button", name="Set up a web hook…")).to_be_visible()
