"""Topics in a browser: found, created, deleted, with what each form would do as a command."""

from __future__ import annotations

import shlex
import subprocess

from confluent_kafka.admin import AdminClient
from playwright.sync_api import Page, expect

from tests.clients.wait import until
from tests.gateway.conftest import RunningGateway
from tests.gateway.console.conftest import api, live


def topics(gateway: RunningGateway) -> set[str]:
    """As a stock client sees them."""
    admin = AdminClient({"bootstrap.servers": gateway.bootstrap})
    return set(admin.list_topics(timeout=30).topics)


def test_a_topic_is_created_and_deleted(page: Page, gateway: RunningGateway, name: str) -> None:
    page.goto("/console/topics")
    page.get_by_role("button", name="Create a topic…").click()
    dialog = page.get_by_role("dialog", name="Create a topic")
    dialog.get_by_label("Name").fill(name)
    dialog.get_by_label("Partitions").fill("3")
    dialog.get_by_label("Configs").fill("retention.ms=3600000")
    dialog.get_by_role("button", name="Create", exact=True).click()
    page.wait_for_url(f"**/console/topics/{name}")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    assert name in topics(gateway)
    found = api(gateway.url, "GET", f"/v1/topics/{name}")
    assert (len(found["partitions"]), found["configs"]["retention.ms"]) == (3, "3600000")

    page.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog", name=f"Delete {name}")
    dialog.get_by_label("to confirm").fill("another")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text(name)
    assert name in topics(gateway)
    dialog.get_by_label("to confirm").fill(name)
    dialog.get_by_role("button", name="Delete", exact=True).click()
    page.wait_for_url("**/console/topics")
    until(lambda: name not in topics(gateway), "the topic is gone")


def test_what_fails_is_told_in_the_form_and_what_was_typed_stays(page: Page, name: str) -> None:
    page.goto("/console/topics")
    page.get_by_role("button", name="Create a topic…").click()
    dialog = page.get_by_role("dialog", name="Create a topic")
    dialog.get_by_label("Name").fill(name)
    dialog.get_by_label("Configs").fill("retention.ms=soon")
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("retention.ms")
    expect(dialog.get_by_label("Name")).to_have_value(name)
    expect(dialog.get_by_label("Configs")).to_have_value("retention.ms=soon")


def test_a_form_shows_itself_as_commands_that_do_the_same(
    page: Page, gateway: RunningGateway, name: str
) -> None:
    page.goto("/console/topics")
    page.get_by_role("button", name="Create a topic…").click()
    dialog = page.get_by_role("dialog", name="Create a topic")
    dialog.get_by_label("Name").fill(name)
    dialog.get_by_role("button", name="As a command").click()
    expect(dialog.locator("pre")).to_have_count(2)
    cli, curl = dialog.locator("pre").all_text_contents()
    assert cli == f"postroad topic create {name}"
    assert name not in topics(gateway), "it was only shown"
    subprocess.run([*shlex.split(curl), "--fail", "--silent"], check=True, timeout=60, capture_output=True)
    assert name in topics(gateway)


def test_a_new_topic_appears_on_an_open_page(page: Page, gateway: RunningGateway, name: str) -> None:
    page.goto(f"/console/topics?prefix={name}")
    expect(page.get_by_text("No topic's name begins so.")).to_be_visible()
    live(page)
    page.get_by_role("searchbox").fill("typing")
    api(gateway.url, "POST", "/v1/topics", {"name": name})
    expect(page.get_by_role("link", name=name)).to_be_visible()
    expect(page.get_by_role("searchbox")).to_have_value("typing")
    expect(page.get_by_role("searchbox")).to_be_focused()


def test_pages_are_reached_by_keys(page: Page, gateway: RunningGateway, name: str) -> None:
    api(gateway.url, "POST", "/v1/topics", {"name": name})
    page.goto("/console")
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/console/topics")
    page.keyboard.press("/")
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/console/topics?prefix={name}*")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/console/topics/{name}")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
