"""Operators at work while stock consumers are: peek, purge, seek and redrive by the command line."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from postroad.cli import main

from .confluent import producer, send_all, send_values
from .conftest import Broker
from .share import (
    REJECT,
    RELEASE,
    answer,
    assert_nothing_before,
    configure,
    dead_letters,
    deliveries,
    member,
    offsets,
    send_singly,
    take,
    values,
    work,
)
from .wait import PATIENCE_S, until

Command = Callable[..., str]


@pytest.fixture
def run(ours: Broker) -> Command:
    """`run("subscription", "peek", …)`: what it writes; it must succeed."""

    def call(*arguments: str) -> str:
        done = CliRunner().invoke(main, [*arguments, "--bootstrap", ours.bootstrap])
        assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
        return done.stdout

    return call


def test_subscription_made_by_hand_serves_a_stock_consumer(
    ours: Broker, run: Command, topic: str, group: str
) -> None:
    send_values(ours.bootstrap, topic, 5)
    run(
        "subscription",
        "create",
        group,
        "--topic",
        topic,
        "--start",
        "earliest",
        "--lock",
        "5s",
        "--attempts",
        "2",
    )
    with member(ours.bootstrap, group, topic) as source:
        seen = work(source, 10, lambda message: RELEASE)
        assert_nothing_before(ours, source, topic)
    assert sorted(offsets(seen)) == sorted([*range(5), *range(5)])
    assert len(dead_letters(ours.bootstrap, group, 5)) == 5


def test_peek_tells_what_becomes_of_each_message_and_touches_none(
    admin: AdminClient, ours: Broker, run: Command, topic: str, group: str
) -> None:
    configure(admin, ours, group, postroad_backoff_initial_ms=600_000)
    send_singly(ours.bootstrap, topic, 6)
    with member(ours.bootstrap, group, topic, max_poll_records=4) as source:
        held = take(source, 4)
        source.acknowledge(held[0])
        source.acknowledge(held[1], RELEASE)
        source.commit_sync(PATIENCE_S)
        for _ in range(2):
            seen = peeked(run, group)
            assert {m["offset"]: (m["state"], m["deliveries"]) for m in seen} == {
                1: ("delayed", 1),
                2: ("held", 1),
                3: ("held", 1),
                4: ("available", 0),
                5: ("available", 0),
            }
        answer(source, held[2:])
        assert offsets(take(source, 2)) == [4, 5]
        source.acknowledge_offset(topic, 0, 4)
        source.acknowledge_offset(topic, 0, 5)


def peeked(run: Command, group: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("subscription", "peek", group, "--json"))
    return found


def test_purge_is_done_with_what_is_there_also_with_what_is_held(
    admin: AdminClient, ours: Broker, run: Command, topic: str, group: str
) -> None:
    configure(admin, ours, group)
    send_singly(ours.bootstrap, topic, 10)
    with member(ours.bootstrap, group, topic, max_poll_records=3) as source:
        held = take(source, 3)
        run("subscription", "purge", group, "--yes")
        for message in held:
            source.acknowledge(message, RELEASE)
        source.commit_sync(PATIENCE_S)  # whatever it says: these are gone
        assert_nothing_before(ours, source, topic)


def test_messages_come_again_after_a_seek_and_old_locks_count_for_nothing(
    admin: AdminClient, ours: Broker, run: Command, topic: str, group: str
) -> None:
    configure(admin, ours, group)
    send_singly(ours.bootstrap, topic, 10)
    with member(ours.bootstrap, group, topic, max_poll_records=8) as source:
        held = take(source, 8)
        answer(source, held[:5])
        run("subscription", "seek", group, "--to", "3")
        source.acknowledge(held[5])
        source.acknowledge(held[6])
        source.acknowledge(held[7])
        (error,) = source.commit_sync(PATIENCE_S).values()
        assert error is not None
        assert error.args[0].code() == KafkaError.INVALID_RECORD_STATE
        seen = work(source, 7)
    assert sorted(offsets(seen)) == [3, 4, 5, 6, 7, 8, 9]
    assert set(deliveries(seen)) == {1}


def test_seek_to_a_time(admin: AdminClient, ours: Broker, run: Command, topic: str, group: str) -> None:
    configure(admin, ours, group)
    two_hours_ago = int(time.time() * 1000) - 2 * 3_600_000
    send_all(
        producer(ours.bootstrap), topic, ({"value": b"old", "timestamp": two_hours_ago} for _ in range(5))
    )
    send_values(ours.bootstrap, topic, 5)
    with member(ours.bootstrap, group, topic) as source:
        work(source, 10)
        run("subscription", "seek", group, "--to", "1h")
        assert offsets(work(source, 5)) == [5, 6, 7, 8, 9]


def test_redriven_dead_letters_are_delivered_as_new_messages(
    admin: AdminClient, ours: Broker, run: Command, topic: str, group: str
) -> None:
    configure(admin, ours, group)
    send_values(ours.bootstrap, topic, 6)
    with member(ours.bootstrap, group, topic) as source:
        work(source, 6, lambda message: REJECT)
        dead_letters(ours.bootstrap, group, 6)
        run("redrive", group)
        seen = work(source, 6)
        assert sorted(values(seen)) == [b"0", b"1", b"2", b"3", b"4", b"5"]
        assert {message.delivery_count() for message in seen} == {1}
        assert not [name for m in seen for name, _ in m.headers() or [] if name.startswith("postroad-dead")]
        run("redrive", group)
        assert_nothing_before(ours, source, topic)


def test_description_counts_what_stock_members_hold(
    admin: AdminClient, ours: Broker, run: Command, topic: str, group: str
) -> None:
    configure(admin, ours, group)
    send_singly(ours.bootstrap, topic, 10)
    with member(ours.bootstrap, group, topic, max_poll_records=4) as source:
        held = take(source, 4)
        told = json.loads(run("subscription", "describe", group, "--json"))
        (partition,) = told["partitions"]
        assert (partition["lag"], partition["in_flight"]) == (10, 4)
        answer(source, held)
        told = json.loads(run("subscription", "describe", group, "--json"))
        assert told["partitions"][0]["lag"] == 6
        assert len(told["members"]) == 1
    until(
        lambda: not json.loads(run("subscription", "describe", group, "--json"))["members"], "nobody is left"
    )
