"""confluent-kafka's ShareConsumer: locks that run out, attempts, and dead letters of what is given up."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from .confluent import producer, send_all, send_values
from .conftest import Broker, TopicMaker
from .share import (
    ACCEPT,
    LONG_LOCK_MS,
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
    short_lock_ms,
    take,
    work,
)
from .wait import PATIENCE_S


def test_message_whose_lock_ran_out_comes_again_and_the_delivery_is_counted(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    lock_ms = short_lock_ms(broker)
    configure(admin, broker, group)
    send_singly(broker.bootstrap, topic, 4)
    with member(broker.bootstrap, group, topic, max_poll_records=1) as first:
        answer(first, take(first, 1))
    configure(admin, broker, group, share_record_lock_duration_ms=lock_ms)
    with (
        member(broker.bootstrap, group, topic) as slow,
        member(broker.bootstrap, group, topic) as quick,
    ):
        since = time.monotonic()
        held = take(slow, 3)
        configure(admin, broker, group, share_record_lock_duration_ms=LONG_LOCK_MS)  # of the next holder
        seen = work(quick, 3, patience_s=2 * lock_ms / 1000 + PATIENCE_S)
        assert time.monotonic() - since >= lock_ms / 1000
        assert sorted(offsets(seen)) == [1, 2, 3]
        assert deliveries(seen) == [2, 2, 2]
        for message in held:
            slow.acknowledge(message)


def test_s5_late_acknowledgement_is_refused_and_the_new_holder_keeps_the_message(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    lock_ms = short_lock_ms(broker)
    configure(admin, broker, group, share_record_lock_duration_ms=lock_ms)
    send_singly(broker.bootstrap, topic, 1)
    with (
        member(broker.bootstrap, group, topic) as slow,
        member(broker.bootstrap, group, topic) as quick,
    ):
        (late,) = take(slow, 1)
        configure(admin, broker, group, share_record_lock_duration_ms=LONG_LOCK_MS)  # of the next holder
        (message,) = take(quick, 1, patience_s=2 * lock_ms / 1000 + PATIENCE_S)
        slow.acknowledge(late, REJECT)
        (error,) = slow.commit_sync(PATIENCE_S).values()
        assert error is not None
        assert error.args[0].code() == KafkaError.INVALID_RECORD_STATE
        answer(quick, [message], RELEASE)  # it is still held, so it can be given back
        (again,) = take(quick, 1)
        assert (again.offset(), again.delivery_count()) == (0, 3)
        answer(quick, [again])


def test_s3_delivery_count_rises_by_one_each_time_and_stops_at_the_limit(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    configure(admin, broker, group, share_delivery_count_limit=4)
    send_singly(broker.bootstrap, topic, 2)
    with member(broker.bootstrap, group, topic) as source:
        seen = work(source, 8, lambda message: RELEASE)
        assert_nothing_before(broker, source, topic)
    for offset in (0, 1):
        assert [message.delivery_count() for message in seen if message.offset() == offset] == [1, 2, 3, 4]


def test_subscription_without_a_limit_tries_for_ever(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group, share_delivery_count_limit=0)
    send_singly(ours.bootstrap, topic, 1)
    with member(ours.bootstrap, group, topic) as source:
        seen = work(source, 40, lambda message: RELEASE if message.delivery_count() < 40 else ACCEPT)
    assert deliveries(seen) == list(range(1, 41))


@pytest.mark.parametrize("reason", ["attempts", "rejected"])
def test_message_that_is_given_up_is_kept_whole_as_a_dead_letter(
    admin: AdminClient, ours: Broker, new_topic: TopicMaker, group: str, reason: str
) -> None:
    topic = new_topic(partitions=2)
    configure(admin, ours, group, share_delivery_count_limit=3)
    original = {
        "value": b"\x00\xff value",
        "key": b"a key",
        "headers": [("trace", b"\x01\x02"), ("trace", b"again"), ("nothing", None)],
        "timestamp": 1_700_000_000_123,
        "partition": 1,
    }
    before_ms = int(time.time() * 1000)
    send_all(producer(ours.bootstrap), topic, [{"value": b"before", "partition": 1}, original])
    fate = RELEASE if reason == "attempts" else REJECT
    count = 4 if reason == "attempts" else 2
    with member(ours.bootstrap, group, topic) as source:
        work(source, count, lambda message: ACCEPT if message.value() == b"before" else fate)
        (letter,) = dead_letters(ours.bootstrap, group, 1)
    assert (letter.value(), letter.key()) == (original["value"], original["key"])
    headers = letter.headers()
    assert headers[:3] == original["headers"]
    notes = dict(headers[3:])
    assert notes["postroad-dead-topic"] == topic.encode()
    assert notes["postroad-dead-partition"] == b"1"
    assert notes["postroad-dead-offset"] == b"1"
    assert notes["postroad-dead-subscription"] == group.encode()
    assert notes["postroad-dead-reason"] == reason.encode()
    assert notes["postroad-dead-deliveries"] == (b"3" if reason == "attempts" else b"1")
    first, last, at = (
        int(notes[f"postroad-dead-{name}"]) for name in ("first-delivery", "last-delivery", "at")
    )
    assert before_ms <= first <= last <= at <= time.time() * 1000
    assert notes["postroad-dead-timestamp"] == b"1700000000123"
    assert letter.timestamp()[1] == at, "or retention would count from the message's birth"
    assert (first < last) == (reason == "attempts")


def test_message_without_key_and_value_is_a_dead_letter_without_them(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group)
    send_all(producer(ours.bootstrap), topic, [{"value": None}])
    with member(ours.bootstrap, group, topic) as source:
        answer(source, take(source, 1), REJECT)
        (letter,) = dead_letters(ours.bootstrap, group, 1)
    assert (letter.key(), letter.value()) == (None, None)


def test_lock_that_runs_out_on_the_last_attempt_makes_a_dead_letter(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    lock_ms = short_lock_ms(ours)
    configure(admin, ours, group, share_delivery_count_limit=1, share_record_lock_duration_ms=lock_ms)
    send_singly(ours.bootstrap, topic, 1)
    with member(ours.bootstrap, group, topic) as source:
        (message,) = take(source, 1)
        (letter,) = dead_letters(ours.bootstrap, group, 1)
        assert dict(letter.headers())["postroad-dead-reason"] == b"attempts"
        source.acknowledge(message)


def test_dead_letters_may_have_a_topic_of_another_name(
    admin: AdminClient, ours: Broker, topic: str, new_topic: TopicMaker, group: str
) -> None:
    graveyard = new_topic(partitions=3)
    configure(admin, ours, group, errors_deadletterqueue_topic_name=graveyard)
    send_values(ours.bootstrap, topic, 5)
    with member(ours.bootstrap, group, topic) as source:
        answer(source, take(source, 5), REJECT)
        letters = dead_letters(ours.bootstrap, group, 5, graveyard)
    assert sorted(letter.value() for letter in letters) == [b"0", b"1", b"2", b"3", b"4"]


def test_dead_letters_can_be_switched_off(admin: AdminClient, ours: Broker, topic: str, group: str) -> None:
    configure(admin, ours, group, postroad_dead_letters="false")
    send_values(ours.bootstrap, topic, 5)
    with member(ours.bootstrap, group, topic) as source:
        answer(source, take(source, 5), REJECT)
        assert_nothing_before(ours, source, topic)
    assert f"{group}.dead" not in admin.list_topics(timeout=10).topics


def test_dead_letters_of_a_thousand_messages_are_all_there_once(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group)
    send_values(ours.bootstrap, topic, 1000)
    with member(ours.bootstrap, group, topic) as source:
        work(source, 1000, lambda message: REJECT if message.offset() % 2 else ACCEPT)
        letters = dead_letters(ours.bootstrap, group, 500)
    assert sorted(int(letter.value()) for letter in letters) == list(range(1, 1000, 2))
