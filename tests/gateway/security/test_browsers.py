"""Pages in a browser that shows a user's password or certificate along by itself, and what they can't do."""

from __future__ import annotations

import pytest

from tests.gateway.security.asking import basic, send
from tests.gateway.security.conftest import ADMIN, House
from tests.gateway.security.table import Place
from tests.gateway.test_every_route import EVIL, HANDSHAKE, every_route

# With users any Host will do, unless names are configured: a name that was made to resolve to us has no
# password of the browser's.
FOREIGN = [
    {"Origin": f"http://{EVIL}"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PLAIN = {"Content-Type": "text/plain"}
BROWSER = {"User-Agent": "Mozilla/5.0"}


@pytest.fixture
def place(house: House, name: str) -> Place:
    place = Place(house, name)
    place.make()
    return place


@pytest.mark.parametrize("foreign", FOREIGN, ids=str)
def test_no_route_serves_a_page_from_elsewhere_with_a_super_users_password(
    house: House, foreign: dict[str, str]
) -> None:
    served = []
    for method, path in every_route(house.running):
        more = HANDSHAKE if path.endswith("/stream") else {}
        status, _, _ = send(house.url, method, path, None, {**basic(ADMIN), **more, **foreign})
        if status != 403:
            served.append((method, path, status))
    assert served == []


@pytest.mark.parametrize("headers", [FORM, PLAIN], ids=["form", "plain"])
def test_a_simple_post_from_another_site_sends_nothing(place: Place, headers: dict[str, str]) -> None:
    """What a browser sends anywhere without asking first."""
    house = place.house
    body = f"Action=SendMessage&QueueUrl={place.url}&MessageBody=forged"
    shown = {**basic(ADMIN), **headers, **BROWSER}
    status, _, text = send(house.url, "POST", "/", body, {**shown, "Origin": f"http://{EVIL}"})
    assert status == 403, text
    own = {**shown, "Origin": house.url}
    if headers is FORM:
        assert send(house.url, "POST", "/", body, own)[0] == 200  # the gateway's own page may


@pytest.mark.parametrize("action", ["PurgeQueue", "DeleteQueue", "SendMessage"])
def test_a_link_or_an_image_changes_nothing(place: Place, action: str) -> None:
    where = f"/?Action={action}&QueueUrl={place.url}&MessageBody=x"
    status, _, text = send(place.house.url, "GET", where, None, {**basic(ADMIN), **BROWSER})
    assert status == 403
    assert "must be sent by POST" in text
