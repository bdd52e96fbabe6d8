"""Streams and tails of users: who may open one, and that it ends when its right, password or user does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

import pytest
import websockets.sync.client
from websockets.exceptions import ConnectionClosed, InvalidStatus

from postroad.cluster.users import change_user
from postroad.gateway.push.stream import FORBIDDEN
from postroad.security.resources import Operation as Op
from postroad.security.resources import Permission
from postroad.security.resources import ResourceType as Type
from postroad.security.sasl import SCRAM_SHA_256, SCRAM_SHA_512
from tests.broker.secured import verifier
from tests.gateway.security.asking import basic, rest, sqs
from tests.gateway.security.conftest import ADMIN, STRANGER, House, Right
from tests.gateway.security.table import Place

TIMEOUT_S = 30
READS = ((Op.READ, Type.GROUP, "n"), (Op.READ, Type.TOPIC, "n"))


@pytest.fixture
def place(house: House, name: str) -> Place:
    place = Place(house, name)
    place.make()
    return place


@pytest.fixture
def reader(place: Place) -> Iterator[str]:
    """A user who may receive."""
    name = f"reader-of-{place.name}"
    place.house.add_user(name)
    place.house.allow(name, *map(place.right, READS))
    yield name
    place.house.disallow(name, *map(place.right, READS))


def connect(place: Place, headers: dict[str, str]) -> Any:
    where = f"ws{place.house.url.removeprefix('http')}/v1/subscriptions/{place.name}/stream?credit=10"
    return websockets.sync.client.connect(where, additional_headers=headers, open_timeout=TIMEOUT_S)


def frames_until_closed(socket: Any) -> list[str]:
    frames = []
    try:
        while True:
            frames.append(socket.recv(TIMEOUT_S))
    except ConnectionClosed:
        return frames


def refusal(place: Place, headers: dict[str, str]) -> int:
    with pytest.raises(InvalidStatus) as refused:
        connect(place, headers)
    return int(refused.value.response.status_code)


def test_nobody_and_strangers_get_no_stream(place: Place) -> None:
    assert refusal(place, {}) == 401
    assert refusal(place, basic(STRANGER)) == 403
    assert refusal(Place(place.house, "of-nobody"), basic(STRANGER)) == 403
    assert refusal(Place(place.house, "of-nobody"), basic(ADMIN)) == 404


@pytest.mark.parametrize("missing", READS)
def test_a_stream_takes_both_rights(place: Place, reader: str, missing: Right) -> None:
    place.house.disallow(reader, place.right(missing))
    assert refusal(place, basic(reader)) == 403
    place.house.allow(reader, place.right(missing))
    with connect(place, basic(reader)):
        pass


def test_a_super_user_needs_no_rights(place: Place) -> None:
    place.send("hello")
    with connect(place, basic(ADMIN)) as socket:
        assert json.loads(socket.recv(TIMEOUT_S))["value"] == "hello"


def test_a_transaction_over_a_stream_publishes_only_where_its_user_may(place: Place, reader: str) -> None:
    place.send("held")
    wanted = {"type": "transaction", "request": 1, "publish": [{"topic": place.name, "value": "mine"}]}
    with connect(place, basic(reader)) as socket:
        held = json.loads(socket.recv(TIMEOUT_S))
        frame = json.dumps({**wanted, "ids": [held["id"]]})
        socket.send(frame)
        refused = json.loads(socket.recv(TIMEOUT_S))
        assert (refused["type"], refused["request"]) == ("refused", 1)
        assert "Write" in json.dumps(refused)
        place.house.allow(reader, place.right((Op.WRITE, Type.TOPIC, "n")))
        socket.send(frame)
        answers = [json.loads(socket.recv(TIMEOUT_S)) for _ in range(2)]  # the message comes back, too
        place.house.disallow(reader, place.right((Op.WRITE, Type.TOPIC, "n")))
    assert {answer["type"] for answer in answers} == {"committed", "message"}


def loses_right(place: Place, reader: str) -> None:
    place.house.disallow(reader, place.right(READS[1]))


def is_denied(place: Place, reader: str) -> None:
    place.house.node.allow(reader, *place.right(READS[0]), permission=Permission.DENY)


def is_deleted(place: Place, reader: str) -> None:
    place.house.node.delete_user(reader)


def has_another_password(place: Place, reader: str) -> None:
    put = {each: verifier(each, "another") for each in (SCRAM_SHA_256, SCRAM_SHA_512)}
    topics = place.house.node.node.topics
    place.house.node.run(topics.decide(partial(change_user, name=reader, put=put, deleted=[])))


ENDINGS = [loses_right, is_denied, is_deleted, has_another_password]


@pytest.mark.parametrize("happens", ENDINGS, ids=lambda each: each.__name__)
def test_an_open_stream_ends_with_its_right(
    place: Place, reader: str, happens: Callable[[Place, str], None]
) -> None:
    """What it held goes to others at once."""
    place.send("held")
    with connect(place, basic(reader)) as socket:
        assert json.loads(socket.recv(TIMEOUT_S))["value"] == "held"
        happens(place, reader)
        frames = frames_until_closed(socket)
    assert [json.loads(frame)["type"] for frame in frames] == ["error"]
    assert socket.close_code == FORBIDDEN
    found = sqs(place.house, ADMIN, "ReceiveMessage", QueueUrl=place.url, WaitTimeSeconds=20)
    assert [message["Body"] for message in found.content["Messages"]] == ["held"]


def test_a_stream_goes_on_while_others_rights_change(place: Place, reader: str) -> None:
    house = place.house
    with connect(place, basic(reader)) as socket:
        house.allow(STRANGER, place.right(READS[0]))
        house.disallow(STRANGER, place.right(READS[0]))
        house.add_key(reader)
        house.settle()
        place.send("still here")
        assert json.loads(socket.recv(TIMEOUT_S))["value"] == "still here"


def test_messages_of_a_topic_that_came_later_are_not_for_who_may_not_read_it(
    place: Place, reader: str
) -> None:
    place.make("-more")
    topics = {"topics": [place.name, f"{place.name}-more"]}
    with connect(place, basic(reader)) as socket:
        changed = rest(place.house, ADMIN, "PATCH", f"/v1/subscriptions/{place.name}", topics)
        assert changed.status == 200, changed
        secret = {"value": "secret"}
        sent = rest(place.house, ADMIN, "POST", f"/v1/topics/{place.name}-more/messages", secret)
        assert sent.status == 201
        assert "secret" not in "".join(map(str, frames_until_closed(socket)))
    assert socket.close_code == FORBIDDEN


# --- tails


def tail(place: Place, headers: dict[str, str]) -> tuple[HTTPConnection, HTTPResponse]:
    connection = HTTPConnection(urlsplit(place.house.url).netloc, timeout=TIMEOUT_S)
    connection.request("GET", f"/v1/topics/{place.name}/tail?from=beginning", headers=headers)
    return connection, connection.getresponse()


@pytest.mark.parametrize(("headers", "status"), [({}, 401), (basic(STRANGER), 403)])
def test_nobody_and_strangers_get_no_tail(place: Place, headers: dict[str, str], status: int) -> None:
    connection, response = tail(place, headers)
    assert response.status == status
    connection.close()


def test_an_open_tail_ends_with_its_right(place: Place, reader: str) -> None:
    place.send("shown")
    connection, response = tail(place, basic(reader))
    assert response.status == 200
    while b"shown" not in response.readline():
        pass
    loses_right(place, reader)
    place.send("hidden")
    rest_of_it = response.read()
    assert b"event: error" in rest_of_it
    assert b"hidden" not in rest_of_it
    connection.close()
