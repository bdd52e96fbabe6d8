"""What rights cost a client that repeats itself: comparisons of integers, and no calls.

Calls of Python functions are counted in the node itself: unlike seconds they are the same on any machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import pytest

from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from tests.broker.fetching import fetch_request, offsets_of, only, receive, send, wanted
from tests.broker.harness import Running, running_node
from tests.broker.secured import Secured, log_in, scram_client, secured_node
from tests.broker.test_short_ways import answers, produced
from tests.clients.wait import until
from tests.faults.raw import RawConnection

VERSION, TURNS = 12, 30
PRICE_MAX = 1.01  # of a request without rights
TOPIC_DENIED = 29

Turn = Callable[[RawConnection, str, int], None]


@pytest.fixture(scope="module")
def unguarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_node(tmp_path_factory.mktemp("open"), http_enabled="false") as node:
        yield node


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_node(tmp_path_factory.mktemp("secured")) as node:
        node.add_user("user")
        yield node


def produce_one(connection: RawConnection, topic: str, number: int) -> None:
    connection.send(produced(topic, number, 9, b"%d" % number))
    assert answers(connection, 9, 1)[0][1] == 0


def fetch_one(connection: RawConnection, topic: str, number: int) -> None:
    send(connection, fetch_request(topic, wanted(offset=number, max_bytes=1)), VERSION, number)
    assert offsets_of(only(receive(connection))) == [number]


def fetch_at_end(connection: RawConnection, topic: str, number: int) -> None:
    """By a consumer that waits, in vain."""
    send(connection, fetch_request(topic, wanted(offset=TURNS), wait_ms=1), VERSION, number)
    assert offsets_of(only(receive(connection))) == []


def calls_of(running: Running, connection: RawConnection, topic: str, turn: Turn) -> int:
    """The calls of Python functions that one request takes in the node's thread.

    The fewest of some requests: now and then the node does something else, too.
    """
    count = 0

    def note(_: FrameType, event: str, __: Any) -> None:
        nonlocal count
        count += event == "call"

    def calls(do: Callable[[], object]) -> int:
        before = count
        do()
        running.on_loop(lambda: None)  # the turn that answered is over
        return count - before

    turn(connection, topic, 0)  # what follows repeats it
    running.on_loop(lambda: sys.setprofile(note))
    try:
        own = min(calls(lambda: None) for _ in range(TURNS))
        return min(calls(partial(turn, connection, topic, number)) for number in range(1, TURNS)) - own
    finally:
        running.on_loop(lambda: sys.setprofile(None))


@pytest.mark.parametrize("turn", [produce_one, fetch_one, fetch_at_end], ids=lambda turn: turn.__name__)
def test_a_repeated_request_costs_no_more_calls_with_rights(
    unguarded: Running, secured: Secured, topic: str, turn: Turn
) -> None:
    for node in (unguarded, secured):
        node.create(topic)
    for right in (Op.WRITE, Op.READ):
        secured.allow("user", right, Type.TOPIC, topic)
    with unguarded.connect() as anybody, secured.connect() as user:
        assert log_in(user, scram_client("user")) == 0
        for number in range(TURNS):
            produce_one(anybody, topic, number)
            produce_one(user, topic, number)
        without = calls_of(unguarded, anybody, topic, turn)
        assert without > 10
        assert calls_of(secured, user, topic, turn) <= PRICE_MAX * without


def test_a_waiting_fetch_is_not_allowed_by_a_later_one_of_another_topic(secured: Secured) -> None:
    """Both on one connection: the rules are looked at for each of them."""
    for name in ("taken", "kept"):
        secured.create(name)
        secured.allow("reader", Op.READ, Type.TOPIC, name)
    with secured.connect_as("reader") as client, secured.connect_as("admin") as admin:
        produce_one(admin, "taken", 0)
        for offset in range(2):  # the second one waits, by the short way
            send(client, fetch_request("taken", wanted(offset=offset), wait_ms=20_000), VERSION, offset)
        receive(client)
        inside = secured.inside(client)
        until(lambda: not inside.answered_all, "the fetch waits")
        secured.disallow("reader", Op.READ, Type.TOPIC, "taken")
        send(client, fetch_request("kept", wanted()), VERSION, 3)
        until(lambda: inside.last_fetch and inside.last_fetch.wanted.topic == "kept", "it was answered")
        produce_one(admin, "taken", 1)
        refused = only(receive(client))
        assert (refused.error_code, bytes(refused.records or b"")) == (TOPIC_DENIED, b"")
        assert only(receive(client)).error_code == 0
