"""What holds for every page: its weight, its policy, who may ask for it, and that nothing changes by GET."""

from __future__ import annotations

import gzip
import re
from http.client import HTTPConnection, HTTPResponse
from importlib.resources import files
from urllib.parse import urlsplit

import pytest

from postroad.gateway.console.assets import FILES, asset
from postroad.gateway.dialects import DIALECTS
from tests.gateway.conftest import RunningGateway, StartGateway
from tools.vendor import packages, wrong_files

ALL_BYTES_MAX = 60_000  # of scripts and styles, packed
HTML = "text/html,application/xhtml+xml,*/*;q=0.8"
LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


def ask(
    gateway: RunningGateway, path: str, method: str = "GET", body: str | None = None, **headers: str
) -> tuple[HTTPResponse, str]:
    connection = HTTPConnection(urlsplit(gateway.url).netloc, timeout=60)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        given.setdefault("Content-Type", "application/x-www-form-urlencoded")
    connection.request(method, path, body, given)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    if response.headers.get("Content-Encoding") == "gzip":
        data = gzip.decompress(data)
    return response, data.decode()


def test_scripts_and_styles_weigh_little() -> None:
    assert sum(len(asset(name).packed) for name in FILES) <= ALL_BYTES_MAX


def test_what_others_wrote_is_what_its_hashes_say_and_has_its_licence() -> None:
    assert wrong_files() == []
    folder = files("postroad.gateway.console").joinpath("static", "vendor")
    named = {name for package in packages().values() for name in package["files"]}
    assert {each.name for each in folder.iterdir()} == named | {"vendor.toml"}
    assert sum(name.endswith("LICENSE") for name in named) == len(packages())


def test_pages_may_load_and_run_only_what_the_gateway_has(gateway: RunningGateway) -> None:
    response, text = ask(gateway, "/console")
    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r'https?://|<style|style="| on\w+="', text)


def test_files_are_kept_by_browsers_until_they_change(gateway: RunningGateway) -> None:
    _, text = ask(gateway, "/console")
    addresses = re.findall(r'"(/console/static/[^"]+)"', text)
    assert len(addresses) >= 3
    for path in addresses:
        response, _ = ask(gateway, path, Accept_Encoding="gzip")
        assert response.status == 200
        assert "immutable" in response.headers["Cache-Control"]
    assert ask(gateway, "/console/static/nothing.js")[0].status == 404


def test_a_browser_at_the_root_is_led_to_the_console(gateway: RunningGateway) -> None:
    response, _ = ask(gateway, "/", Accept=HTML)
    assert (response.status, response.headers["Location"]) == (302, "/console")
    assert ask(gateway, "/?Action=ListQueues", Accept=HTML)[0].status == 200
    assert ask(gateway, "/")[0].status == 400, "a program without an action hears what SQS says"


def test_without_a_console_there_is_none(start_gateway: StartGateway) -> None:
    running = start_gateway(DIALECTS, console=False)
    assert ask(running, "/console")[0].status == 404
    assert "Version" in ask(running, "/", Accept=HTML)[1]


@pytest.mark.parametrize("field", ["", "token=&", f"token={'0' * 32}&"])
def test_a_form_without_the_token_of_its_session_does_nothing(
    gateway: RunningGateway, name: str, field: str
) -> None:
    response, text = ask(gateway, "/console/topics", "POST", f"{field}do=create&name={name}")
    assert response.status == 200
    assert "earlier session" in text
    assert f"/console/topics/{name}" not in ask(gateway, "/console/topics?prefix=" + name)[1]


def test_a_token_of_another_session_is_none(gateway: RunningGateway, name: str) -> None:
    first, text = ask(gateway, "/console/topics")
    token = re.search(r'name="token" value="(\w+)"', text)
    assert token is not None
    cookie = first.headers["Set-Cookie"].partition(";")[0]
    other = ask(gateway, "/console/topics")[0].headers["Set-Cookie"].partition(";")[0]
    body = f"token={token[1]}&do=create&name={name}"
    assert "earlier session" in ask(gateway, "/console/topics", "POST", body, Cookie=other)[1]
    done = ask(gateway, "/console/topics", "POST", body, Cookie=cookie)[0]
    assert (done.status, done.headers["Location"]) == (303, f"/console/topics/{name}")


def test_a_cookie_that_was_bent_is_none(gateway: RunningGateway) -> None:
    cookie = ask(gateway, "/console")[0].headers["Set-Cookie"].partition(";")[0]
    assert ask(gateway, "/console", Cookie=cookie)[0].headers["Set-Cookie"] is None
    for bent in (cookie[:-1] + "g", cookie.replace("open", "user"), cookie + "0", cookie[:-33], "x=.", "ü"):
        response, _ = ask(gateway, "/console", Cookie=bent.encode().decode("latin-1"))
        assert response.headers["Set-Cookie"] is not None, bent


def test_the_cookie_is_for_our_own_pages_only(gateway: RunningGateway) -> None:
    cookie = ask(gateway, "/console")[0].headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/console"} <= set(cookie.split("; "))


def test_a_form_from_elsewhere_is_refused(gateway: RunningGateway) -> None:
    response, _ = ask(gateway, "/console/topics", "POST", "do=create", Origin="http://evil.example")
    assert response.status == 403


def test_a_link_from_elsewhere_shows_nothing_until_the_reader_goes_on(gateway: RunningGateway) -> None:
    response, text = ask(gateway, "/console/topics?prefix=a%22b", **LINK)
    assert response.status == 403
    assert 'href="/console/topics?prefix=a%22b"' in text
    assert "Set-Cookie" not in response.headers
    assert ask(gateway, "/console", **{**LINK, "Sec-Fetch-Dest": "iframe"})[1].startswith("Pages of other")


def test_what_can_not_be_done_is_told_on_the_page(gateway: RunningGateway) -> None:
    response, text = ask(gateway, "/console/topics/no-such-topic")
    assert response.status == 404
    assert "Not found" in text
    assert ask(gateway, "/console/topics/%3Cscript%3E")[0].status == 400
