"""confluent-kafka's ShareConsumer: what accept, release and reject do, implicitly and explicitly."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient

from .confluent import EVERY_COMPRESSION, producer, send_all, send_values
from .conftest import Broker
from .share import (
    ACCEPT,
    REJECT,
    RELEASE,
    answer,
    assert_nothing_before,
    configure,
    confirm,
    deliveries,
    member,
    offsets,
    poll,
    send_singly,
    take,
    values,
    work,
)
from .wait import PATIENCE_S, until


@pytest.fixture(autouse=True)
def _subscription(admin: AdminClient, broker: Broker, group: str) -> None:
    configure(admin, broker, group)


def test_implicit_member_accepts_what_a_poll_gave_with_its_next_poll(
    broker: Broker, topic: str, group: str
) -> None:
    send_values(broker.bootstrap, topic, 20)
    with member(broker.bootstrap, group, topic, share_acknowledgement_mode="implicit") as first:
        assert len(take(first, 20)) == 20
        assert poll(first) == []
        with member(broker.bootstrap, group, topic) as second:
            send_values(broker.bootstrap, topic, 1)
            # Whoever gets it: it is the only one that is left.
            until(lambda: offsets(poll(first) + poll(second)) == [20], "the one message that is new")


def test_implicit_member_accepts_what_a_poll_gave_when_it_commits(
    broker: Broker, topic: str, group: str
) -> None:
    send_values(broker.bootstrap, topic, 20)
    with member(broker.bootstrap, group, topic, share_acknowledgement_mode="implicit") as first:
        take(first, 20)
        confirm(first)
    with member(broker.bootstrap, group, topic) as second:
        assert_nothing_before(broker, second, topic)


def test_acknowledgements_that_travel_with_the_close_count_too(
    broker: Broker, topic: str, group: str
) -> None:
    send_values(broker.bootstrap, topic, 20)
    with member(broker.bootstrap, group, topic) as first:
        for message in take(first, 20):
            first.acknowledge(message)
    with member(broker.bootstrap, group, topic) as second:
        assert_nothing_before(broker, second, topic)


def test_explicitly_accepted_messages_never_come_again(broker: Broker, topic: str, group: str) -> None:
    send_values(broker.bootstrap, topic, 20)
    with member(broker.bootstrap, group, topic) as first:
        messages = take(first, 20)
        assert offsets(messages) == list(range(20))
        assert deliveries(messages) == [1] * 20
        answer(first, messages)
    with member(broker.bootstrap, group, topic) as second:
        assert_nothing_before(broker, second, topic)


def test_acknowledgements_that_travel_with_the_next_poll_count_too(
    broker: Broker, topic: str, group: str
) -> None:
    told: dict[int, KafkaException | None] = {}
    send_values(broker.bootstrap, topic, 10)
    with member(broker.bootstrap, group, topic) as source:
        source.set_acknowledgement_commit_callback(
            lambda places, error: told.update(dict.fromkeys(set().union(*places.values()), error))
        )
        for message in take(source, 10):
            source.acknowledge(message)
        until(lambda: poll(source) or told, "the broker's word on the acknowledgements")
        assert told == dict.fromkeys(range(10), None)
        assert_nothing_before(broker, source, topic)


def test_released_message_comes_again_at_once_and_the_delivery_is_counted(
    broker: Broker, topic: str, group: str
) -> None:
    send_values(broker.bootstrap, topic, 1)
    with member(broker.bootstrap, group, topic) as source:
        for delivery in (1, 2, 3):
            (message,) = take(source, 1)
            assert (message.offset(), message.delivery_count()) == (0, delivery)
            answer(source, [message], RELEASE)
        answer(source, take(source, 1))
        assert_nothing_before(broker, source, topic)


def test_rejected_message_never_comes_again(broker: Broker, topic: str, group: str) -> None:
    send_values(broker.bootstrap, topic, 5)
    with member(broker.bootstrap, group, topic) as source:
        answer(source, take(source, 5), REJECT)
        assert_nothing_before(broker, source, topic)


@pytest.mark.parametrize("compression", EVERY_COMPRESSION)
def test_each_message_of_a_batch_has_a_fate_of_its_own(
    broker: Broker, topic: str, group: str, compression: str
) -> None:
    through = producer(broker.bootstrap, compression_type=compression, linger_ms=50)
    sent = [{"value": b"%d" % n * 20, "key": b"%d" % n, "headers": [("n", b"%d" % n)]} for n in range(30)]
    send_all(through, topic, sent)
    fates = [ACCEPT, RELEASE, REJECT]
    with member(broker.bootstrap, group, topic) as source:
        seen = work(source, 30, lambda m: fates[m.offset() % 3] if m.delivery_count() == 1 else ACCEPT)
        again = seen[30:] + (work(source, 40 - len(seen)) if len(seen) < 40 else [])
        assert_nothing_before(broker, source, topic)
    assert sorted(offsets(again)) == list(range(1, 30, 3))
    for message in again:
        number = message.offset()
        assert message.value() == sent[number]["value"]
        assert message.key() == sent[number]["key"]
        assert message.headers() == sent[number]["headers"]
        assert message.delivery_count() == 2


def test_message_is_acknowledged_by_its_place(broker: Broker, topic: str, group: str) -> None:
    send_values(broker.bootstrap, topic, 3)
    with member(broker.bootstrap, group, topic) as source:
        take(source, 3)
        source.acknowledge_offset(topic, 0, 0)
        source.acknowledge_offset(topic, 0, 1, RELEASE)
        source.acknowledge_offset(topic, 0, 2, REJECT)
        assert source.commit_sync(PATIENCE_S) == {TopicPartition(topic, 0): None}
        assert offsets(take(source, 1)) == [1]
        source.acknowledge_offset(topic, 0, 1)
        confirm(source)


def test_last_word_on_a_message_counts(broker: Broker, topic: str, group: str) -> None:
    send_values(broker.bootstrap, topic, 2)
    with member(broker.bootstrap, group, topic) as source:
        first, second = take(source, 2)
        source.acknowledge(first, RELEASE)
        source.acknowledge(first, ACCEPT)
        source.acknowledge(second, ACCEPT)
        source.acknowledge(second, RELEASE)
        confirm(source)
        (again,) = take(source, 1)
        assert again.offset() == 1
        answer(source, [again])


def test_messages_are_acknowledged_in_any_order_and_in_parts(broker: Broker, topic: str, group: str) -> None:
    send_values(broker.bootstrap, topic, 100)
    with member(broker.bootstrap, group, topic) as source:
        held = take(source, 100)
        for part in (held[99:50:-2], held[50::-2], held[1:51:2], held[52::2]):
            answer(source, part)
        assert_nothing_before(broker, source, topic)


def test_member_is_given_what_it_asks_for_and_no_more(broker: Broker, topic: str, group: str) -> None:
    send_singly(broker.bootstrap, topic, 30)
    with member(broker.bootstrap, group, topic, max_poll_records=7) as source:
        sizes: list[int] = []
        while sum(sizes) < 30:
            messages = take(source)
            sizes.append(len(messages))
            answer(source, messages)
    assert max(sizes) <= 7


def test_empty_subscription_gives_nothing_until_a_message_comes(
    broker: Broker, topic: str, group: str
) -> None:
    with member(broker.bootstrap, group, topic) as source:
        assert poll(source, 1.0) == []
        send_values(broker.bootstrap, topic, 1)
        assert values(take(source, 1)) == [b"0"]
        _accept_the_held(source, topic, 0)


def _accept_the_held(source: ShareConsumer, topic: str, offset: int) -> None:
    source.acknowledge_offset(topic, 0, offset)
    confirm(source)
