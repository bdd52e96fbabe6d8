"""Pages that stay open: over a restart of their gateway, and with something to look at on the first one."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import ExitStack

import aiohttp
import pytest
from confluent_kafka import TopicPartition
from playwright.sync_api import Page, Route, expect

from postroad.gateway.console.live import STREAMS_MAX, TOO_MANY
from postroad.gateway.console.pages import PAGES
from postroad.gateway.dialects import DIALECTS
from postroad.gateway.history.reading import Reading
from postroad.testing import Node
from tests.clients.wait import until_async
from tests.gateway.conftest import RunningGateway, gateway_in_thread
from tests.gateway.console.conftest import NewContext, Watch, api, live
from tests.gateway.console.proxy import Proxy
from tests.gateway.console.test_every_page import address
from tests.gateway.rest.test_group_changes import commit


def test_a_page_outlives_a_restart_of_its_gateway(
    context: NewContext, watch: Watch, broker: Node, name: str
) -> None:
    """Seen from the browser: the address stays, and behind it another gateway answers."""
    watch.allowed = ["ERR_", "502", "htmx"]
    with Proxy() as proxy:
        page = context(base_url=proxy.url).new_page()
        with gateway_in_thread(broker.bootstrap, DIALECTS, url=proxy.url) as first:
            proxy.leads_to(first.url)
            page.goto(f"/console/topics?prefix={name}")
            live(page)
            page.get_by_role("searchbox").fill("typed")
        expect(page.locator("#lost")).to_be_visible()
        with gateway_in_thread(broker.bootstrap, DIALECTS, url=proxy.url) as second:
            proxy.leads_to(second.url)
            api(second.url, "POST", "/v1/topics", {"name": name})
            expect(page.get_by_role("link", name=name)).to_be_visible()
            expect(page.locator("#lost")).to_be_hidden()
            expect(page.get_by_role("searchbox")).to_have_value("typed")
            proxy.leads_to("")


STALE = """
() => {
  const shown = document.querySelector("#main .figure dd, #main .scroll[id] tbody td, #main #hook");
  if (shown) shown.textContent = "stale";
  document.title = "kept";
}
"""


@pytest.mark.cluster_slow
def test_every_page_outlives_a_restart_of_its_gateway(
    context: NewContext, watch: Watch, broker: Node, name: str
) -> None:
    """All open at once, each at an address of its own: a browser keeps six connections to one address."""
    watch.allowed = ["ERR_", "502", "htmx"]
    live_pages = [page for page in PAGES if page.is_live and "{user}" not in page.path]  # there are no users
    paths = [address(page.path, name, f"{name}-group", name) for page in live_pages]
    paths.append(f"/console/topics/{name}/messages?follow=yes")
    browser = context()
    with ExitStack() as stack:
        proxies = [stack.enter_context(Proxy()) for _ in paths]
        pages = [browser.new_page() for _ in paths]
        with gateway_in_thread(broker.bootstrap, DIALECTS) as first:
            api(first.url, "POST", "/v1/topics", {"name": name})
            api(first.url, "POST", "/v1/subscriptions", {"name": name, "topics": [name]})
            api(first.url, "POST", f"/v1/topics/{name}/messages", {"value": "before"})
            commit(first, f"{name}-group", TopicPartition(name, 0, 0))
            for proxy, page, path in zip(proxies, pages, paths, strict=True):
                proxy.leads_to(first.url)
                page.goto(proxy.url + path)
                if page.locator("#live").count():
                    live(page)
                page.evaluate(STALE)
        followed = [page for page in pages if page.locator("#live").count()]
        still = [path for path, page in zip(paths, pages, strict=True) if page not in followed]
        assert still == [f"/console/topics/{name}/messages"], "messages that nobody follows"
        for page in followed:
            expect(page.locator("#lost")).to_be_visible()
        with gateway_in_thread(broker.bootstrap, DIALECTS) as second:
            for proxy in proxies:
                proxy.leads_to(second.url)
            for page in followed:
                expect(page.locator("#lost")).to_be_hidden()
                expect(page.get_by_text("stale", exact=True)).to_have_count(0)
                assert page.title() == "kept", "it was not loaded anew"
            for proxy in proxies:
                proxy.leads_to("")


def sampled(gateway: RunningGateway, name: str, lag: float) -> Reading:
    values = {"lag": lag, "lag_seconds": 7200.0, "in_flight": 0.0, "delivered": 0.0}
    return Reading({}, {name: values}, {}, {"1": {"partitions_under_replicated": 3.0}}, {})


def test_what_needs_a_look_leads_to_its_remedy(broker: Node, context: NewContext, name: str) -> None:
    with gateway_in_thread(broker.bootstrap, DIALECTS) as running:  # it takes no samples of its own
        history = running.gateway.history
        page: Page = context(base_url=running.url).new_page()
        page.goto("/console")
        expect(page.get_by_text("as far as can be seen all is well")).to_be_visible()
        for step in range(2):
            now_s = time.time() + 5 * step
            running.loop.call_soon_threadsafe(history.take, sampled(running, name, 4711), now_s, 5.0 * step)
        expect(page.locator("#findings")).to_contain_text("3 partitions lack replicas")
        row = page.locator("#findings tr").filter(has_text=name)
        expect(row).to_contain_text("messages wait")
        expect(row.get_by_role("link", name=name)).to_have_attribute("href", f"/console/subscriptions/{name}")


def test_there_is_an_end_to_pages_that_are_followed(gateway: RunningGateway) -> None:
    """A request beyond the bound is refused; one that leaves makes room."""

    async def follow() -> bytes:
        url = f"{gateway.url}/console/topics?prefix=nothing&live=1"
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            followed = [await session.get(url) for _ in range(STREAMS_MAX)]
            async with session.get(url) as one_more:
                refused = await one_more.read()
            for each in followed:
                each.close()

            async def is_let_in() -> bool:
                async with session.get(url) as again:
                    return await again.content.readline() != TOO_MANY.splitlines(keepends=True)[0]

            await until_async(is_let_in, "those that left have made room")
            return refused

    outcome: list[bytes] = []
    thread = threading.Thread(target=lambda: outcome.append(asyncio.run(follow())))
    thread.start()  # Playwright has this thread's loop
    thread.join(60)
    assert outcome == [TOO_MANY]


def test_a_page_is_live_however_slowly_its_scripts_come(page: Page) -> None:
    """A browser runs each script as soon as it has it: what htmx needs must be there when it begins."""

    def slowly(route: Route) -> None:
        time.sleep(0.2)  # not waited for: it is what a slow network does
        route.continue_()

    page.route("**/static/*.js?*", slowly)
    page.goto("/console")
    live(page)
