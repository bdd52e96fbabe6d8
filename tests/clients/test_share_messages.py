"""confluent-kafka's ShareConsumer: messages of all kinds and sizes, and logs that change meanwhile."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient

from .confluent import EVERY_COMPRESSION, consumer, producer, read, send_all, send_values
from .conftest import Broker, TopicMaker
from .share import (
    ACCEPT,
    RELEASE,
    answer,
    assert_nothing_before,
    configure,
    member,
    offsets,
    poll,
    take,
    values,
    work,
)
from .share_session import session
from .wait import until


@pytest.mark.parametrize("compression", EVERY_COMPRESSION)
def test_message_comes_as_it_was_sent(
    admin: AdminClient, broker: Broker, topic: str, group: str, compression: str
) -> None:
    configure(admin, broker, group)
    sent: list[dict[str, Any]] = [
        {"value": b"\x00\xff" * 700, "key": b"k", "headers": [("a", b"1"), ("a", b"2"), ("b", None)]},
        {"value": b"", "key": b""},
        {"value": None, "key": b"tombstone"},
        {"value": b"v", "key": None, "timestamp": 1_600_000_000_123},
    ]
    send_all(producer(broker.bootstrap, compression_type=compression, linger_ms=20), topic, sent)
    with member(broker.bootstrap, group, topic) as source:
        seen = work(source, 4)
    for message, expected in zip(seen, sent, strict=True):
        assert (message.value(), message.key()) == (expected["value"], expected["key"])
        assert message.headers() == expected.get("headers")
    assert seen[3].timestamp()[1] == 1_600_000_000_123


def test_message_above_the_member_s_byte_limit_is_delivered_all_the_same(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    configure(admin, broker, group)
    big = bytes(900_000)
    send_all(
        producer(broker.bootstrap, linger_ms=0), topic, [{"value": b"a"}, {"value": big}, {"value": b"z"}]
    )
    with member(broker.bootstrap, group, topic, fetch_max_bytes=10_000) as source:
        seen = work(source, 3)
    assert sorted(map(len, values(seen))) == [1, 1, 900_000]


def test_messages_beyond_the_byte_limit_come_with_the_next_fetch(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    """What is not in an answer is not held either: clients give up held messages that they can't find."""
    configure(admin, broker, group)
    through = producer(broker.bootstrap, batch_num_messages=1)
    send_all(through, topic, ({"value": b"%d " % n + bytes(20_000)} for n in range(30)))
    with member(broker.bootstrap, group, topic, fetch_max_bytes=100_000) as source:
        seen = work(source, 30)
        assert_nothing_before(broker, source, topic)
    assert sorted(int(message.value().split()[0]) for message in seen) == list(range(30))


