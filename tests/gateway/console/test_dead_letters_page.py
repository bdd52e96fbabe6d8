"""Dead letters in a browser: by reason, edited and sent back, discarded, all sent back by rule."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.clients.wait import until
from tests.gateway.conftest import RunningGateway
from tests.gateway.console.conftest import api, commands
from tests.gateway.console.test_topic_page import opened


def dead(gateway: RunningGateway, name: str, *values: str) -> None:
    """A subscription all of whose messages were rejected, each with a letter."""
    api(gateway.url, "POST", "/v1/topics", {"name": name})
    api(gateway.url, "POST", "/v1/subscriptions", {"name": name, "topics": [name], "start": "earliest"})
    written = [{"value": value, "key": "k", "headers": {"source": "shop"}} for value in values]
    api(gateway.url, "POST", f"/v1/topics/{name}/messages", written)
    rejected = 0
    while rejected < len(values):
        held = receive(gateway, name)
        body = {"receipts": [each["receipt"] for each in held], "reason": "no such customer"}
        api(gateway.url, "POST", f"/v1/subscriptions/{name}/reject", body)
        rejected += len(held)
    until(lambda: len(letters(gateway, name)) == len(values), "the letters have arrived")


def receive(gateway: RunningGateway, name: str) -> list[Any]:
    body = {"max": 10, "wait_ms": 20_000, "lock_ms": 600_000}
    return list(api(gateway.url, "POST", f"/v1/subscriptions/{name}/receive", body)["messages"])


def letters(gateway: RunningGateway, name: str) -> list[Any]:
    return list(api(gateway.url, "GET", f"/v1/subscriptions/{name}/dead-letters")["letters"])


def test_a_letter_is_edited_and_sent_back_and_another_discarded(
    page: Page, gateway: RunningGateway, name: str
) -> None:
    dead(gateway, name, "<i>one</i>", "two")
    page.goto(f"/console/subscriptions/{name}/dead-letters")
    expect(page.locator("#reasons tbody tr")).to_contain_text("no such customer")
    row = page.locator("#letters tbody tr").filter(has_text="<i>one</i>")
    row.get_by_role("button", name="Send…").click()
    dialog = page.get_by_role("dialog", name=f"Send back to {name}")
    expect(dialog.get_by_label("Headers")).to_have_value("source=shop")
    dialog.get_by_label("Value", exact=True).fill("mended")
    dialog.get_by_role("button", name="Send back").click()
    expect(page.get_by_role("status").filter(has_text=f"Sent to {name}")).to_be_visible()
    expect(page.locator("#letters tbody tr")).to_have_count(1)
    again = receive(gateway, name)
    assert [(each["value"], each["key"]) for each in again] == [("mended", "k")]
    page.locator("#letters tbody tr").get_by_role("button", name="Discard…").click()
    page.get_by_role("dialog", name="Discard the letter").get_by_role("button", name="Discard").click()
    expect(page.get_by_role("status").filter(has_text="discarded")).to_be_visible()
    assert letters(gateway, name) == []


def test_letters_are_counted_and_then_sent_back(page: Page, gateway: RunningGateway, name: str) -> None:
    dead(gateway, name, "one", "two", "three")
    page.goto(f"/console/subscriptions/{name}/dead-letters")
    for counts_only in (True, False):
        dialog = opened(page, "Send back…", f"Send back dead letters of {name}")
        dialog.get_by_label("Reason").select_option("rejected")
        expect(dialog.get_by_label("Only count them")).to_be_checked()  # the harmless choice
        if not counts_only:
            dialog.get_by_label("Only count them").uncheck()
        dialog.get_by_role("button", name="Begin").click()
        expect(page.get_by_role("status").filter(has_text="has begun")).to_be_visible()
        rows = page.locator("#redrives tbody tr")
        expect(rows).to_have_count(1 if counts_only else 2)
        expect(rows.first).to_contain_text("completed")
        assert len(letters(gateway, name)) == (3 if counts_only else 0)
    assert {each["value"] for each in receive(gateway, name)} <= {"one", "two", "three"}


def test_chosen_letters_are_edited_at_once_and_the_rest_is_discarded(
    page: Page, gateway: RunningGateway, name: str
) -> None:
    dead(gateway, name, "bad <b>1</b>", "bad 2", "bad 3")
    page.goto(f"/console/subscriptions/{name}/dead-letters")
    for value in ("bad 2", "bad 3"):
        page.locator("#letters tbody tr").filter(has_text=value).get_by_role("checkbox").check()
    dialog = opened(page, "Send back…", f"Send back dead letters of {name}")
    expect(dialog.get_by_text("2 letters are ticked")).to_be_visible()
    dialog.get_by_text("Edit each before it goes").click()
    dialog.get_by_label("In the value find").fill("bad")
    dialog.get_by_label("and put in its place").fill("mended")
    dialog.get_by_role("button", name="As a command").click()
    expect(dialog.locator("pre")).to_contain_text('"find": "bad"')
    dialog.get_by_label("Only count them").uncheck()
    dialog.get_by_role("button", name="Begin").click()
    rows = page.locator("#redrives tbody tr")
    expect(rows.first).to_contain_text("completed")
    until(lambda: len(letters(gateway, name)) == 1, "two have gone")
    got: set[str] = set()
    while len(got) < 2:
        got |= {each["value"] for each in receive(gateway, name)}
    assert got == {"mended 2", "mended 3"}

    page.reload()
    page.get_by_role("button", name="Choose all of these").click()
    dialog = opened(page, "Send back…", f"Send back dead letters of {name}")
    expect(dialog.get_by_text("1 letter is ticked")).to_be_visible()
    dialog.get_by_label("What to do").select_option("discard")
    dialog.get_by_label("Only count them").uncheck()
    dialog.get_by_role("button", name="Begin").click()
    expect(dialog.get_by_text("Discards 1 letter: of the 1 letter that are here now")).to_be_visible()
    assert len(letters(gateway, name)) == 1, "it is looked over first"
    dialog.get_by_role("button", name="Discard them").click()
    expect(rows).to_have_count(2)
    until(lambda: letters(gateway, name) == [], "it is discarded")


def test_a_slow_redrive_is_watched_and_cancelled(page: Page, gateway: RunningGateway, name: str) -> None:
    dead(gateway, name, "one", "two", "three")
    page.goto(f"/console/subscriptions/{name}/dead-letters")
    dialog = opened(page, "Send back…", f"Send back dead letters of {name}")
    dialog.get_by_label("Letters a second").fill("0.1")
    dialog.get_by_label("Only count them").uncheck()
    dialog.get_by_role("button", name="As a command").click()
    cli, _ = commands(dialog)
    assert cli == f"postroad redrive {name} --rate 0.1"
    dialog.get_by_role("button", name="Begin").click()
    row = page.locator("#redrives tbody tr").first
    expect(row).to_contain_text("running")
    row.get_by_role("button", name="Cancel").click()
    expect(row).to_contain_text("cancelled")
    assert len(letters(gateway, name)) == 2, "one was on its way"
