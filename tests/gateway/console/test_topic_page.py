"""One topic in a browser: published to, changed, widened, records deleted; each seen by a stock client."""

from __future__ import annotations

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from playwright.sync_api import Locator, Page, expect

from tests.gateway.conftest import RunningGateway
from tests.gateway.console.conftest import api


def opened(page: Page, button: str, title: str) -> Locator:
    page.get_by_role("button", name=button, exact=True).click()
    return page.get_by_role("dialog", name=title)


def client(gateway: RunningGateway) -> Consumer:
    return Consumer({"bootstrap.servers": gateway.bootstrap, "group.id": "looks-only"})


def test_a_message_is_published_with_key_and_headers(page: Page, gateway: RunningGateway, name: str) -> None:
    api(gateway.url, "POST", "/v1/topics", {"name": name})
    page.goto(f"/console/topics/{name}")
    dialog = opened(page, "Publish…", f"Publish to {name}")
    dialog.get_by_label("Key").fill("köy")
    dialog.get_by_label("Value", exact=True).fill("\n<b>two</b>\nlines")
    dialog.get_by_label("Headers").fill("source=shop\nsource=app")
    dialog.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="offset 0")).to_be_visible()
    expect(dialog).to_be_hidden()
    consumer = client(gateway)
    consumer.assign([TopicPartition(name, 0, 0)])
    message = consumer.poll(30)
    consumer.close()
    assert message is not None
    assert (message.key(), message.value()) == ("köy".encode(), b"\n<b>two</b>\nlines")
    assert message.headers() == [("source", b"shop"), ("source", b"app")]
    assert message.timestamp()[0] != TIMESTAMP_NOT_AVAILABLE


def test_partitions_are_added(page: Page, gateway: RunningGateway, name: str) -> None:
    api(gateway.url, "POST", "/v1/topics", {"name": name})
    page.goto(f"/console/topics/{name}")
    dialog = opened(page, "Add partitions…", "Add partitions")
    dialog.get_by_label("How many").fill("4")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="There are 4 partitions now.")).to_be_visible()
    expect(page.locator("#partitions tbody tr")).to_have_count(4)
    admin = AdminClient({"bootstrap.servers": gateway.bootstrap})
    assert len(admin.list_topics(name, timeout=30).topics[name].partitions) == 4


def test_a_config_is_looked_over_before_it_is_changed(page: Page, gateway: RunningGateway, name: str) -> None:
    api(gateway.url, "POST", "/v1/topics", {"name": name})
    page.goto(f"/console/topics/{name}")
    dialog = opened(page, "Change… retention.ms", "retention.ms")
    dialog.get_by_label("Value").fill("3600000")
    dialog.get_by_role("button", name="Show what changes").click()
    expect(dialog.locator(".review")).to_contain_text("604800000 (7 d)")
    expect(dialog.locator(".review")).to_contain_text("3600000 (1 h)")
    assert api(gateway.url, "GET", f"/v1/topics/{name}")["overrides"] == []
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Changed: retention.ms.")).to_be_visible()
    admin = AdminClient({"bootstrap.servers": gateway.bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, name)
    assert admin.describe_configs([resource])[resource].result(30)["retention.ms"].value == "3600000"


def test_records_are_counted_before_they_are_deleted(page: Page, gateway: RunningGateway, name: str) -> None:
    api(gateway.url, "POST", "/v1/topics", {"name": name})
    api(gateway.url, "POST", f"/v1/topics/{name}/messages", [{"value": str(each)} for each in range(10)])
    page.goto(f"/console/topics/{name}")
    dialog = opened(page, "Delete records…", f"Delete records of {name}")
    dialog.get_by_label("Records").select_option("offset")
    dialog.get_by_label("Offset", exact=True).fill("7")
    dialog.get_by_label("to confirm").fill(name)
    dialog.get_by_role("button", name="Count first").click()
    dialog.get_by_role("button", name="Delete 7 records").wait_for()
    consumer = client(gateway)
    assert consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=30) == (0, 10)
    dialog.get_by_label("Offset", exact=True).fill("8")  # what was counted is not what is asked for now
    dialog.get_by_role("button", name="Delete 7 records").click()
    dialog.get_by_role("button", name="Delete 8 records").click()
    expect(page.get_by_role("status").filter(has_text="8 records were deleted.")).to_be_visible()
    assert consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=30) == (8, 10)
    consumer.close()
