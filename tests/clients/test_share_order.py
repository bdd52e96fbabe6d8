"""Who comes first: messages of one key or partition in order, tenants by what they hold."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from contextlib import ExitStack
from typing import Any

from confluent_kafka import AcknowledgeType, Message
from confluent_kafka.admin import AdminClient

from .confluent import producer, send_all
from .conftest import Broker, TopicMaker
from .share import (
    ACCEPT,
    REJECT,
    RELEASE,
    answer,
    configure,
    member,
    offsets,
    poll,
    send_singly,
    take,
    values,
    work,
)
from .share_session import Fate, one, session
from .wait import PATIENCE_S


def send_keyed(broker: Broker, topic: str, *pairs: tuple[bytes | None, bytes], **settings: int) -> None:
    through = producer(broker.bootstrap, **settings)
    send_all(through, topic, ({"key": key, "value": value, "partition": 0} for key, value in pairs))


def test_message_waits_for_the_one_before_it_with_the_same_key_and_other_keys_go_on(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group, postroad_order="key")
    send_keyed(ours, topic, (b"a", b"a1"), (b"a", b"a2"), (b"b", b"b1"), (b"a", b"a3"), (b"b", b"b2"))
    with member(ours.bootstrap, group, topic) as one_, member(ours.bootstrap, group, topic) as two:
        held = take(one_, 2)
        assert values(held) == [b"a1", b"b1"]
        assert poll(two, 0.3) == []
        one_.acknowledge(held[0])
        one_.acknowledge(held[1], RELEASE)
        one_.commit_sync(10)
        seen = work([one_, two], 4)
    of_key = defaultdict(list)
    for message in seen:
        of_key[message.key()].append(message.value())
    assert dict(of_key) == {b"a": [b"a2", b"a3"], b"b": [b"b1", b"b2"]}


def test_released_message_is_delivered_before_the_later_ones_of_its_key(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group, postroad_order="key", postroad_backoff_initial_ms=300)
    send_keyed(ours, topic, (b"a", b"a1"), (b"a", b"a2"), (b"b", b"b1"))
    with member(ours.bootstrap, group, topic) as source:
        seen = work(source, 4, lambda m: RELEASE if (m.value(), m.delivery_count()) == (b"a1", 1) else ACCEPT)
    assert [m.value() for m in seen if m.key() == b"a"] == [b"a1", b"a1", b"a2"]


def test_rejected_message_lets_the_next_of_its_key_through(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group, postroad_order="key")
    send_keyed(ours, topic, (b"a", b"a1"), (b"a", b"a2"))
    with member(ours.bootstrap, group, topic) as source:
        assert values(work(source, 2, lambda m: REJECT if m.value() == b"a1" else ACCEPT)) == [b"a1", b"a2"]


def test_messages_without_a_key_wait_for_nobody(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group, postroad_order="key")
    send_keyed(ours, topic, *((None, b"%d" % number) for number in range(10)))
    with member(ours.bootstrap, group, topic) as source:
        answer(source, take(source, 10))


def test_many_members_keep_the_order_of_every_key(
    admin: AdminClient, ours: Broker, new_topic: TopicMaker, group: str
) -> None:
    topic = new_topic(partitions=3)
    configure(admin, ours, group, postroad_order="key")
    through = producer(ours.bootstrap, linger_ms=5)
    send_all(through, topic, ({"key": b"%d" % (n % 20), "value": b"%d" % n} for n in range(600)))
    with ExitStack() as stack:
        workers = [
            stack.enter_context(member(ours.bootstrap, group, topic, max_poll_records=30)) for _ in range(3)
        ]
        failures = sum(map(_fails, range(600)))
        seen = work(workers, 600 + failures, _fail_once)
    order: dict[bytes, list[int]] = defaultdict(list)
    for message in seen:
        if not order[message.key()] or order[message.key()][-1] != int(message.value()):
            order[message.key()].append(int(message.value()))
    for key, numbers in order.items():
        assert numbers == list(range(int(key), 600, 20))


def _fails(number: int) -> bool:
    return number % 7 == 0


def _fail_once(message: Message) -> AcknowledgeType:
    return RELEASE if _fails(int(message.value())) and message.delivery_count() == 1 else ACCEPT


def test_strict_order_hands_out_one_message_of_a_partition_at_a_time(
    admin: AdminClient, ours: Broker, new_topic: TopicMaker, group: str
) -> None:
    topic = new_topic(partitions=2)
    configure(admin, ours, group, postroad_order="partition")
    for partition in range(2):
        send_singly(ours.bootstrap, topic, 5, partition)
    with member(ours.bootstrap, group, topic) as one_, member(ours.bootstrap, group, topic) as two:
        held = take(one_)
        assert len({message.partition() for message in held}) == len(held) <= 2
        answer(one_, held, RELEASE)
        seen = work([one_, two], 10)
    for partition in range(2):
        assert offsets([m for m in seen if m.partition() == partition]) == [0, 1, 2, 3, 4]


def test_noisy_tenant_does_not_starve_the_others(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group, postroad_fair_by="tenant")
    through = producer(ours.bootstrap)
    tenants = ["noisy"] * 500 + ["small", "tiny"] * 5
    send_all(through, topic, ({"value": t.encode(), "headers": {"tenant": t}} for t in tenants))
    with session(ours.bootstrap, group, topic) as member_:
        held = member_.fetch_some(max_records=15).held
        assert Counter(message.value for message in held) == {b"noisy": 5, b"small": 5, b"tiny": 5}


def test_tenant_that_gave_back_its_messages_is_served_next(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group, postroad_fair_by="tenant")
    tenants = [b"a"] * 10 + [b"b"] * 10
    send_all(producer(ours.bootstrap), topic, ({"value": t, "headers": {"tenant": t}} for t in tenants))
    with session(ours.bootstrap, group, topic) as member_:
        held = member_.fetch_some(max_records=8).held
        assert Counter(message.value for message in held) == {b"a": 4, b"b": 4}
        done = [one(message.offset, Fate.ACCEPT) for message in held if message.value == b"b"]
        assert member_.acknowledge(*done) == 0
        assert [message.value for message in member_.fetch_some(max_records=4).held] == [b"b"] * 4


def test_fairness_holds_over_partitions(
    admin: AdminClient, ours: Broker, new_topic: TopicMaker, group: str
) -> None:
    topic = new_topic(partitions=2)
    configure(admin, ours, group, postroad_fair_by="tenant")
    noisy = [
        {"value": b"noisy", "headers": {"tenant": "noisy"}, "partition": p}
        for p in (0, 1)
        for _ in range(200)
    ]
    quiet = [{"value": b"quiet", "headers": {"tenant": "quiet"}, "partition": 1} for _ in range(10)]
    send_all(producer(ours.bootstrap), topic, noisy + quiet)
    seen: list[Any] = []
    with member(ours.bootstrap, group, topic, max_poll_records=20) as source:
        deadline = time.monotonic() + PATIENCE_S
        while Counter(values(seen))[b"quiet"] < 10:
            assert time.monotonic() < deadline
            messages = take(source)
            answer(source, messages)
            seen += messages
    assert len(seen) <= 100, "the quiet tenant waited behind the noisy one"
