"""What a subscription is bound to: how much is in flight, where it begins, at most once."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from postroad.client import subscriptions
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition

from .confluent import producer, send_all, send_values
from .conftest import Broker, TopicMaker
from .share import (
    RELEASE,
    answer,
    assert_nothing_before,
    configure,
    deliveries,
    member,
    offsets,
    poll,
    send_singly,
    take,
    values,
    work,
)
from .share_session import session
from .wait import until


def start_of(broker: Broker, group: str, topic: str, partition: int = 0) -> int:
    """Where the subscription stands: all before it is done with."""

    async def ask() -> int:
        async with Client(broker.bootstrap) as client:
            return (await subscriptions.positions(client, group))[TopicPartition(topic, partition)].start

    return asyncio.run(ask())


def test_s6_window_of_a_partition_is_bounded_and_its_start_never_falls(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group, share_partition_max_record_locks=100)
    send_singly(ours.bootstrap, topic, 250)
    starts = [0]
    with member(ours.bootstrap, group, topic) as one, member(ours.bootstrap, group, topic) as two:
        held = take(one)
        held_by_two = poll(two, 0.5)
        assert len(held) + len(held_by_two) <= 100
        answer(one, held[1:])  # the first one keeps the start where it is
        starts.append(start_of(ours, group, topic))
        assert starts[-1] == 0
        answer(one, held[:1], RELEASE)
        answer(two, held_by_two)

        def all_done() -> bool:
            for source in (one, two):
                answer(source, poll(source, 0.1))
            starts.append(start_of(ours, group, topic))
            return starts[-1] == 250

        until(all_done, "the start is behind the last message")
    assert starts == sorted(starts)


def test_member_holds_no_more_than_its_limit(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group, postroad_member_max_record_locks=10)
    send_singly(ours.bootstrap, topic, 40)
    with member(ours.bootstrap, group, topic) as one, member(ours.bootstrap, group, topic) as two:
        first, second = take(one, 10), take(two, 10)
        assert not set(offsets(first)) & set(offsets(second))
        answer(one, first)
        answer(two, second)
        assert len(work([one, two], 20)) == 20


def test_subscription_holds_no_more_than_its_limit_over_all_partitions(
    admin: AdminClient, ours: Broker, new_topic: TopicMaker, group: str
) -> None:
    topic = new_topic(partitions=3)
    configure(admin, ours, group, postroad_max_record_locks=20)
    for partition in range(3):
        send_singly(ours.bootstrap, topic, 30, partition)
    with member(ours.bootstrap, group, topic) as one, member(ours.bootstrap, group, topic) as two:
        held = take(one)
        held_by_two = poll(two, 0.5)
        assert len(held) + len(held_by_two) == 20
        answer(one, held)
        answer(two, held_by_two)
        assert len(work([one, two], 70)) == 70


def test_at_most_once_delivers_no_message_twice_whatever_becomes_of_the_member(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group, postroad_delivery="at-most-once", share_record_lock_duration_ms=300)
    send_singly(ours.bootstrap, topic, 10)
    with member(ours.bootstrap, group, topic, max_poll_records=6) as first:
        held = take(first, 6)
        assert deliveries(held) == [1] * 6
        for message in held[:3]:
            first.acknowledge(message, RELEASE)  # too late: it counts as done
        first.commit_sync(10)
        with member(ours.bootstrap, group, topic) as second:
            assert sorted(offsets(work(second, 4))) == [6, 7, 8, 9]
            assert poll(second, 0.6) == []
        for message in held[3:]:
            first.acknowledge(message)
    with member(ours.bootstrap, group, topic) as third:
        assert_nothing_before(ours, third, topic)


def test_subscription_with_topics_of_its_own_keeps_messages_for_its_first_member(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    send_values(ours.bootstrap, topic, 3)
    configure(admin, ours, group, postroad_topics=topic, share_auto_offset_reset="latest")
    send_values(ours.bootstrap, topic, 5)
    with member(ours.bootstrap, group, topic) as source:
        messages = work(source, 5)
    assert offsets(messages) == [3, 4, 5, 6, 7]


def test_subscription_may_begin_at_a_time(admin: AdminClient, ours: Broker, topic: str, group: str) -> None:
    times = [1_700_000_000_000 + 1000 * number for number in range(10)]
    send_all(producer(ours.bootstrap), topic, ({"value": b"%d" % t, "timestamp": t} for t in times))
    configure(admin, ours, group, share_auto_offset_reset=f"at:{times[6] - 500}")
    with member(ours.bootstrap, group, topic) as source:
        assert values(work(source, 4)) == [b"%d" % t for t in times[6:]]


def test_configs_that_change_hold_for_the_next_delivery(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group, share_record_lock_duration_ms=600_000)
    send_singly(ours.bootstrap, topic, 2)
    with session(ours.bootstrap, group, topic) as one, session(ours.bootstrap, group, topic) as two:
        assert one.fetch_some(max_records=1).lock_ms == 600_000
        configure(admin, ours, group, share_record_lock_duration_ms=300)
        held = two.fetch_some()
        assert (held.offsets, held.lock_ms) == ([1], 300)
        assert [(m.offset, m.delivery) for m in two.fetch_some().held] == [(1, 2)]  # the other lock is longer


@pytest.mark.parametrize("name", ["postroad_order", "share_delivery_count_limit", "postroad_no_such"])
def test_configs_that_make_no_sense_are_refused(
    admin: AdminClient, ours: Broker, group: str, name: str
) -> None:
    with pytest.raises(KafkaException) as refused:
        configure(admin, ours, group, **{name: "nonsense"})
    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_client_that_takes_no_large_answers_gets_large_messages_at_their_first_delivery(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group)
    through = producer(ours.bootstrap, batch_num_messages=1)
    send_all(through, topic, ({"value": b"%d" % n * 600_000, "partition": 0} for n in range(4)))
    limits = {"fetch_max_bytes": 999_000, "receive_message_max_bytes": 1_000_000}
    with member(ours.bootstrap, group, topic, **limits) as worker:
        assert deliveries(work(worker, 4)) == [1] * 4
