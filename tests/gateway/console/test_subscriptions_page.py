"""Subscriptions in a browser: created, watched, moved, purged, changed, deleted."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient
from playwright.sync_api import Page, expect

from tests.clients.wait import until
from tests.gateway.conftest import RunningGateway
from tests.gateway.console.conftest import api, live
from tests.gateway.console.test_topic_page import opened


def waiting(gateway: RunningGateway, name: str, count: int = 10) -> None:
    """A topic and a subscription of one name, with messages that nobody has received."""
    api(gateway.url, "POST", "/v1/topics", {"name": name})
    api(gateway.url, "POST", "/v1/subscriptions", {"name": name, "topics": [name], "start": "earliest"})
    api(gateway.url, "POST", f"/v1/topics/{name}/messages", [{"value": str(each)} for each in range(count)])


def counts(gateway: RunningGateway, name: str) -> dict[str, int]:
    found: dict[str, int] = api(gateway.url, "GET", f"/v1/subscriptions/{name}")["counts"]
    return found


def groups(gateway: RunningGateway) -> set[str]:
    """As a stock client sees them."""
    admin = AdminClient({"bootstrap.servers": gateway.bootstrap})
    return {group.group_id for group in admin.list_consumer_groups().result(30).valid}


def test_a_subscription_is_created_from_a_preset_and_deleted(
    page: Page, gateway: RunningGateway, name: str
) -> None:
    api(gateway.url, "POST", "/v1/topics", {"name": name})
    page.goto("/console/subscriptions")
    dialog = opened(page, "Create a subscription…", "Create a subscription")
    dialog.get_by_label("Name").fill(name)
    dialog.get_by_label("Topics").fill(name)
    dialog.get_by_label("It is for").select_option("fifo")
    dialog.get_by_label("Lock").fill("2m")
    dialog.get_by_role("button", name="Create", exact=True).click()
    page.wait_for_url(f"**/console/subscriptions/{name}")
    expect(page.get_by_text("Messages of one key are delivered one after the other")).to_be_visible()
    found = api(gateway.url, "GET", f"/v1/subscriptions/{name}")
    assert (found["order"], found["lock_ms"], found["attempts"]) == ("key", 120_000, 5)
    dialog = opened(page, "Delete…", f"Delete {name}")
    dialog.get_by_label("to confirm").fill(name)
    dialog.get_by_role("button", name="Delete", exact=True).click()
    page.wait_for_url("**/console/subscriptions")
    until(lambda: name not in groups(gateway), "the subscription is gone")


def test_a_messages_life_is_followed(page: Page, gateway: RunningGateway, name: str) -> None:
    waiting(gateway, name)
    page.goto(f"/console/subscriptions/{name}")
    live(page)
    received = api(
        gateway.url, "POST", f"/v1/subscriptions/{name}/receive",
        {"max": 3, "wait_ms": 20_000, "lock_ms": 600_000},
    )["messages"]  # fmt: skip
    expect(page.locator("#life li").filter(has_text="In flight")).to_contain_text(str(len(received)))
    expect(page.locator("#peek tbody tr").filter(has_text="held")).to_have_count(len(received))
    receipts = [message["receipt"] for message in received]
    api(gateway.url, "POST", f"/v1/subscriptions/{name}/acknowledge", {"receipts": receipts})
    expect(page.locator("#peek tbody tr").filter(has_text="held")).to_have_count(0)
    expect(page.locator("#consumers")).to_contain_text("127.0.0.1")


def test_a_seek_shows_what_moves_before_it_does(page: Page, gateway: RunningGateway, name: str) -> None:
    waiting(gateway, name)
    page.goto(f"/console/subscriptions/{name}")
    dialog = opened(page, "Seek…", f"Move {name}")
    dialog.get_by_label("To", exact=True).select_option("offset")
    dialog.get_by_label("Time or offset").fill("8")
    dialog.get_by_role("button", name="Show what moves").click()
    expect(dialog.locator(".review")).to_contain_text("8 are passed over")
    assert counts(gateway, name)["lag"] == 10
    dialog.get_by_role("button", name="Move 1 partition").click()
    expect(page.get_by_role("status").filter(has_text="1 partition moved.")).to_be_visible()
    assert counts(gateway, name)["lag"] == 2


def test_a_purge_asks_for_the_name_and_says_how_many(page: Page, gateway: RunningGateway, name: str) -> None:
    waiting(gateway, name)
    page.goto(f"/console/subscriptions/{name}")
    dialog = opened(page, "Purge…", f"Purge {name}")
    expect(dialog).to_contain_text("10 messages that are not done with are discarded")
    dialog.get_by_label("to confirm").fill(name)
    dialog.get_by_role("button", name="As a command").click()
    assert dialog.locator("pre").first.text_content() == f"postroad subscription purge {name}"
    dialog.get_by_role("button", name="Purge", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="10 messages discarded.")).to_be_visible()
    assert counts(gateway, name)["lag"] == 0


def test_a_setting_and_topics_are_changed(page: Page, gateway: RunningGateway, name: str) -> None:
    waiting(gateway, name)
    api(gateway.url, "POST", "/v1/topics", {"name": f"{name}-more"})
    page.goto(f"/console/subscriptions/{name}")
    dialog = opened(page, "Change… share.delivery.count.limit", "share.delivery.count.limit")
    dialog.get_by_label("Value").fill("9")
    dialog.get_by_role("button", name="Show what changes").click()
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("After 9 deliveries")).to_be_visible()
    dialog = opened(page, "Topics…", f"Topics of {name}")
    dialog.get_by_label("Topics").fill(f"{name} {name}-more")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text=f"It reads {name}, {name}-more now.")).to_be_visible()
    assert api(gateway.url, "GET", f"/v1/subscriptions/{name}")["topics"] == [name, f"{name}-more"]
