"""The cluster and who may do what, in a browser."""

from __future__ import annotations

from urllib.parse import quote

from playwright.sync_api import Page, expect

from postroad import __version__
from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from tests.broker.secured import PASSWORD
from tests.gateway.console.conftest import NewContext, Watch, commands
from tests.gateway.console.test_login import house, secured
from tests.gateway.security.conftest import ADMIN, STRANGER, WORKER, House

__all__ = ["house", "secured"]  # fixtures


def login(page: Page, user: str, goto: str) -> None:
    page.goto(f"/console/login?next={quote(goto, safe='')}")
    page.get_by_label("User").fill(user)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{goto}")


def test_nodes_are_shown_with_how_they_do(page: Page) -> None:
    page.goto("/console/cluster")
    row = page.get_by_role("region", name="Nodes").get_by_role("row").nth(1)
    expect(row).to_contain_text("controller")
    expect(row).to_contain_text("serving")
    expect(row).to_contain_text(__version__)
    expect(page.get_by_text("Every partition has a leader")).to_be_visible()
    page.get_by_role("button", name="Drain… node 1").click()
    dialog = page.get_by_role("dialog", name="Drain node 1")
    expect(dialog).to_contain_text("There is no other node that serves")
    dialog.get_by_role("button", name="As a command").click()
    cli, curl = commands(dialog)
    assert cli == "postroad cluster drain 1"
    assert curl.endswith("/v1/cluster/nodes/1/drain")


def test_without_security_it_is_said_that_nobody_is_asked(page: Page) -> None:
    page.goto("/console/access")
    expect(page.get_by_text("Security is off: nobody is asked")).to_be_visible()


def test_who_may_do_something_is_told_with_the_rule_that_decides(house: House, context: NewContext) -> None:
    house.allow(WORKER, (Op.WRITE, Type.TOPIC, "orders"))
    page = context(base_url=house.url).new_page()
    login(page, ADMIN, "/console/access")
    expect(page.get_by_role("region", name="Users")).to_contain_text("super user")
    page.get_by_label("called").fill("orders")
    page.get_by_role("button", name="Ask").click()
    page.wait_for_url("**/console/access?operation=write&type=topic&name=orders")
    answers = page.get_by_role("region", name="Who may do that")
    expect(answers.get_by_role("row", name=f"{WORKER} yes ALLOW User:{WORKER} Write on")).to_be_visible()
    expect(answers.get_by_role("row", name=f"{STRANGER} no no rule allows it")).to_be_visible()
    house.disallow(WORKER, (Op.WRITE, Type.TOPIC, "orders"))


def test_with_users_drains_are_told_as_commands(house: House, context: NewContext) -> None:
    page = context(base_url=house.url).new_page()
    login(page, ADMIN, "/console/cluster")
    expect(page.get_by_text("postroad cluster drain NODE")).to_be_visible()
    expect(page.get_by_role("button", name="Drain…")).to_have_count(0)


def test_who_may_not_describe_the_cluster_sees_neither_page(
    house: House, context: NewContext, watch: Watch
) -> None:
    watch.allowed = ["403"]
    page = context(base_url=house.url).new_page()
    login(page, STRANGER, "/console/topics")
    for path in ("/console/cluster", "/console/access"):
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 403, path
        expect(page.get_by_role("alert")).to_contain_text("it takes Describe on the cluster")
