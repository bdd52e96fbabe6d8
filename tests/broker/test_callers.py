"""What gateways ask a node about their callers: rules by revision, signing keys, and proofs of passwords."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from postroad.broker.security_news import REMEMBERED, SecurityNews
from postroad.cluster.keys import AccessKeyValue
from postroad.cluster.users import create_key, enable_key
from postroad.errors import SecurityDisabled
from postroad.security import scram
from postroad.security.access_keys import secret_of, signing_key
from postroad.security.master_key import GATEWAY_USER, NODE_USER, machine_password
from postroad.security.principals import GATEWAY, Principal
from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from postroad.wire import callers
from tests.broker.harness import Running
from tests.broker.secured import PASSWORD, Secured, secured_node
from tests.clients.wait import until
from tests.faults.raw import RawConnection


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_node(tmp_path_factory.mktemp("callers")) as running:
        running.add_user("shop")
        yield running


def connect_as_gateway(node: Secured) -> RawConnection:
    client = node.connect()
    inside = node.inside(client)

    def identify() -> None:
        inside.login = None
        node.node.security.identify(inside, Principal(GATEWAY, GATEWAY_USER))

    node.on_loop(identify)
    return client


@pytest.fixture
def gateway(node: Secured) -> Iterator[RawConnection]:
    with connect_as_gateway(node) as client:
        yield client


def ask(client: RawConnection, question: Any) -> callers.CallersAnswer:
    answer: callers.CallersAnswer = client.call(callers, 0, question)
    return answer


# --- rules


def test_whoever_knows_nothing_is_told_all(node: Secured, gateway: RawConnection) -> None:
    right = Op.WRITE, Type.TOPIC, "orders"
    node.allow("shop", *right)
    try:
        told = ask(gateway, callers.FollowRules())
    finally:
        node.disallow("shop", *right)
    assert told.complete
    assert told.super_users == ["User:admin"]
    rule = callers.RuleText("User:shop", "*", int(Op.WRITE), 3)
    assert callers.ResourceRules(int(Type.TOPIC), 3, "orders", [rule]) in told.rules


def test_whoever_follows_is_told_what_has_changed(node: Secured, gateway: RawConnection) -> None:
    first = ask(gateway, callers.FollowRules())
    right = Op.READ, Type.GROUP, "readers"
    node.allow("shop", *right)
    second = ask(gateway, callers.FollowRules(first.incarnation, first.revision))
    assert not second.complete
    assert [(each.name, len(each.rules)) for each in second.rules] == [("readers", 1)]
    node.disallow("shop", *right)
    third = ask(gateway, callers.FollowRules(second.incarnation, second.revision))
    assert [(each.name, each.rules) for each in third.rules] == [("readers", [])]


def test_users_that_have_changed_are_told_with_what_they_are_known_by(
    node: Secured, gateway: RawConnection
) -> None:
    before = ask(gateway, callers.FollowRules(users=["shop", "nobody"]))
    assert before.users["nobody"] == callers.UserStanding()
    assert len(before.users["shop"].passwords) == 2
    node.run(node.node.topics.decide(partial(create_key, name="shop", key_id="K", key=AccessKeyValue(1))))
    after = ask(gateway, callers.FollowRules(before.incarnation, before.revision))
    assert after.users["shop"].keys == ["K"]
    assert after.users["shop"].passwords == before.users["shop"].passwords
    node.run(node.node.topics.decide(partial(enable_key, key_id="K", enabled=False)))
    disabled = ask(gateway, callers.FollowRules(after.incarnation, after.revision))
    assert disabled.users["shop"].keys == []


def test_another_process_or_a_revision_that_never_was_is_told_all(
    node: Secured, gateway: RawConnection
) -> None:
    known = ask(gateway, callers.FollowRules())
    assert ask(gateway, callers.FollowRules("another", known.revision)).complete
    assert ask(gateway, callers.FollowRules(known.incarnation, known.revision + 5)).complete
    assert ask(gateway, callers.FollowRules(known.incarnation, 0)).complete is (known.revision > 0)


def test_news_are_remembered_up_to_a_bound() -> None:
    news = SecurityNews("this", 1)
    for revision in range(2, REMEMBERED + 12):
        news.note(revision, [f"users/{revision}"])
    assert news.since("this", news.revision) == []
    assert news.since("this", news.revision - 1) == [f"users/{news.revision}"]
    assert len(news.since("this", news.revision - REMEMBERED) or []) == REMEMBERED
    assert news.since("this", news.revision - REMEMBERED - 1) is None
    assert news.since("other", news.revision) is None


async def test_who_waits_for_news_is_woken_by_them_and_by_the_nodes_end() -> None:
    news = SecurityNews("this", 1)
    waiting = asyncio.create_task(news.wait("this", 1, 60))
    await asyncio.sleep(0)
    news.note(2, ["users/shop"])
    await asyncio.wait_for(waiting, 10)
    waiting = asyncio.create_task(news.wait("this", 2, 60))
    await asyncio.sleep(0)
    news.end_waits()
    await asyncio.wait_for(waiting, 10)
    await asyncio.wait_for(news.wait("this", 2, 60), 10)  # at once from here on
    await asyncio.wait_for(news.wait("this", 1, 60), 10)


def test_a_node_that_stops_answers_who_waits_for_news(tmp_path_factory: pytest.TempPathFactory) -> None:
    with secured_node(tmp_path_factory.mktemp("stops")) as stopping:
        with connect_as_gateway(stopping) as client:
            known = ask(client, callers.FollowRules())
            question = callers.FollowRules(known.incarnation, known.revision)
            answered = client.begin(callers, 0, question)
            until(lambda: bool(stopping.node.security.news._waiting), "the question waits")
            stopping.stop()
            answer = answered()
        assert (answer.revision, answer.rules) == (known.revision, [])
        stopping.start()  # for the block's end


# --- signing keys


def today(days: int = 0) -> str:
    return (datetime.now(UTC) + timedelta(days)).strftime("%Y%m%d")


def test_a_signing_key_is_of_a_day_a_region_and_a_service(node: Secured, gateway: RawConnection) -> None:
    make = partial(create_key, name="shop", key_id="SIGNS", key=AccessKeyValue(3))
    node.run(node.node.topics.decide(make))
    found = ask(gateway, callers.FindSigningKey("SIGNS", today(), "eu-west-1", "sqs"))
    secret = secret_of(node.node.security.master_key, "SIGNS", 3)
    assert (found.user, found.signing_key) == ("shop", signing_key(secret, today(), "eu-west-1", "sqs"))
    node.run(node.node.topics.decide(partial(enable_key, key_id="SIGNS", enabled=False)))
    assert ask(gateway, callers.FindSigningKey("SIGNS", today(), "eu-west-1", "sqs")).user == ""


@pytest.mark.parametrize(("days", "is_told"), [(-9, False), (-7, True), (1, True), (3, False)])
def test_signing_keys_are_told_for_days_of_which_requests_may_come(
    node: Secured, gateway: RawConnection, days: int, is_told: bool
) -> None:
    key_id = f"DAY{days}"
    make = partial(create_key, name="shop", key_id=key_id, key=AccessKeyValue(1))
    node.run(node.node.topics.decide(make))
    found = ask(gateway, callers.FindSigningKey(key_id, today(days), "r", "sqs"))
    assert bool(found.signing_key) is is_told


@pytest.mark.parametrize("key_id", ["", "none", "shop", "../users/shop"])
def test_a_key_that_is_not_there_has_no_signing_key(gateway: RawConnection, key_id: str) -> None:
    found = ask(gateway, callers.FindSigningKey(key_id, today(), "r", "sqs"))
    assert (found.user, found.signing_key) == ("", b"")


# --- passwords


def prove(client: RawConnection, user: str, password: str) -> callers.CallersAnswer:
    how = ask(client, callers.FindSalt(user))
    salted = scram.salted_password(how.mechanism, password, how.salt, how.iterations)
    message = b"any message of a gateway"
    proof = scram.client_proof(how.mechanism, salted, message)
    return ask(client, callers.CheckProof(user, how.mechanism, message, proof))


def test_a_proof_shows_that_a_password_is_known(gateway: RawConnection) -> None:
    assert prove(gateway, "shop", PASSWORD).user == "shop"
    for user, password in (("shop", "wrong"), ("nobody", PASSWORD), ("nobody", ""), ("", "")):
        assert prove(gateway, user, password).user == ""


def test_a_proof_is_of_its_message(gateway: RawConnection) -> None:
    how = ask(gateway, callers.FindSalt("shop"))
    salted = scram.salted_password(how.mechanism, PASSWORD, how.salt, how.iterations)
    proof = scram.client_proof(how.mechanism, salted, b"one message")
    assert ask(gateway, callers.CheckProof("shop", how.mechanism, b"one message", proof)).user == "shop"
    assert ask(gateway, callers.CheckProof("shop", how.mechanism, b"another", proof)).user == ""
    assert ask(gateway, callers.CheckProof("shop", "PLAIN", b"one message", proof)).user == ""
    assert ask(gateway, callers.CheckProof("shop", how.mechanism, b"one message", b"")).user == ""


def test_users_who_are_not_there_have_a_salt_that_stays(gateway: RawConnection) -> None:
    first, second, other = (ask(gateway, callers.FindSalt(name)) for name in ("nobody", "nobody", "somebody"))
    assert first.salt == second.salt != other.salt
    users = ask(gateway, callers.FindSalt("shop"))  # by whom nobody tells them
    assert (first.iterations, len(first.salt)) == (users.iterations, len(users.salt))


def test_machines_prove_nothing_by_way_of_a_gateway(node: Secured, gateway: RawConnection) -> None:
    password = machine_password(node.node.security.master_key, NODE_USER)
    assert prove(gateway, NODE_USER, password).user == ""


def test_a_mark_tells_passwords_apart_and_shows_none(node: Secured, gateway: RawConnection) -> None:
    node.add_user("first", "one password")
    node.add_user("second", "another password")
    marks = [
        prove(gateway, name, f"{word} password").mark
        for name, word in (("first", "one"), ("second", "another"))
    ]
    assert len(set(marks)) == 2
    stored = [value.stored_key for value in node.node.image.users["first"].scram.values()]
    assert not any(mark in key or key in mark for mark in marks for key in stored)


def test_without_users_there_is_nothing_to_ask(tmp_path_factory: pytest.TempPathFactory) -> None:
    running = Running(tmp_path_factory.mktemp("open"))
    running.start()
    try:
        with RawConnection(running.bootstrap) as client:
            for question in (callers.FollowRules(), callers.FindSalt("shop")):
                assert ask(client, question).error_code == SecurityDisabled.code
    finally:
        running.stop()