def test_single_messages_are_taken_from_a_large_batch(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    configure(admin, broker, group)
    through = producer(broker.bootstrap, linger_ms=200, compression_type="lz4", batch_num_messages=5000)
    send_all(through, topic, ({"value": b"%d" % number} for number in range(5000)))
    with session(broker.bootstrap, group, topic) as taker:
        for first in range(0, 60, 3):
            held = taker.fetch_some(max_records=3).held
            assert [(m.offset, m.value) for m in held] == [(n, b"%d" % n) for n in range(first, first + 3)]


def test_thousands_of_messages_with_ragged_answers_end_once_each(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    configure(admin, broker, group, share_delivery_count_limit=10)
    send_values(broker.bootstrap, topic, 5000, compression_type="zstd", linger_ms=5)
    accepted: list[int] = []
    with (
        member(broker.bootstrap, group, topic, max_poll_records=700) as one,
        member(broker.bootstrap, group, topic, max_poll_records=900) as two,
    ):
        deadline = time.monotonic() + 60
        while len(accepted) < 5000:
            assert time.monotonic() < deadline, f"{len(accepted)} were accepted"
            for worker in (one, two):
                messages = poll(worker, 0.05)
                for message in messages:
                    fails = (message.offset() * 7 + message.delivery_count()) % 5 == 0
                    worker.acknowledge(message, RELEASE if fails else ACCEPT)
                    if not fails:
                        accepted.append(message.offset())
                assert not any(worker.commit_sync(30).values())
        assert sorted(accepted) == list(range(5000))


def test_messages_that_were_deleted_from_the_log_are_passed_over(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    configure(admin, broker, group)
    send_values(broker.bootstrap, topic, 10)
    with member(broker.bootstrap, group, topic, max_poll_records=1) as source:
        answer(source, take(source), RELEASE)
        place = TopicPartition(topic, 0, 6)
        admin.delete_records([place])[place].result(10)

        def seen() -> list[int]:
            messages = poll(source)
            answer(source, messages)
            return [offset for offset in offsets(messages) if offset >= 6]

        arrived: list[int] = []

        def all_arrived() -> bool:
            arrived.extend(seen())
            return len(arrived) >= 4

        until(all_arrived, "the messages that are left")
        assert arrived == [6, 7, 8, 9]
        assert_nothing_before(broker, source, topic)


def test_deleted_topic_does_not_disturb_the_other_topics_of_a_subscription(
    admin: AdminClient, ours: Broker, new_topic: TopicMaker, group: str
) -> None:
    """Kafka 4.3 leaves librdkafka without messages in this case."""
    configure(admin, ours, group)
    stays, goes = new_topic(), new_topic()
    send_values(ours.bootstrap, goes, 5)
    send_values(ours.bootstrap, stays, 5)
    with member(ours.bootstrap, group, stays, goes, topic_metadata_refresh_interval_ms=500) as source:
        work(source, 10)
        admin.delete_topics([goes])[goes].result(10)
        seen: list[Message] = []
        for _ in range(3):
            send_values(ours.bootstrap, stays, 5)
        until(lambda: _work_on(source, seen) == 15, "messages of the topic that stayed")


def _work_on(source: ShareConsumer, seen: list[Message]) -> int:
    """How many were seen so far."""
    try:
        messages = poll(source)
    except KafkaException:
        return len(seen)  # librdkafka tells of the deleted topic
    answer(source, messages)
    seen += messages
    return len(seen)


def test_topic_that_is_created_anew_begins_anew(
    admin: AdminClient, broker: Broker, new_topic: TopicMaker, group: str
) -> None:
    configure(admin, broker, group)
    name = new_topic()
    send_values(broker.bootstrap, name, 5)
    with member(broker.bootstrap, group, name) as source:
        work(source, 5)
    admin.delete_topics([name])[name].result(10)
    until(lambda: name not in admin.list_topics(timeout=10).topics, "the topic is gone")
    new_topic(name=name)
    send_values(broker.bootstrap, name, 3)
    with member(broker.bootstrap, group, name) as source:
        assert offsets(work(source, 3)) == [0, 1, 2]


def test_log_consumers_and_subscriptions_do_not_see_each_other(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    configure(admin, broker, group)
    send_values(broker.bootstrap, topic, 10)
    with member(broker.bootstrap, group, topic) as source:
        work(source, 10)
        with consumer(broker.bootstrap, f"{group}-log") as log_reader:
            log_reader.subscribe([topic])
            assert len(read(log_reader, 10)) == 10
        assert_nothing_before(broker, source, topic)


def test_share_group_and_consumer_group_keep_off_each_other_s_names(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    configure(admin, broker, group)
    send_values(broker.bootstrap, topic, 3)
    with member(broker.bootstrap, group, topic) as source:
        work(source, 3)
        with consumer(broker.bootstrap, group) as intruder, pytest.raises(KafkaException):
            intruder.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        send_values(broker.bootstrap, topic, 3)
        assert len(work(source, 3)) == 3


def test_group_with_members_is_not_deleted_and_an_empty_one_begins_anew_after_it(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    configure(admin, broker, group)
    send_values(broker.bootstrap, topic, 3)
    with member(broker.bootstrap, group, topic) as source:
        work(source, 3)
        with pytest.raises(KafkaException) as refused:
            admin.delete_consumer_groups([group])[group].result(10)
        assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
    until(lambda: _deleted(admin, group), "the group can be deleted")
    configure(admin, broker, group)
    with member(broker.bootstrap, group, topic) as source:
        assert offsets(work(source, 3)) == [0, 1, 2]


def _deleted(admin: AdminClient, group: str) -> bool:
    try:
        admin.delete_consumer_groups([group])[group].result(10)
    except KafkaException:
        return False
    return True
