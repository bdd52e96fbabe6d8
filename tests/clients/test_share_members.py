"""confluent-kafka's ShareConsumer: members of one subscription share its messages, and come and go."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from contextlib import ExitStack

from confluent_kafka.admin import AdminClient, NewPartitions

from postroad.client import subscriptions
from postroad.client.client import Client
from postroad.errors import GroupIdNotFound

from .confluent import producer, send_all, send_values
from .conftest import Broker, TopicMaker
from .share import (
    answer,
    assert_nothing_before,
    configure,
    deliveries,
    member,
    offsets,
    send_singly,
    take,
    values,
    work,
)
from .wait import until


def test_s2_members_on_one_partition_never_hold_the_same_message(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    configure(admin, broker, group)
    send_singly(broker.bootstrap, topic, 60)
    with ExitStack() as stack:
        workers = [
            stack.enter_context(member(broker.bootstrap, group, topic, max_poll_records=10)) for _ in range(3)
        ]
        for _ in range(2):
            held = [take(worker) for worker in workers]
            numbers = [offset for messages in held for offset in offsets(messages)]
            assert len(numbers) == len(set(numbers))
            for worker, messages in zip(workers, held, strict=True):
                assert deliveries(messages) == [1] * len(messages)
                answer(worker, messages)


def test_more_members_than_partitions_all_have_work_at_the_same_time(
    admin: AdminClient, broker: Broker, new_topic: TopicMaker, group: str
) -> None:
    configure(admin, broker, group)
    topic = new_topic(partitions=2)
    for partition in range(2):
        send_singly(broker.bootstrap, topic, 20, partition)
    with ExitStack() as stack:
        workers = [
            stack.enter_context(member(broker.bootstrap, group, topic, max_poll_records=1)) for _ in range(6)
        ]
        held = [take(worker, 1)[0] for worker in workers]
        assert len({(message.partition(), message.offset()) for message in held}) == 6
        for worker, message in zip(workers, held, strict=True):
            answer(worker, [message])


def members_of(broker: Broker, group: str) -> int:
    async def ask() -> int:
        async with Client(broker.bootstrap) as client:
            try:
                return len((await subscriptions.describe(client, group)).members)
            except GroupIdNotFound:
                return 0  # nobody has joined yet

    return asyncio.run(ask())


def test_first_member_that_asks_leaves_the_others_their_part(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group)
    with ExitStack() as stack:
        workers = [stack.enter_context(member(ours.bootstrap, group, topic)) for _ in range(4)]
        until(lambda: members_of(ours, group) == 4, "all have joined")
        send_singly(ours.bootstrap, topic, 400)
        counts = [len(take(worker)) for worker in workers]
    assert sum(counts) <= 400
    assert min(counts) >= 20, counts


def test_every_message_goes_to_one_of_many_members(
    admin: AdminClient, broker: Broker, new_topic: TopicMaker, group: str
) -> None:
    configure(admin, broker, group)
    topic = new_topic(partitions=3)
    through = producer(broker.bootstrap)
    send_all(through, topic, ({"value": b"%d" % n, "partition": n % 3} for n in range(300)))
    with ExitStack() as stack:
        workers = [stack.enter_context(member(broker.bootstrap, group, topic)) for _ in range(4)]
        seen = work(workers, 300)
    assert sorted(int(message.value()) for message in seen) == list(range(300))


def test_one_subscription_takes_several_topics(
    admin: AdminClient, broker: Broker, new_topic: TopicMaker, group: str
) -> None:
    configure(admin, broker, group)
    topics = [new_topic(), new_topic(partitions=2), new_topic()]
    for topic in topics:
        send_values(broker.bootstrap, topic, 10)
    with member(broker.bootstrap, group, *topics) as source:
        seen = work(source, 30)
    assert {topic: sum(message.topic() == topic for message in seen) for topic in topics} == dict.fromkeys(
        topics, 10
    )


def test_every_subscription_of_a_topic_gets_every_message(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    subscriptions = [f"{group}-{number}" for number in range(3)]
    send_values(broker.bootstrap, topic, 20)
    with ExitStack() as stack:
        sources = []
        for subscription in subscriptions:
            configure(admin, broker, subscription)
            sources.append(stack.enter_context(member(broker.bootstrap, subscription, topic)))
        for number, source in enumerate(sources):
            messages = take(source, 20)
            # What one does with them is none of the others' business.
            answer(source, messages[: 5 * number])
            assert deliveries(messages) == [1] * 20
            for message in messages[5 * number :]:
                source.acknowledge(message)


def test_what_a_member_held_when_it_left_goes_to_the_others_at_once(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    configure(admin, broker, group)
    send_singly(broker.bootstrap, topic, 10)
    with member(broker.bootstrap, group, topic, max_poll_records=3) as heir:
        with member(broker.bootstrap, group, topic, max_poll_records=6) as leaves:
            held = take(leaves, 6)
            answer(leaves, held[:2])
        seen = work(heir, 8, patience_s=20)  # well below the lock's 30 s
    assert sorted(offsets(seen)) == list(range(2, 10))
    assert {message.offset() for message in seen if message.delivery_count() == 2} == {2, 3, 4, 5}


MEMBER_THAT_DIES = """
import sys, time
from confluent_kafka import ShareConsumer
member = ShareConsumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[3], "log_level": 3,
                        "share.acknowledgement.mode": "explicit", "max.poll.records": 5})
