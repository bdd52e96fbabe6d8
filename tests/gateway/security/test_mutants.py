"""Faults in who is let in and what is allowed, each of which a request must show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from postroad.errors import TopicAuthorizationFailed
from postroad.gateway.security import rights
from postroad.gateway.security.access import Access, UserAccess
from postroad.gateway.security.credentials import Credentials
from postroad.gateway.security.sessions import Sessions, Standing
from postroad.gateway.sqs import queues, sigv4
from postroad.gateway.sqs.service import Service
from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from postroad.security.rules import Rules
from tests.gateway.security.asking import basic, rest, send, sqs
from tests.gateway.security.conftest import ADMIN, STRANGER, WORKER, House
from tests.gateway.security.table import Place
from tests.gateway.security.test_signatures import list_signed

Look = Callable[[Place], bool]
"""Whether everything is as it should be."""


@pytest.fixture
def place(house: House, name: str) -> Place:
    place = Place(house, name)
    place.make()
    return place


# --- what is looked at


def wrong_secrets_sign_nothing(place: Place) -> bool:
    house = place.house
    return list_signed(house, house.keys[ADMIN], house.secret(house.keys[STRANGER]))[0] == 403


def wrong_passwords_let_nobody_in(place: Place) -> bool:
    house = place.house
    statuses = [
        send(house.url, "GET", "/v1/topics", None, basic(WORKER, password))[0]
        for password in ("open, sesame = yes", "wrong")
    ]
    return statuses == [200, 401]


def disabled_keys_sign_nothing(place: Place) -> bool:
    house = place.house
    key_id = house.add_key(STRANGER)
    first = list_signed(house, key_id, house.secret(key_id))[0]
    house.enable_key(key_id, enabled=False)
    second = list_signed(house, key_id, house.secret(key_id))[0]
    house.delete_key(key_id)
    return (first, second) == (200, 403)


def rights_end(place: Place) -> bool:
    house, right = place.house, place.right((Op.WRITE, Type.TOPIC, "n"))
    statuses = []
    for change in (house.allow, house.disallow):
        change(WORKER, right)
        path = f"/v1/topics/{place.name}/messages"
        statuses.append(rest(house, WORKER, "POST", path, {"value": "x"}).status)
    return statuses == [201, 403]


def receivers_need_the_topic(place: Place) -> bool:
    house, right = place.house, place.right((Op.READ, Type.GROUP, "n"))
    house.allow(WORKER, right)
    try:
        over_sqs = sqs(house, WORKER, "ReceiveMessage", QueueUrl=place.url)
        over_rest = rest(house, WORKER, "POST", f"/v1/subscriptions/{place.name}/receive", {})
    finally:
        house.disallow(WORKER, right)
    return (over_sqs.status, over_rest.status) == (403, 403)


def queues_of_others_are_hidden(place: Place) -> bool:
    found = sqs(place.house, STRANGER, "GetQueueUrl", QueueName=place.name)
    return found.code == "NonExistentQueue"


def senders_need_the_topic(place: Place) -> bool:
    """By its group alone a user may know of the queue."""
    house, right = place.house, place.right((Op.DESCRIBE, Type.GROUP, "n"))
    house.allow(WORKER, right)
    try:
        refused = sqs(house, WORKER, "SendMessage", QueueUrl=place.url, MessageBody="x")
        batch = sqs(
            house, WORKER, "SendMessageBatch", QueueUrl=place.url, Entries=[{"Id": "a", "MessageBody": "x"}]
        )
    finally:
        house.disallow(WORKER, right)
    return (refused.code, batch.code) == ("AccessDenied", "AccessDenied")


def names_tell_strangers_nothing(place: Place) -> bool:
    """Whether a queue is there or not, and what topic it reads: its senders hear the same."""
    named = {"name": f"{place.name}-sub", "topics": [place.name]}
    assert rest(place.house, ADMIN, "POST", "/v1/subscriptions", named).status in (201, 409)
    texts = [
        sqs(
            place.house,
            STRANGER,
            "SendMessage",
            QueueUrl=f"{place.house.url}/000000000000/{name}",
            MessageBody="x",
        ).text.replace(name, "n")
        for name in (f"{place.name}-sub", "of-nobody")
    ]
    return texts[0] == texts[1]


# --- faults


def _no_check(*_: object) -> None:
    return None


def _digest_of_the_name(_: Credentials, user: str, __: str) -> bytes:
    return user.encode()


def _never_forgets(access: UserAccess, operation: int, type_: int, name: str) -> bool:
    question = operation, type_, name
    if question not in access._decided:
        access._decided[question] = access._rules.allows(access.principal, access.host, *question)
    return access._decided[question]


_put = Rules.put


def _adds_only(rules: Rules, resource: Any, found: Any) -> None:
    if found:
        _put(rules, resource, found)


_check = rights.check


async def _group_alone(access: Access, wanted: rights.Rights, *more: Any, **named: Any) -> None:
    await _check(access, wanted._replace(topics=None), *more, **named)


def _topics_are_free(access: Access, name: str, operation: Op) -> None:
    if operation is not Op.WRITE and not access.may_topic(name, operation):
        raise TopicAuthorizationFailed


@pytest.mark.parametrize(
    ("look", "where", "name", "mutant"),
    [
        (wrong_secrets_sign_nothing, sigv4, "check", _no_check),
        (wrong_passwords_let_nobody_in, Credentials, "_digest", _digest_of_the_name),
        (disabled_keys_sign_nothing, Sessions, "review", _no_check),
        (disabled_keys_sign_nothing, Standing, "admits", lambda *_: True),
        (rights_end, UserAccess, "allows", _never_forgets),
        (rights_end, Rules, "put", _adds_only),
        (receivers_need_the_topic, rights, "check", _group_alone),
        (queues_of_others_are_hidden, Service, "may_see", staticmethod(lambda *_: True)),
        (senders_need_the_topic, UserAccess, "check_topic", _topics_are_free),
        (names_tell_strangers_nothing, queues, "check_sender", _no_check),
    ],
)
def test_a_fault_is_seen(
    place: Place, look: Look, where: Any, name: str, mutant: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert look(place)
    with monkeypatch.context() as patched:
        patched.setattr(where, name, mutant)
        assert not look(place)
