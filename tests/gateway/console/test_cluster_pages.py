"""The cluster and who may do what, in a browser."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from postroad import __version__
from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from tests.broker.secured import PASSWORD
from tests.gateway.console.conftest import NewContext, Watch, commands
from tests.gateway.console.test_accessible import OPEN_ALL, SIZES, TOO_WIDE, violations
from tests.gateway.console.test_login import house, secured
from tests.gateway.console.test_topic_page import opened
from tests.gateway.security.asking import rest
from tests.gateway.security.conftest import ADMIN, STRANGER, WORKER, House
from tests.gateway.security.test_in_person import logs_in

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


def test_with_users_a_node_is_drained_in_their_name(house: House, context: NewContext) -> None:
    page = context(base_url=house.url).new_page()
    login(page, ADMIN, "/console/cluster")
    for verb, said in (
        ("Drain", "Node 1 is being drained."),
        ("Cancel the drain", "may have partitions again"),
    ):
        page.get_by_role("button", name=re.compile(f"^{verb}…")).click()
        dialog = page.get_by_role("dialog", name=re.compile(f"^{verb}.* node 1"))
        dialog.get_by_role("button", name=verb, exact=True).click()
        expect(dialog.get_by_role("alert")).to_contain_text("your password is needed")
        fill_own_password(dialog)
        dialog.get_by_role("button", name=verb, exact=True).click()
        expect(page.locator("#outcome")).to_contain_text(said)


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


def fill_own_password(dialog: Locator, password: str = PASSWORD) -> None:
    dialog.get_by_label("Your password").fill(password)


def test_a_user_is_made_given_rights_and_deleted_on_pages(
    house: House, context: NewContext, name: str
) -> None:
    page = context(base_url=house.url).new_page()
    login(page, ADMIN, "/console/access")
    dialog = opened(page, "Create a user…", "Create a user")
    dialog.get_by_label("Name", exact=True).fill(name)
    dialog.get_by_role("button", name="As a command").click()
    cli, curl = commands(dialog)
    assert cli == f"postroad user create {name}"
    assert curl.startswith(f"curl -u {ADMIN} --json ")
    fill_own_password(dialog, "wrong")
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(dialog.get_by_role("alert")).to_have_text(f"That is not the password of {ADMIN}.")
    assert PASSWORD not in page.content()
    fill_own_password(dialog)
    dialog.get_by_role("button", name="Create", exact=True).click()
    outcome = page.locator("#outcome")
    expect(outcome).to_contain_text(f"{name} was created.")
    made = outcome.locator("code").all_text_contents()
    assert len(made) == 3, "password, access key, its secret"
    assert logs_in(house, name, made[0])

    outcome.get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    assert not [secret for secret in (made[0], made[2]) if secret in page.content()], "it is shown once"
    dialog = opened(page, "Add a rule…", f"Add a rule for {name}")
    dialog.get_by_label("To", exact=True).select_option("consume")
    dialog.get_by_label("Of the name").fill("orders*")
    dialog.get_by_role("button", name="As a command").click()
    cli, _ = commands(dialog)
    assert cli == f"postroad acl allow {name} --topic 'orders*' --group '*' --operation read"
    fill_own_password(dialog)
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(outcome).to_contain_text("2 rules added.")
    rules = page.get_by_role("region", name="Rules")
    expect(rules).to_contain_text("each topic whose name begins with orders")
    assert allowed(house, name, "orders-1")
    rules.get_by_role("button", name="Take back…").last.click()
    dialog = page.get_by_role("dialog", name="Take back the rule")
    fill_own_password(dialog)
    dialog.get_by_role("button", name="Take it back").click()
    expect(outcome).to_contain_text("The rule was taken back.")
    expect(rules.get_by_role("button", name="Take back…")).to_have_count(1)

    keys = page.get_by_role("region", name="Access keys")
    for verb, said in (("Disable", "refused from now on"), ("Enable", "taken again")):
        keys.get_by_role("button", name=f"{verb}… {made[1]}").click()
        dialog = page.get_by_role("dialog", name=f"{verb} {made[1]}")
        fill_own_password(dialog)
        dialog.get_by_role("button", name=verb, exact=True).click()
        expect(outcome).to_contain_text(said)
    dialog = opened(page, "New password…", f"Another password for {name}")
    fill_own_password(dialog)
    dialog.get_by_role("button", name="Make a new password").click()
    expect(outcome).to_contain_text(f"{name} has another password.")
    assert logs_in(house, name, outcome.locator("code").inner_text())
    assert not logs_in(house, name, made[0])

    dialog = opened(page, "Delete…", f"Delete {name}")
    fill_own_password(dialog)
    dialog.get_by_label(f"Type {name}").fill(name)
    dialog.get_by_role("button", name="Delete the user").click()
    page.wait_for_url("**/console/access")
    expect(page.get_by_role("region", name="Users")).not_to_contain_text(name)


def allowed(house: House, name: str, topic: str) -> bool:
    found = rest(house, ADMIN, "GET", f"/v1/access?operation=read&name={topic}").content["decisions"]
    return {each["principal"]: bool(each["allowed"]) for each in found}[f"User:{name}"]


def test_who_changes_the_own_password_sees_the_new_one(
    house: House, context: NewContext, watch: Watch, name: str
) -> None:
    """Though with it the session ends in which that was asked for."""
    watch.allowed = ["403"]
    house.add_user(name)
    house.allow(name, (Op.ALTER, Type.CLUSTER, "kafka-cluster"))
    page = context(base_url=house.url).new_page()
    login(page, name, f"/console/access/{name}")
    dialog = opened(page, "New password…", f"Another password for {name}")
    fill_own_password(dialog)
    dialog.get_by_role("button", name="Make a new password").click()
    expect(page.locator("#outcome")).to_contain_text("has another password")
    assert logs_in(house, name, page.locator("#outcome code").inner_text())
    page.goto("/console/access")
    page.wait_for_url("**/console/login?next=*")


def test_who_may_only_look_has_no_buttons_and_is_refused(
    house: House, context: NewContext, watch: Watch
) -> None:
    house.allow(WORKER, (Op.DESCRIBE, Type.CLUSTER, "kafka-cluster"))
    page = context(base_url=house.url).new_page()
    login(page, WORKER, f"/console/access/{ADMIN}")
    expect(page.get_by_text("Super user")).to_be_visible()
    token = page.locator("input[name=token]").first.get_attribute("value")
    form: dict[str, str | float | bool] = {"do": "password", "token": str(token), "own_password": PASSWORD}
    page.goto("/console/access")
    expect(page.get_by_role("button", name="Create a user…")).to_have_count(0)
    page.goto(f"/console/access/{ADMIN}")
    expect(page.get_by_role("main").get_by_role("button")).to_have_count(0)
    answer = page.request.post(f"/console/access/{ADMIN}", form=form)
    assert "it takes Alter on the cluster" in answer.text()
    assert answer.headers["cache-control"] == "no-store"
    assert logs_in(house, ADMIN, PASSWORD)
    house.disallow(WORKER, (Op.DESCRIBE, Type.CLUSTER, "kafka-cluster"))


@pytest.mark.parametrize(
    ("scheme", "size"),
    [
        ("dark", "phone"),
        pytest.param("light", "desk", marks=pytest.mark.cluster_slow),
        pytest.param("light", "phone", marks=pytest.mark.cluster_slow),
        pytest.param("dark", "desk", marks=pytest.mark.cluster_slow),
    ],
)
def test_axe_finds_nothing_on_pages_of_users_with_all_forms_open(
    house: House, context: NewContext, scheme: str, size: str
) -> None:
    house.allow(WORKER, (Op.WRITE, Type.TOPIC, "seen"))
    width, height = SIZES[size]
    page = context(
        base_url=house.url, color_scheme=scheme, viewport={"width": width, "height": height}
    ).new_page()
    login(page, ADMIN, "/console/access")
    found = {}
    for path in ("/console/access?operation=write&type=topic&name=seen", f"/console/access/{WORKER}"):
        page.goto(path)
        found[path] = page.evaluate(TOO_WIDE)
        page.evaluate(OPEN_ALL)
        found[path] += violations(page)
    assert found == {path: [] for path in found}
    house.disallow(WORKER, (Op.WRITE, Type.TOPIC, "seen"))