member.subscribe([sys.argv[2]])
while not (messages := member.poll(1)):
    pass
member.acknowledge(messages[0])
assert all(error is None for error in member.commit_sync(10).values())
print(*(message.offset() for message in messages), flush=True)
time.sleep(60)
"""


def test_what_a_member_held_when_it_was_killed_goes_to_the_others(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    configure(admin, broker, group)
    send_singly(broker.bootstrap, topic, 10)
    with member(broker.bootstrap, group, topic, max_poll_records=2) as heir:
        command = [sys.executable, "-c", MEMBER_THAT_DIES, broker.bootstrap, topic, group]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dying:
            assert dying.stdout is not None
            accepted, *held = map(int, dying.stdout.readline().split())
            dying.send_signal(signal.SIGKILL)
        seen = work(heir, 9, patience_s=20)
    assert sorted(offsets(seen)) == [offset for offset in range(10) if offset != accepted]
    assert {message.offset() for message in seen if message.delivery_count() == 2} == set(held)


def test_member_that_joins_late_has_work_at_once_and_disturbs_nobody(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    configure(admin, broker, group)
    send_singly(broker.bootstrap, topic, 10)
    with member(broker.bootstrap, group, topic, max_poll_records=3) as first:
        held = take(first, 3)
        with member(broker.bootstrap, group, topic, max_poll_records=3) as second:
            later = take(second, 3)
            assert not set(offsets(held)) & set(offsets(later))
            answer(first, held)
            answer(second, later)
            seen = work([first, second], 4)
    assert sorted(offsets(held + later + seen)) == list(range(10))
    assert set(deliveries(held + later + seen)) == {1}


def test_partitions_that_are_added_are_served_too(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    configure(admin, broker, group)
    send_values(broker.bootstrap, topic, 1)
    with member(broker.bootstrap, group, topic, topic_metadata_refresh_interval_ms=500) as source:
        answer(source, take(source, 1))
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(10)
        until(lambda: len(admin.list_topics(topic, timeout=10).topics[topic].partitions) == 3, "partitions")
        for partition in (1, 2):
            send_values(broker.bootstrap, topic, 5, partition)
        assert len(work(source, 10)) == 10


def test_topic_may_come_after_its_subscribers(
    admin: AdminClient, broker: Broker, new_topic: TopicMaker, group: str, unused_name: str
) -> None:
    configure(admin, broker, group)
    first = new_topic()
    send_values(broker.bootstrap, first, 1)
    with member(broker.bootstrap, group, first, unused_name) as source:
        answer(source, take(source, 1))
        new_topic(name=unused_name)
        send_values(broker.bootstrap, unused_name, 5)
        seen = work(source, 5)
    assert {message.topic() for message in seen} == {unused_name}


def test_subscription_that_begins_at_the_latest_message_leaves_out_the_earlier_ones(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    configure(admin, broker, group, share_auto_offset_reset="latest")
    send_values(broker.bootstrap, topic, 10)
    with member(broker.bootstrap, group, topic, share_acknowledgement_mode="implicit") as source:
        through = producer(broker.bootstrap)

        def first_delivery() -> bytes | None:
            """Sends until something comes: when exactly the subscription begins can't be seen from here."""
            send_all(through, topic, [{"value": b"after"}])
            return next((message.value() for message in source.poll(0.2)), None)

        assert until(first_delivery, "a message that is new") == b"after"


def test_member_without_topics_of_its_own_does_not_take_the_messages_of_others(
    admin: AdminClient, broker: Broker, new_topic: TopicMaker, group: str
) -> None:
    configure(admin, broker, group)
    mine, other = new_topic(), new_topic()
    send_values(broker.bootstrap, mine, 5)
    send_values(broker.bootstrap, other, 5)
    with (
        member(broker.bootstrap, group, mine) as one,
        member(broker.bootstrap, group, other) as two,
    ):
        for source, topic in ((one, mine), (two, other)):
            messages = take(source, 5)
            assert {message.topic() for message in messages} == {topic}
            assert values(messages) == [b"0", b"1", b"2", b"3", b"4"]
            answer(source, messages)
        assert_nothing_before(broker, one, mine)
