"""What holds for each page of the console, also for one that is added: it is found in `PAGES`.

Whoever has no rights sees nothing of others' and does nothing; whatever somebody has written is text; nothing
is kept by a browser.
"""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from confluent_kafka import TopicPartition

from postroad.gateway.console.pages import PAGES
from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from tests.clients.wait import until
from tests.gateway.conftest import RunningGateway
from tests.gateway.console.conftest import api
from tests.gateway.console.test_login import house, secured
from tests.gateway.console.test_shell import ask
from tests.gateway.rest.test_group_changes import commit
from tests.gateway.security.asking import basic, rest
from tests.gateway.security.conftest import ADMIN, STRANGER, House

__all__ = ["house", "secured"]  # fixtures

SCRIPT = '<script>document.title="taken"</script><img src=x onerror=alert(1)>"\'>'
BIDI = "invoice\u202efdp.exe\u200b\x1b[31m"
PATHS = [page.path for page in PAGES]


def address(path: str, name: str, group: str, user: str) -> str:
    """The page of the things of this name."""
    given = {
        "topic": name,
        "subscription": name,
        "group": group,
        "user": user,
        "partition": "0",
        "offset": "0",
    }
    return re.sub(r"\{(\w+)\}", lambda found: quote(given[found[1]], safe=""), path)


# --- what somebody has written


class Document(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.handlers: list[str] = []
        self.sources: list[str] = []
        self.text = ""
        self._edited = False  # what is to be edited stands in its field as it is
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self._edited |= tag == "textarea"
        self.handlers += [name for name, _ in attrs if name.startswith("on") or name == "style"]
        self.sources += [value or "" for name, value in attrs if name == "src"]

    def handle_endtag(self, tag: str) -> None:
        self._edited &= tag != "textarea"

    def handle_data(self, data: str) -> None:
        self.text += "" if self._edited else data


@pytest.fixture(scope="module")
def hostile(gateway: RunningGateway) -> tuple[RunningGateway, str, str]:
    """A gateway, a name and a group: whatever clients may choose about them is hostile."""
    name, group = "hostile-things", f"{SCRIPT}{BIDI}"
    api(gateway.url, "POST", "/v1/topics", {"name": name})
    api(gateway.url, "POST", "/v1/subscriptions", {"name": name, "topics": [name], "start": "earliest"})
    contents: list[Any] = [
        SCRIPT, BIDI, {"base64": base64.b64encode(b"\xff\xfe\x00<b>").decode()}, "<b>" + "x" * 1_000_000,
    ]  # fmt: skip
    written = [{"value": each, "key": SCRIPT, "headers": {SCRIPT: BIDI}} for each in contents]
    api(gateway.url, "POST", f"/v1/topics/{name}/messages", [*written, *written])
    path = f"/v1/subscriptions/{name}"
    rejected = 0
    while rejected < len(written):  # the others are held, and shown among what is not done
        asked = {"max": len(written) - rejected, "wait_ms": 20_000, "lock_ms": 600_000}
        held = api(gateway.url, "POST", f"{path}/receive", asked)["messages"]
        receipts = [each["receipt"] for each in held]
        api(gateway.url, "POST", f"{path}/reject", {"receipts": receipts, "reason": SCRIPT + BIDI})
        rejected += len(held)
    until(lambda: len(api(gateway.url, "GET", f"{path}/dead-letters")["letters"]) == 4, "they have died")
    commit(gateway, group, TopicPartition(name, 0, 0))
    return gateway, name, group


@pytest.mark.parametrize("path", PATHS)
def test_whatever_was_written_is_text(hostile: tuple[RunningGateway, str, str], path: str) -> None:
    gateway, name, group = hostile
    response, text = ask(gateway, address(path, name, group, SCRIPT))
    assert response.status == 200 or path.endswith("{user}"), path
    page = Document(text)
    assert page.elements & {"img", "b", "iframe", "style"} == set()
    assert page.handlers == []
    assert all(source.startswith("/console/static/") for source in page.sources)
    assert not re.search("[\u202e\u200b\x1b]", page.text), "it is spelled out"
    assert len(text) < 2_000_000
    assert response.headers["Cache-Control"] == "no-store"


def test_what_was_written_is_there_to_be_read(hostile: tuple[RunningGateway, str, str]) -> None:
    """Else the test above would prove nothing."""
    gateway, name, group = hostile
    for path in PATHS:
        if not path.endswith(("/messages", "/dead-letters", "{subscription}", "{offset}", "{group}")):
            continue
        _, text = ask(gateway, address(path, name, group, SCRIPT))
        assert "document.title=" in Document(text).text, path


# --- who has no rights


@pytest.fixture(scope="module")
def things(house: House) -> str:
    """A topic, a subscription, a group and a user of one name, of which a stranger may not know."""
    name = "secret-things"
    house.add_user(name)
    for path, body in (
        ("/v1/topics", {"name": name}),
        ("/v1/subscriptions", {"name": name, "topics": [name], "start": "earliest"}),
        (f"/v1/topics/{name}/messages", {"value": "secret-value"}),
    ):
        assert rest(house, ADMIN, "POST", path, body).status < 300
    house.allow(name, (Op.READ, Type.TOPIC, name))
    return name


@pytest.mark.parametrize("path", PATHS)
def test_who_has_no_rights_sees_nothing_of_others(house: House, things: str, path: str) -> None:
    where = address(path, things, things, things)
    headers = basic(STRANGER)
    _, text = ask(house.running, where, **headers)
    shown = Document(text).text.replace(things, "", text.count(quote(things)) if "{" in path else 0)
    if "{" not in path:
        assert things not in shown, "a list has what may be described"
    assert "secret-value" not in text
    if "{" in path:
        elsewhere = address(path, "no-such-thing", "no-such-thing", "no-such-thing")
        _, other = ask(house.running, elsewhere, **headers)
        hidden = [re.sub(r'value="\w{32}"', "", each) for each in (text, other)]
        assert hidden[0].replace(things, "no-such-thing") == hidden[1], "whether it is there or not"


@pytest.mark.parametrize(
    ("path", "action"), [(page.path, name) for page in PAGES for name in page.actions], ids=str
)
def test_who_has_no_rights_does_nothing(house: House, things: str, path: str, action: str) -> None:
    """As the form would be sent by hand, by somebody who is let in."""
    where, headers = address(path, things, things, things), basic(STRANGER)
    response, text = ask(house.running, "/console/topics", **headers)
    cookie = response.headers["Set-Cookie"].partition(";")[0]
    token = re.search(
        r'name="token" value="(\w+)"', ask(house.running, "/console/topics", **headers, Cookie=cookie)[1]
    )
    assert token is not None
    fields = {
        "do": action, "token": token[1], "name": things, "typed": things, "topics": things, "value": "1",
        "url": "https://example.com", "message": "x" * 38, "redrive": "0" * 16, "which": "1", "to": "",
        "permission": "allow", "operation": "all", "type": "cluster", "what": "publish", "partitions": "2",
        "own_password": "wrong", "confirmed": "",
    }  # fmt: skip
    response, text = ask(house.running, where, "POST", urlencode(fields), **headers, Cookie=cookie)
    assert response.status != 303, "it was done"
    assert "HX-Redirect" not in response.headers
    assert 'data-outcome="done"' not in text
    assert 'data-outcome="failed"' in text or response.status in (403, 404), text[-300:]
