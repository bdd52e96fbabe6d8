"""The page of a cluster of three nodes, in a browser: one is drained, one dies and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from playwright.sync_api import Locator, Page, expect

from postroad.testing import RunningCluster, cluster
from tests.clients.wait import until
from tests.gateway.console.conftest import NewContext, api, live

SOON_MS = 90_000.0
TOPIC = "spread"

pytestmark = pytest.mark.cluster_slow


def holders(running: RunningCluster) -> set[int]:
    """The nodes that hold a replica of the topic, as a stock client sees it."""
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    found = admin.list_topics(TOPIC, timeout=30).topics[TOPIC].partitions
    return {node for part in found.values() for node in part.replicas}


def all_preferred(running: RunningCluster) -> bool:
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    found = admin.list_topics(TOPIC, timeout=30).topics[TOPIC].partitions
    return all(part.leader == part.replicas[0] for part in found.values())


def node(page: Page, number: int) -> Locator:
    return page.locator(f"#nodes-{number}")


def test_nodes_are_watched_and_drained(context: NewContext, tmp_path: Path) -> None:
    settings = {"http.enabled": True, "topics.replicas": 2}
    with cluster(nodes=3, settings=settings, directory=tmp_path) as running:
        api(running.http, "POST", "/v1/topics", {"name": TOPIC, "partitions": 6})
        assert holders(running) == {1, 2, 3}
        page = context(base_url=running.http).new_page()
        page.goto("/console/cluster")
        for number in (1, 2, 3):
            expect(node(page, number)).to_contain_text("serving", timeout=SOON_MS)
        live(page)

        page.get_by_role("button", name="Drain… node 3").click()
        dialog = page.get_by_role("dialog", name="Drain node 3")
        expect(dialog).to_contain_text("2 other nodes")
        dialog.get_by_role("button", name="Drain", exact=True).click()
        expect(page.locator("#outcome")).to_have_text("Node 3 is being drained.")
        # The nodes' own topics have three replicas: those of the third node can go nowhere.
        expect(page.locator("#drain-3")).to_contain_text("that no other node can take", timeout=SOON_MS)
        until(lambda: holders(running) == {1, 2}, "nothing of the topic is left on node 3")
        page.reload()
        page.get_by_role("button", name="Cancel the drain of node 3").click()
        expect(node(page, 3)).to_contain_text("serving", timeout=SOON_MS)

        live(page)
        running.nodes[1].kill()
        expect(node(page, 2)).to_contain_text("gone", timeout=SOON_MS)
        expect(page.get_by_role("region", name="Partitions that need attention")).to_contain_text(
            "replicas lag behind or are down", timeout=SOON_MS
        )
        running.nodes[1].start()
        expect(page.get_by_text("Every partition has a leader")).to_be_visible(timeout=SOON_MS)
        page.reload()
        page.get_by_role("button", name="Elect preferred leaders…").click()
        dialog = page.get_by_role("dialog", name="Elect preferred leaders")
        dialog.get_by_role("button", name="Elect", exact=True).click()
        expect(page.locator("#outcome")).to_contain_text("preferred leader")
        until(lambda: all_preferred(running), "the first replicas lead")
        page.close()
