"""Lists show what the caller may see, and message ids and redrives of others can't be found by guessing."""

from __future__ import annotations

import json

import pytest

from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from tests.gateway.security.asking import rest, sqs
from tests.gateway.security.conftest import ADMIN, STRANGER, WORKER, House, Right
from tests.gateway.security.table import Place, consumer_group, message_id, redrive


@pytest.fixture
def place(house: House, name: str) -> Place:
    place = Place(house, name)
    place.make()
    return place


def shown(house: House, user: str, path: str, field: str, name: str = "name") -> list[str]:
    found = rest(house, user, "GET", f"{path}?limit=1000" if "redrives" not in path else path)
    assert found.status == 200, found
    return [each[name] for each in found.content[field]]


@pytest.mark.parametrize(
    ("path", "field", "right"),
    [
        ("/v1/topics", "topics", (Op.DESCRIBE, Type.TOPIC, "n")),
        ("/v1/subscriptions", "subscriptions", (Op.DESCRIBE, Type.GROUP, "n")),
        ("/v1/consumer-groups", "groups", (Op.DESCRIBE, Type.GROUP, "n-readers")),
    ],
)
def test_lists_show_what_may_be_described(place: Place, path: str, field: str, right: Right) -> None:
    consumer_group(place)
    house, right = place.house, place.right(right)
    assert shown(house, STRANGER, path, field) == []
    house.allow(WORKER, right)
    try:
        assert shown(house, WORKER, path, field) == [right[2]]
    finally:
        house.disallow(WORKER, right)
    assert shown(house, WORKER, path, field) == []
    assert right[2] in shown(house, ADMIN, path, field)


@pytest.mark.parametrize("right", [(Op.DESCRIBE, Type.GROUP, "n"), (Op.WRITE, Type.TOPIC, "n")])
def test_queues_are_listed_for_receivers_and_senders(place: Place, right: Right) -> None:
    house, right = place.house, place.right(right)

    def listed(user: str) -> list[str]:
        found = sqs(house, user, "ListQueues", QueueNamePrefix=place.name)
        assert found.status == 200, found
        return found.content.get("QueueUrls") or []

    assert listed(STRANGER) == []
    house.allow(WORKER, right)
    try:
        assert listed(WORKER) == [place.url]
    finally:
        house.disallow(WORKER, right)
    assert listed(ADMIN) == [place.url]


def test_a_subscription_shows_the_topics_that_may_be_described(place: Place) -> None:
    house = place.house
    place.make("-more")
    both = {"name": f"{place.name}-both", "topics": [place.name, f"{place.name}-more"]}
    assert rest(house, ADMIN, "POST", "/v1/subscriptions", both).status == 201
    rights = [place.right((Op.DESCRIBE, Type.GROUP, "n-both")), place.right((Op.READ, Type.TOPIC, "n"))]
    house.allow(WORKER, *rights)
    try:
        found = rest(house, WORKER, "GET", "/v1/subscriptions")
        details = rest(house, WORKER, "GET", f"/v1/subscriptions/{place.name}-both")
    finally:
        house.disallow(WORKER, *rights)
    assert found.content["subscriptions"][0]["topics"] == [place.name]
    assert details.status == 403


def test_redrives_are_listed_for_who_may_describe_their_subscription(place: Place) -> None:
    house, task = place.house, redrive(place)
    right = place.right((Op.DESCRIBE, Type.GROUP, "n"))
    assert shown(house, STRANGER, "/v1/redrives", "redrives", "id") == []
    house.allow(WORKER, right)
    try:
        assert shown(house, WORKER, "/v1/redrives", "redrives", "id") == [task]
        assert rest(house, WORKER, "POST", f"/v1/redrives/{task}/cancel").status == 403
    finally:
        house.disallow(WORKER, right)
    assert task in shown(house, ADMIN, "/v1/redrives", "redrives", "id")


def test_a_message_of_a_topic_that_may_not_be_seen_is_as_one_that_is_not_there(place: Place) -> None:
    house, found = place.house, message_id(place)
    hidden = rest(house, STRANGER, "GET", f"/v1/messages/{found}")
    other = Place(house, place.name + "-gone")
    other.make()
    of_no_topic = message_id(other)
    assert rest(house, ADMIN, "DELETE", f"/v1/topics/{other.name}").status == 204
    house.settle()
    missing = rest(house, STRANGER, "GET", f"/v1/messages/{of_no_topic}")
    assert (hidden.status, hidden.text) == (missing.status, missing.text)
    seen = place.right((Op.DESCRIBE, Type.TOPIC, "n"))
    house.allow(WORKER, seen)
    try:
        assert rest(house, WORKER, "GET", f"/v1/messages/{found}").status == 403
    finally:
        house.disallow(WORKER, seen)


def test_a_message_shows_its_state_in_subscriptions_that_may_be_described(place: Place) -> None:
    house, found = place.house, message_id(place)
    rights = [place.right((Op.READ, Type.TOPIC, "n"))]
    house.allow(WORKER, *rights)
    try:
        assert rest(house, WORKER, "GET", f"/v1/messages/{found}").content["subscriptions"] == []
    finally:
        house.disallow(WORKER, *rights)
    states = rest(house, ADMIN, "GET", f"/v1/messages/{found}").content["subscriptions"]
    assert [state["subscription"] for state in states] == [place.name]


def test_configs_of_a_topic_are_for_who_may_describe_them(place: Place) -> None:
    house = place.house
    sees, knows = (
        place.right((Op.DESCRIBE, Type.TOPIC, "n")),
        place.right((Op.DESCRIBE_CONFIGS, Type.TOPIC, "n")),
    )
    house.allow(WORKER, sees)
    try:
        assert rest(house, WORKER, "GET", f"/v1/topics/{place.name}").content["configs"] == {}
        house.allow(WORKER, knows)
        found = rest(house, WORKER, "GET", f"/v1/topics/{place.name}").content
        assert found["configs"]["retention.ms"] == "345600000"
    finally:
        house.disallow(WORKER, sees, knows)


def test_a_letters_headers_do_not_tell_of_topics(place: Place) -> None:
    """Anybody may write headers; what a message says of its origin is looked up for who may know of it."""
    house = place.house
    place.make("-secret")
    rights = [place.right((op, type_, "n")) for op, type_ in ((Op.READ, Type.GROUP), (Op.READ, Type.TOPIC))]
    origin = [
        ["postroad-dead-topic", place.name + "-secret"],
        ["postroad-dead-partition", "0"],
        ["postroad-dead-offset", "7"],
    ]
    path = f"/v1/topics/{place.name}/messages"
    assert rest(house, ADMIN, "POST", path, {"value": "x", "headers": origin}).status == 201
    receive = {"QueueUrl": place.url, "WaitTimeSeconds": 20, "VisibilityTimeout": 0}
    house.allow(WORKER, *rights)
    try:
        as_worker = sqs(house, WORKER, "ReceiveMessage", **receive)
    finally:
        house.disallow(WORKER, *rights)
    as_admin = sqs(house, ADMIN, "ReceiveMessage", **receive)
    ids = [json.loads(found.text)["Messages"][0]["MessageId"] for found in (as_worker, as_admin)]
    assert ids[0] != ids[1]
