"""Who somebody at the console is: users and keys; and only what they may see and do is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from postroad.cluster.users import change_user
from postroad.gateway.dialects import CONTEXTS, DIALECTS
from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from postroad.security.sasl import SCRAM_SHA_256
from tests.broker.secured import PASSWORD, Secured, secured_node, verifier
from tests.clients.wait import until
from tests.gateway.conftest import RunningGateway, StartGateway, gateway_in_thread
from tests.gateway.console.conftest import NewContext, Watch
from tests.gateway.console.test_shell import ask
from tests.gateway.security.asking import basic
from tests.gateway.security.conftest import ADMIN, STRANGER, WORKER, House


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_node(tmp_path_factory.mktemp("house")) as node:
        yield node


@pytest.fixture(scope="module")
def house(secured: Secured) -> Iterator[House]:
    key = secured.node.security.master_key
    with gateway_in_thread(secured.bootstrap, DIALECTS, contexts=CONTEXTS, master_key=key) as running:
        house = House(secured, running)
        for name in (ADMIN, WORKER, STRANGER):
            house.add_user(name)
        house.settle()
        yield house


def login(gateway: RunningGateway, user: str, password: str = PASSWORD, goto: str = "/console/topics") -> str:
    """The cookie of the session, by the form."""
    response, text = ask(gateway, "/console/login")
    cookie = response.headers["Set-Cookie"].partition(";")[0]
    token = re.search(r'name="token" value="(\w+)"', text)
    assert token is not None
    body = urlencode({"user": user, "password": password, "token": token[1], "next": goto})
    response, text = ask(gateway, "/console/login", "POST", body, Cookie=cookie)
    assert (response.status, response.headers["Location"]) == (303, goto), text
    return str(response.headers["Set-Cookie"].partition(";")[0])


def is_in(gateway: RunningGateway, cookie: str) -> bool:
    response, _ = ask(gateway, "/console/topics", Cookie=cookie)
    assert response.status in (200, 303)
    return response.status == 200


def test_nobody_sees_a_page_without_a_login(house: House, context: NewContext) -> None:
    page = context(base_url=house.url).new_page()
    page.goto("/console/topics?prefix=a")
    page.wait_for_url("**/console/login?next=*")
    page.get_by_label("User").fill(ADMIN)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/topics?prefix=a")
    expect(page.get_by_text(ADMIN)).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/console/login")
    page.goto("/console/topics")
    page.wait_for_url("**/console/login?next=*")


def test_a_wrong_password_is_told_and_the_name_stays(house: House, context: NewContext, watch: Watch) -> None:
    watch.allowed = ["401"]
    page = context(base_url=house.url).new_page()
    page.goto("/console/login")
    page.get_by_label("User").fill(WORKER)
    page.get_by_label("Password").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("Name or password are wrong.")
    expect(page.get_by_label("User")).to_have_value(WORKER)


def test_who_has_no_rights_sees_nothing_and_has_no_buttons(
    house: House, context: NewContext, name: str
) -> None:
    house.allow(WORKER, (Op.DESCRIBE, Type.TOPIC, name))
    page = context(base_url=house.url, extra_http_headers=basic(ADMIN)).new_page()
    page.goto("/console/topics")
    page.get_by_role("button", name="Create a topic…").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Create", exact=True).click()
    page.wait_for_url(f"**/console/topics/{name}")
    expect(page.get_by_role("button", name="Delete…")).to_be_visible()

    page = context(base_url=house.url, extra_http_headers=basic(WORKER)).new_page()
    page.goto(f"/console/topics/{name}")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    expect(page.get_by_role("button", name="Delete…")).to_have_count(0)

    page = context(base_url=house.url, extra_http_headers=basic(STRANGER)).new_page()
    page.goto(f"/console/topics?prefix={name}")
    expect(page.get_by_text("No topic's name begins so.")).to_be_visible()


def test_an_action_that_has_no_button_is_refused(house: House, name: str) -> None:
    cookie = login(house.running, STRANGER)
    _, text = ask(house.running, "/console/topics", Cookie=cookie)
    token = re.search(r'name="token" value="(\w+)"', text)
    assert token is not None
    body = urlencode({"do": "create", "token": token[1], "name": name})
    _, text = ask(house.running, "/console/topics", "POST", body, Cookie=cookie)
    assert "Not authorized" in text


def test_a_session_is_good_at_another_gateway_and_ends_with_the_password(house: House) -> None:
    key = house.node.node.security.master_key
    with gateway_in_thread(house.node.bootstrap, DIALECTS, master_key=key) as other:
        house.add_user("short-lived")
        house.settle()
        cookie = login(house.running, "short-lived")
        assert is_in(house.running, cookie)
        assert is_in(other, cookie), "nothing was said there"
        put = {SCRAM_SHA_256: verifier(SCRAM_SHA_256, "another")}
        change = partial(change_user, name="short-lived", put=put, deleted=["SCRAM-SHA-512"])
        house.node.run(house.node.node.topics.decide(change))
        house.settle()
        until(lambda: not is_in(house.running, cookie), "the old password's session has ended")
        until(lambda: not is_in(other, cookie), "there, too")
        fresh = login(house.running, "short-lived", "another")
        assert is_in(other, fresh)
        house.node.run(
            house.node.node.topics.decide(
                partial(change_user, name="short-lived", put={}, deleted=["SCRAM-SHA-256"])
            )
        )
        until(lambda: not is_in(other, fresh), "the user is gone")
        until(lambda: not is_in(house.running, fresh), "here, too")


def test_keys_of_the_settings_log_in_while_they_are_there(start_gateway: StartGateway) -> None:
    running = start_gateway(DIALECTS, access_keys="id:secret:admin,user:other")
    assert not is_in(running, "")
    cookie = login(running, "id", "secret")
    assert is_in(running, cookie)
    assert is_in(start_gateway(DIALECTS, access_keys="id:secret"), cookie)
    assert not is_in(start_gateway(DIALECTS, access_keys="id:changed"), cookie)


@pytest.mark.parametrize("goto", ["https://evil.example/", "//evil.example", "/\\evil.example", "/v1/topics"])
def test_a_login_leads_on_to_pages_of_the_console_only(house: House, goto: str) -> None:
    response, text = ask(house.running, "/console/login?" + urlencode({"next": goto}))
    assert response.status == 200
    assert 'name="next" value="/console"' in text.replace('type="hidden" ', "")
