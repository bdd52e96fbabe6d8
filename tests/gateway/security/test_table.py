"""Every action of SQS and every endpoint of REST, asked by nobody, by a user without rights, by one who lacks
any one of the rights in the table, by one who has them, and by a super user."""

from __future__ import annotations

import re
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from postroad.gateway.dialects import DIALECTS
from postroad.gateway.rest.routes import ENDPOINTS
from postroad.gateway.security.rights import ATTRIBUTE, Rights
from postroad.gateway.sqs.actions import ACTIONS
from postroad.security.resources import Permission
from tests.gateway.security.asking import rest, sqs
from tests.gateway.security.conftest import ADMIN, STRANGER, WORKER, House
from tests.gateway.security.table import REST, SQS, Case, Place

CASES = [*SQS, *REST]
DENIALS = {403, 404}
# What shows only what the caller may see; `test_lists.py` asks these.
LISTS = {
    "ListQueues",
    "GET /v1/topics",
    "GET /v1/subscriptions",
    "GET /v1/consumer-groups",
    "GET /v1/redrives",
    "GET /v1/figures",
    "GET /v1/history",
}
FOR_ALL_USERS = {"GET /v1/configs"}  # what all Postroads have alike
ELSEWHERE = {"CancelMessageMoveTask"}  # `test_moves.py`


@pytest.fixture
def place(house: House, name: str) -> Place:
    place = Place(house, name)
    place.make()
    return place


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


def test_every_action_and_every_endpoint_is_asked_here() -> None:
    asked = {str(case).partition("-")[0] for case in SQS}
    assert {*ACTIONS} - asked - LISTS - ELSEWHERE == set()
    assert all(action.rights.is_declared for action in ACTIONS.values())
    shapes = {re.sub(r"\{\w+\}(-\w+)?|(?<=nodes/)9", "*", str(case).partition("?")[0]) for case in REST}
    shapes = {re.sub(r"(\*|topics|subscriptions|messages|redrive)-[\w-]*$", r"\1", shape) for shape in shapes}
    for endpoint in ENDPOINTS:
        name = f"{endpoint.method} {endpoint.path}"
        assert endpoint.rights.is_declared
        assert name in LISTS | FOR_ALL_USERS or re.sub(r"\{\w+\}", "*", name) in shapes, name


def test_every_route_declares_what_it_asks_for(house: House) -> None:
    """A new one without a word about rights is found here."""
    for routes in DIALECTS:
        for route in routes(house.running.gateway):
            assert isinstance(route, web.RouteDef)
            rights = getattr(route.handler, ATTRIBUTE, None)
            assert isinstance(rights, Rights), route
            assert rights.is_declared, route


def test_each_is_refused_to_nobody_to_strangers_and_without_any_one_of_its_rights(
    house: House, place: Place, case: Case
) -> None:
    prepared = case.prepare(place)
    nobody = case.ask(place, None, prepared)
    assert (nobody.status, nobody.code) in [
        (403, "MissingAuthenticationToken"),
        (401, "unauthenticated"),
        (401, ""),
    ]
    stranger = case.ask(place, STRANGER, prepared)
    assert stranger.status in {400, *DENIALS}
    assert stranger.code == case.denial
    nowhere = Place(house, place.name + "-none")
    elsewhere = case.ask(nowhere, STRANGER, prepared)
    assert (elsewhere.status, elsewhere.code) == (stranger.status, stranger.code)
    assert elsewhere.text.replace(nowhere.name, place.name) == stranger.text  # whether it is there or not
    rights = [place.right(right) for right in case.rights]
    for missing in rights if len(rights) > 1 else []:
        some = [right for right in rights if right is not missing]
        house.allow(WORKER, *some)
        refused = case.ask(place, WORKER, prepared)
        house.disallow(WORKER, *some)
        assert refused.status in {400, *DENIALS}, (missing, refused)
        assert refused.code != case.success or not case.success, (missing, refused)


def test_each_is_done_for_who_has_the_rights(house: House, place: Place, case: Case) -> None:
    prepared = case.prepare(place)
    rights = [place.right(right) for right in case.rights]
    house.allow(WORKER, *rights)
    try:
        done = case.ask(place, WORKER, prepared)
    finally:
        house.disallow(WORKER, *rights)
    assert done.code == case.success, done
    assert done.status < 300 or case.success, done


def test_each_is_done_for_a_super_user(house: House, place: Place, case: Case) -> None:
    done = case.ask(place, ADMIN, case.prepare(place))
    assert done.code == case.success, done
    assert done.status < 300 or case.success, done


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/docs", "/openapi.json"])
def test_what_tells_nothing_is_shown_to_everybody(house: House, path: str) -> None:
    connection = HTTPConnection(urlsplit(house.url).netloc, timeout=30)
    connection.request("GET", path)
    assert connection.getresponse().status == 200
    connection.close()


def test_a_denial_beats_what_allows(house: House, place: Place) -> None:
    rights = [place.right((4, 2, "n"))]
    house.allow(WORKER, *rights)
    house.node.allow(WORKER, *rights[0], permission=Permission.DENY)
    house.settle()
    assert rest(house, WORKER, "POST", f"/v1/topics/{place.name}/messages", {"value": "x"}).status == 403
    refused = sqs(house, WORKER, "SendMessage", QueueUrl=place.url, MessageBody="x")
    assert (refused.status, refused.code) == (403, "AccessDenied")
