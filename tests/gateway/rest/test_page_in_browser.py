"""The page at /docs in a real browser: used by keyboard alone, on small screens, in both colour schemes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from postroad.gateway import rest
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.rest import browser
from tests.gateway.rest.browser import CTRL, Browser

UNLABELLED = """
[...document.querySelectorAll("input, select, textarea")]
  .filter((field) => !field.labels.length && field.type !== "hidden").map((field) => field.id)
"""
TOO_WIDE = """
[...document.querySelectorAll("body *")]
  .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
  .map((each) => each.outerHTML.slice(0, 99))
"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    path = browser.program()
    if path is None:
        pytest.skip("there is no Chromium here; on Debian tools/debian-packages installs it")
    with browser.started(path, tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture
def page(chromium: Browser, gateway: RunningGateway) -> Browser:
    chromium.open("about:blank")
    chromium.events.clear()
    chromium.look(1200, 900, "light")
    opened(chromium, gateway.url)
    return chromium


def opened(chromium: Browser, url: str, place: str = "") -> None:
    chromium.open("about:blank")
    chromium.open(f"{url}/docs{place}")
    chromium.wait_for("document.querySelectorAll('#operations form').length > 20")


def unfold(page: Browser, operation: str) -> None:
    page.focus(f"#{operation} > summary")
    page.enter()
    page.wait_for(f"document.querySelector('#{operation}').open")


def unfold_around(page: Browser, field: str) -> None:
    """Open what the field is folded in: an operation's options."""
    folded = f"document.querySelector('{field}').closest('details:not([open])')"
    if page.run(f"{folded} !== null"):
        page.run(f"{folded}.querySelector('summary').focus()")
        page.enter()
        page.wait_for(f"{folded} === null")


def send(page: Browser, operation: str, body: Any = None, **fields: str) -> tuple[str, Any]:
    """Send an operation's form by keyboard; returns the status line and the answer's JSON."""
    unfold(page, operation)
    for name, text in fields.items():
        unfold_around(page, f"#{operation}\\\\.{name}")
        page.write(f"#{operation}\\.{name}", text)
    if body is not None:
        page.write(f"#{operation}\\.body", body if isinstance(body, str) else json.dumps(body))
    page.run(f"document.querySelector('#{operation} .answer').replaceChildren()")
    has_body = page.run(f"!!document.querySelector('#{operation} textarea')")
    page.focus(f"#{operation} textarea" if has_body else f"#{operation} button")
    page.enter(CTRL if has_body else 0)
    page.wait_for(f"document.querySelector('#{operation} .answer > details')")
    status = page.run(f"document.querySelector('#{operation} [role=status]').textContent")
    text = page.run(f"document.querySelector('#{operation} .answer > pre')?.textContent")
    return status, json.loads(text) if text else None


def test_a_message_goes_its_way_by_forms_alone(page: Browser, gateway: RunningGateway, name: str) -> None:
    assert send(page, "create_topic", {"name": name})[0].startswith("201 Created")
    status, topics = send(page, "list_topics", prefix=name)
    assert status.startswith("200 OK")
    assert name in {topic["name"] for topic in topics["topics"]}
    wanted = {"name": name, "topics": [name], "start": "earliest"}
    assert send(page, "create_subscription", wanted)[0].startswith("201")
    assert send(page, "publish", {"value": "<b>täxt</b>"}, topic=name)[0].startswith("201")
    _, received = send(page, "receive", {"wait_ms": 5000}, subscription=name)
    assert [message["value"] for message in received["messages"]] == ["<b>täxt</b>"]
    # The subscription's name and the receipt have found their way into the next form.
    status, settled = send(page, "acknowledge")
    assert (status[:3], settled["results"][0]["done"]) == ("200", True)
    assert page.hosts == {gateway.url.removeprefix("http://")}
    assert page.complaints == []


def test_problems_are_told_and_explained(page: Browser, gateway: RunningGateway) -> None:
    status, problem = send(page, "get_topic", topic="no-such-topic")
    assert status.startswith("404")
    assert page.run("document.querySelector('#get_topic .bad') !== null")
    opened(page, gateway.url, problem["type"].removeprefix("/docs"))
    page.wait_for("document.querySelector('.found')")
    assert page.run("document.querySelector('.found').textContent") == "404 not-found"
    page.wait_for("document.querySelector('.found').getBoundingClientRect().top < innerHeight")


def test_a_command_for_the_terminal_quotes_what_was_typed(page: Browser) -> None:
    send(page, "publish", {"value": "it's"}, topic="a b")
    command = page.run("document.querySelector('#publish .answer > details pre').textContent")
    assert "/v1/topics/a%20b/messages'" in command
    assert "it'\\''s" in command


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_fits_on_a_phone(page: Browser, scheme: str) -> None:
    page.look(390, 844, scheme)
    page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.run(TOO_WIDE) == []
    shades = page.run("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")
    light_on_dark = sum(map(int, shades[0][4:-1].split(","))) > sum(map(int, shades[1][4:-1].split(",")))
    assert light_on_dark == (scheme == "dark")


def test_every_field_has_a_label(page: Browser) -> None:
    assert page.run(UNLABELLED) == []


def test_a_key_is_asked_for_where_one_is_needed(page: Browser, start_gateway: StartGateway) -> None:
    assert page.run("document.querySelector('#access').hidden")
    opened(page, start_gateway([rest.routes], access_keys="id:secret").url)
    assert send(page, "list_topics")[0].startswith("401")
    assert not page.run("document.querySelector('#access').hidden")
    page.write("#key", "id:secret")
    page.run("document.querySelector('#list_topics').open = false")
    assert send(page, "list_topics")[0].startswith("200")
    assert "secret" not in page.run("document.querySelector('#list_topics .answer').textContent")
