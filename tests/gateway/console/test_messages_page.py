"""Messages in a browser: found, filtered, followed, whatever is in them, published again, taken along."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Page, expect

from postroad.config.sections import Console
from postroad.gateway.dialects import DIALECTS
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.console.conftest import api, live
from tests.gateway.console.test_shell import ask

HOSTILE = '<script>document.title="taken"</script><img src=x onerror="document.title=1"><hx-partial>'
BIDI = "invoice\u202efdp.exe"


def published(gateway: RunningGateway, name: str, *messages: Any) -> None:
    """In a topic of this name, which the first one makes."""
    for start in range(0, len(messages), 1000):
        api(gateway.url, "POST", f"/v1/topics/{name}/messages", messages[start : start + 1000])


def raw(data: bytes) -> dict[str, Any]:
    return {"value": {"base64": base64.b64encode(data).decode()}}


def test_hostile_payloads_are_text(page: Page, gateway: RunningGateway, name: str) -> None:
    published(
        gateway, name, {"value": HOSTILE, "key": HOSTILE, "headers": {HOSTILE: HOSTILE}}, {"value": BIDI},
        raw(b"\xff\xfe\x00"), raw(b"\x82\xa1a\x01\xa1b\x93\x01\x02\x03"), {"value": "x" * 900_000},
    )  # fmt: skip
    page.goto(f"/console/topics/{name}/messages?begin=beginning")
    expect(page.locator("#rows tr")).to_have_count(5)
    expect(page.locator("#rows tr").first).to_contain_text(HOSTILE[:40])
    for offset, shown in enumerate([HOSTILE, "U+202E", "ff fe 00", '"b": [', "Only the beginning is shown"]):
        page.get_by_role("link", name=str(offset), exact=True).click()
        expect(page.locator("#detail dd").filter(has_text=re.compile(f"^{offset}$"))).not_to_have_count(0)
        expect(page.locator("#detail")).to_contain_text(shown)
    assert page.title() == f"Messages of {name} · Postroad"
    assert page.locator("main script, main img").count() == 0


def test_a_filter_finds_and_what_is_wrong_with_one_is_told(
    page: Page, gateway: RunningGateway, name: str
) -> None:
    published(gateway, name, *({"value": json.dumps({"total": each})} for each in range(300)))
    page.goto(f"/console/topics/{name}/messages?begin=beginning")
    page.get_by_label("Filter").fill("value.total >= 297")
    page.get_by_role("button", name="Look").click()
    expect(page.locator("#rows tr")).to_have_count(3)
    expect(page.locator("#progress")).to_contain_text("Looked at 300 messages, found 3")
    page.get_by_label("Filter").fill("value.total >=")
    page.get_by_role("button", name="Look").click()
    expect(page.get_by_role("alert")).to_contain_text("filter")
    expect(page.get_by_label("Filter")).to_have_value("value.total >=")


def test_a_search_goes_on_by_itself_and_keeps_what_it_has_found(
    page: Page, gateway: RunningGateway, name: str
) -> None:
    """A page of answers ends with some 4 MB, here with less than half of what fits."""
    for _ in range(12):
        published(gateway, name, {"key": "k", "value": "x" * 900_000})
    where = f"/console/topics/{name}/messages?begin=beginning&filter=key+%3D+%22k%22"
    page.goto(where)
    expect(page.locator("#rows tr")).to_have_count(12)
    assert page.url.endswith(where), "another page was loaded in its place"


def test_a_long_list_is_continued_where_it_stopped(page: Page, gateway: RunningGateway, name: str) -> None:
    published(gateway, name, *({"value": str(each)} for each in range(120)))
    page.goto(f"/console/topics/{name}/messages?begin=beginning&limit=50")
    expect(page.locator("#rows tr")).to_have_count(50)
    page.get_by_role("link", name="Continue").click()
    expect(page.locator("#rows tr")).to_have_count(100)
    page.get_by_role("link", name="Continue").click()
    expect(page.locator("#rows tr")).to_have_count(120)
    expect(page.locator("#progress")).to_contain_text("120 messages: that is the end.")
    assert page.locator("#rows tr td:nth-child(3)").all_text_contents() == [str(each) for each in range(120)]


def test_what_is_written_appears_until_the_reader_pauses(
    page: Page, gateway: RunningGateway, name: str
) -> None:
    published(gateway, name, {"value": "first"})
    page.goto(f"/console/topics/{name}/messages")
    page.keyboard.press("l")
    page.wait_for_url("**follow=yes")
    live(page)
    api(gateway.url, "POST", f"/v1/topics/{name}/messages", {"value": "second"})
    expect(page.locator("#messages tbody tr").first).to_contain_text("second")
    page.keyboard.press("p")
    expect(page.get_by_role("button", name="Go on")).to_be_visible()
    api(gateway.url, "POST", f"/v1/topics/{name}/messages", {"value": "third"})
    expect(page.locator("#messages tbody")).not_to_contain_text("third")
    page.keyboard.press("p")
    api(gateway.url, "POST", f"/v1/topics/{name}/messages", {"value": "fourth"})
    expect(page.locator("#messages tbody")).to_contain_text("fourth")


def test_a_message_is_published_again_edited(page: Page, gateway: RunningGateway, name: str) -> None:
    published(gateway, name, {"value": "before", "key": "k", "headers": {"a": "b"}})
    page.goto(f"/console/topics/{name}/messages")
    page.get_by_role("link", name="0", exact=True).click()
    page.get_by_role("link", name="Publish again…").click()
    page.wait_for_url(f"**/console/topics/{name}/messages/0/0")
    page.get_by_role("button", name="Publish again…").click()
    dialog = page.get_by_role("dialog", name=f"Publish to {name}")
    dialog.get_by_label("Value", exact=True).fill("after")
    dialog.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="offset 1")).to_be_visible()
    second = api(gateway.url, "GET", f"/v1/topics/{name}/messages?from=beginning")["messages"][1]
    assert (second["value"], second["key"], second["headers"]) == ("after", "k", [["a", "b"]])


def test_where_a_message_is_in_each_subscription(page: Page, gateway: RunningGateway, name: str) -> None:
    api(gateway.url, "POST", "/v1/topics", {"name": name})
    api(gateway.url, "POST", "/v1/subscriptions", {"name": name, "topics": [name]})
    published(gateway, name, {"value": "held"})
    api(gateway.url, "POST", f"/v1/subscriptions/{name}/receive", {"wait_ms": 20_000, "lock_ms": 600_000})
    page.goto(f"/console/topics/{name}/messages/0/0")
    page.get_by_role("link", name="Where is it?").click()
    expect(page.locator("#where")).to_contain_text("in flight")
    expect(page.locator("#where")).to_contain_text("held until")


def test_a_search_is_taken_along_as_a_file(gateway: RunningGateway, name: str) -> None:
    published(gateway, name, *({"value": f"=1+{each}", "key": str(each % 2)} for each in range(1500)))
    _, text = ask(gateway, f"/console/topics/{name}/messages.ndjson?begin=beginning")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["offset"] for line in lines] == list(range(1500))
    filtered = quote('key = "1"')
    response, text = ask(gateway, f"/console/topics/{name}/messages.csv?begin=beginning&filter={filtered}")
    assert "attachment" in response.headers["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 750
    assert rows[0]["value"] == "'=1+1", "a spreadsheet calculates nothing"
    assert ask(gateway, f"/console/topics/{name}/messages.csv?filter=)")[0].status == 400


def test_hidden_payloads_are_nowhere(start_gateway: StartGateway, name: str) -> None:
    running = start_gateway(DIALECTS, console_settings=Console(payloads="hide"))
    published(running, name, {"value": "a secret", "key": "a secret", "headers": {"h": "a secret"}})
    api(running.url, "POST", "/v1/subscriptions", {"name": name, "topics": [name], "start": "earliest"})
    for path in (f"topics/{name}/messages", f"topics/{name}/messages/0/0", f"subscriptions/{name}"):
        response, text = ask(running, f"/console/{path}")
        assert response.status == 200
        assert "secret" not in text
    assert ask(running, f"/console/topics/{name}/messages.csv")[0].status == 422


def test_a_read_only_console_has_no_buttons_and_does_nothing(start_gateway: StartGateway, name: str) -> None:
    running = start_gateway(DIALECTS, console_settings=Console(read_only=True))
    published(running, name, {"value": "x"})
    response, text = ask(running, f"/console/topics/{name}")
    assert 'method="post"' not in text
    cookie = response.headers["Set-Cookie"].partition(";")[0]
    assert "read-only" in text
    _, text = ask(running, f"/console/topics/{name}", "POST", "do=delete", Cookie=cookie)
    assert "earlier session" in text or "read-only" in text
    assert api(running.url, "GET", f"/v1/topics/{name}")["name"] == name
