"""Consumer groups in a browser: watched, moved after a look at what changes, deleted."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition
from playwright.sync_api import Locator, Page, expect

from tests.gateway.conftest import RunningGateway
from tests.gateway.console.conftest import api, commands, live
from tests.gateway.rest.test_group_changes import commit, committed, consumer


@pytest.fixture
def group(gateway: RunningGateway, name: str) -> str:
    """A group of the topic's name, at 3 and 7 of ten messages in two partitions."""
    api(gateway.url, "POST", "/v1/topics", {"name": name, "partitions": 2})
    for partition in (0, 1):
        messages = [{"value": str(n), "partition": partition} for n in range(10)]
        api(gateway.url, "POST", f"/v1/topics/{name}/messages", messages)
    commit(gateway, name, TopicPartition(name, 0, 3), TopicPartition(name, 1, 7))
    return name


def move(page: Page, name: str, to: str, value: str = "", which: str = "All partitions") -> Locator:
    """The dialog, with what changes."""
    page.get_by_role("button", name="Move…").click()
    dialog = page.get_by_role("dialog", name=f"Move {name}")
    dialog.get_by_label("Where to").select_option(label=to)
    dialog.get_by_label("Value").fill(value)
    dialog.get_by_label("Which").select_option(label=which)
    dialog.get_by_role("button", name="Show what changes").click()
    return dialog


def test_a_group_is_found_and_its_lag_follows_what_happens(
    page: Page, gateway: RunningGateway, group: str
) -> None:
    page.goto(f"/console/groups?prefix={group}")
    page.get_by_role("link", name=group).click()
    page.wait_for_url(f"**/console/groups/{group}")
    expect(page.locator("#lag dd")).to_contain_text("10")
    live(page)
    api(gateway.url, "POST", f"/v1/topics/{group}/messages", {"value": "more", "partition": 0})
    expect(page.locator("#lag dd")).to_contain_text("11")
    row = page.get_by_role("row", name=f"{group} 0 3 11 8")
    expect(row).to_be_visible()


def test_a_group_is_moved_after_a_look_at_before_and_after(
    page: Page, gateway: RunningGateway, group: str
) -> None:
    page.goto(f"/console/groups/{group}")
    dialog = move(page, group, "The beginning")
    expect(dialog.get_by_role("status")).to_contain_text("10 messages will be read again")
    expect(dialog.get_by_role("row", name=f"{group} 1 7 0 7 again")).to_be_visible()
    assert committed(gateway, group, group, 0, 1) == [3, 7]
    dialog.get_by_role("button", name="Move it").click()
    expect(page.locator("#outcome")).to_have_text("2 partitions were moved.")
    assert committed(gateway, group, group, 0, 1) == [0, 0]

    dialog = move(page, group, "So many messages on, or back (−)", "4", f"{group}, partition 1")
    dialog.get_by_role("button", name="Move it").click()
    expect(page.locator("#outcome")).to_have_text("1 partition were moved.")
    assert committed(gateway, group, group, 0, 1) == [0, 4]


def test_nothing_is_chosen_beforehand_and_what_fails_is_told(page: Page, group: str) -> None:
    page.goto(f"/console/groups/{group}")
    dialog = move(page, group, "Choose …")
    expect(dialog.get_by_role("alert")).to_have_text("Choose where to.")
    dialog.get_by_label("Where to").select_option(label="An offset")
    dialog.get_by_label("Value").fill("soon")
    dialog.get_by_role("button", name="Show what changes").click()
    expect(dialog.get_by_role("alert")).to_contain_text("not a whole number")
    dialog.get_by_label("Value").fill("5")
    dialog.get_by_role("button", name="As a command").click()
    cli, curl = commands(dialog)
    assert cli == f"postroad group reset {group} --to 5"
    assert f"/v1/consumer-groups/{group}/reset" in curl


def test_a_group_with_members_shows_them_and_can_neither_be_moved_nor_deleted(
    page: Page, gateway: RunningGateway, group: str
) -> None:
    reader: Consumer = consumer(gateway, group)
    reader.subscribe([group])
    try:
        while reader.poll(0.5) is None:
            pass
        page.goto(f"/console/groups/{group}")
        expect(page.get_by_role("region", name="Members")).to_contain_text("127.0.0.1")
        expect(page.get_by_text("It has members: stop them")).to_be_visible()
        expect(page.get_by_role("button", name="Move…")).to_have_count(0)
        expect(page.get_by_role("button", name="Delete…")).to_have_count(0)
    finally:
        reader.close()


def test_a_group_is_deleted_when_its_name_was_typed(page: Page, gateway: RunningGateway, group: str) -> None:
    page.goto(f"/console/groups/{group}")
    page.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog", name=f"Delete {group}")
    dialog.get_by_label("to confirm").fill(group)
    dialog.get_by_role("button", name="Delete", exact=True).click()
    page.wait_for_url("**/console/groups")
    assert committed(gateway, group, group, 0) == [-1001]


def test_hostile_names_of_groups_are_text(page: Page, gateway: RunningGateway, name: str) -> None:
    hostile = f"<script>alert(1)</script>\u202e{name}"
    api(gateway.url, "POST", "/v1/topics", {"name": name})
    commit(gateway, hostile, TopicPartition(name, 0, 0))
    page.goto("/console/groups?prefix=%3Cscript")
    page.get_by_role("link", name="<script>alert(1)</script>").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("<script>alert(1)</script>")
