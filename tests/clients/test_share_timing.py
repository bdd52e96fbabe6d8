"""Messages with a time: delayed, waiting after a failure, expiring. Kafka has none of these."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from confluent_kafka import OFFSET_BEGINNING, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from .confluent import consumer, producer, read, send_all, send_values
from .conftest import Broker
from .share import (
    ACCEPT,
    LONG_LOCK_MS,
    REJECT,
    RELEASE,
    answer,
    assert_nothing_before,
    configure,
    dead_letters,
    member,
    poll,
    take,
    values,
    work,
)
from .share_session import session
from .wait import until

MARGIN_S = 0.015  # two clocks, in milliseconds, and the time that a message is on its way
SOON_S = 5.0  # whatever else the machine does
IN_TIME_MS = 1500  # that the test has for what must come before something ends


def sent_at(message: Message) -> float:
    """In seconds since 1970."""
    return float(message.timestamp()[1] / 1000)


def send_with(broker: Broker, topic: str, *messages: tuple[bytes, dict[str, str]]) -> None:
    send_all(
        producer(broker.bootstrap),
        topic,
        ({"value": value, "headers": list(headers.items())} for value, headers in messages),
    )


@pytest.mark.parametrize("header", ["postroad-delay-ms", "postroad-deliver-at"])
def test_delayed_message_is_not_delivered_before_its_time_and_soon_after_it(
    admin: AdminClient, ours: Broker, topic: str, group: str, header: str
) -> None:
    configure(admin, ours, group)
    with member(ours.bootstrap, group, topic) as source:
        send_values(ours.bootstrap, topic, 1)
        answer(source, take(source, 1))
        due = time.time() + 0.8
        send_with(ours, topic, (b"later", {header: "800" if "delay" in header else str(int(due * 1000))}))
        send_with(ours, topic, (b"now", {}))
        came: dict[bytes, tuple[float, float]] = {}
        while len(came) < 2:
            messages = take(source)
            came |= {message.value(): (sent_at(message), time.time()) for message in messages}
            answer(source, messages)
        sent, arrived = came[b"later"]
        expected = sent + 0.8 if "delay" in header else due
        assert expected - MARGIN_S < arrived < expected + SOON_S


def test_delayed_messages_come_in_the_order_of_their_times(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group)
    with member(ours.bootstrap, group, topic, max_poll_records=1) as source:
        send_values(ours.bootstrap, topic, 1)
        work(source, 1)

        def come_in_order() -> bool:
            """Unless two were due before the member asked again: those come in the order of the log."""
            at_ms = int(time.time() * 1000) + 300
            delays = [300, 0, 200, 100]
            messages = [(b"%d" % delay, {"postroad-deliver-at": str(at_ms + delay)}) for delay in delays]
            send_with(ours, topic, *messages)
            return values(work(source, 4)) == [b"0", b"100", b"200", b"300"]

        until(come_in_order, "a time when the member was quick enough")


def test_log_consumers_see_a_delayed_message_at_once(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    send_with(ours, topic, (b"for queues only", {"postroad-delay-ms": "3600000"}))
    with consumer(ours.bootstrap, group) as source:
        source.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        assert values(read(source, 1)) == [b"for queues only"]


def test_thousands_of_delayed_messages_do_not_slow_the_ones_that_are_due(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group)
    send_with(ours, topic, *((b"later", {"postroad-delay-ms": "3600000"}) for _ in range(20_000)))
    with member(ours.bootstrap, group, topic) as source:
        send_values(ours.bootstrap, topic, 100)
        assert sorted(values(work(source, 100))) == sorted(b"%d" % number for number in range(100))
        since = time.monotonic()
        for _ in range(20):
            send_values(ours.bootstrap, topic, 1)
            answer(source, take(source, 1))
        assert time.monotonic() - since < 15


def test_message_that_was_released_waits_longer_each_time(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(
        admin,
        ours,
        group,
        postroad_backoff_initial_ms=100,
        postroad_backoff_factor="4.0",
        postroad_backoff_max_ms=500,
    )
    send_values(ours.bootstrap, topic, 1)
    waits = []
    with member(ours.bootstrap, group, topic) as source:
        held = take(source, 1)
        for _ in range(4):
            given_back = time.monotonic()
            answer(source, held, RELEASE)
            held = take(source, 1)
            waits.append(time.monotonic() - given_back)
        answer(source, held)
    for wait, shortest in zip(waits, (0.100, 0.400, 0.500, 0.500), strict=True):
        assert shortest - MARGIN_S < wait < shortest + SOON_S  # without a limit the last one were 6.4 s


def test_message_whose_lock_ran_out_waits_too(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group, share_record_lock_duration_ms=300, postroad_backoff_initial_ms=600)
    send_values(ours.bootstrap, topic, 1)
    with session(ours.bootstrap, group, topic) as holds, member(ours.bootstrap, group, topic) as other:
        since = time.monotonic()
        holds.fetch_some()
        configure(admin, ours, group, share_record_lock_duration_ms=LONG_LOCK_MS)  # of the next holder
        (message,) = take(other, 1)
        assert 0.9 - MARGIN_S < time.monotonic() - since < 0.9 + SOON_S
        answer(other, [message])


def test_others_are_delivered_while_one_waits(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group, postroad_backoff_initial_ms=600_000)
    send_values(ours.bootstrap, topic, 50)
    with member(ours.bootstrap, group, topic) as source:
        work(source, 50, lambda message: RELEASE if message.offset() == 0 else ACCEPT)
        assert_nothing_before(ours, source, topic)


def test_message_that_expired_before_it_was_delivered_becomes_a_dead_letter(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group)
    soon_ms, late_ms = int(time.time() * 1000) + 300, int(time.time() * 1000) + 3_600_000
    send_with(
        ours,
        topic,
        (b"too late", {"postroad-expires-at": str(soon_ms)}),
        (b"in time", {"postroad-expires-at": str(late_ms)}),
    )
    time.sleep(0.4)
    with member(ours.bootstrap, group, topic) as source:
        assert values(work(source, 1)) == [b"in time"]
        (letter,) = dead_letters(ours.bootstrap, group, 1)
    assert letter.value() == b"too late"
    notes = dict(letter.headers())
    assert (notes["postroad-dead-reason"], notes["postroad-dead-deliveries"]) == (b"expired", b"0")


def test_message_that_expired_while_it_waited_for_its_next_attempt_becomes_a_dead_letter(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group, postroad_backoff_initial_ms=IN_TIME_MS + 100)
    with member(ours.bootstrap, group, topic) as source:
        send_values(ours.bootstrap, topic, 1)
        answer(source, take(source, 1))
        expires_ms = int(time.time() * 1000) + IN_TIME_MS
        send_with(ours, topic, (b"once", {"postroad-expires-at": str(expires_ms)}))
        answer(source, take(source, 1), RELEASE)

        def is_dead() -> bool:
            assert poll(source) == []
            return f"{group}.dead" in admin.list_topics(timeout=10).topics

        until(is_dead, "a topic for the dead letter")
        (letter,) = dead_letters(ours.bootstrap, group, 1)
    notes = dict(letter.headers())
    assert (notes["postroad-dead-reason"], notes["postroad-dead-deliveries"]) == (b"expired", b"1")
    assert int(notes["postroad-dead-at"]) >= expires_ms


def test_message_that_is_held_when_it_expires_may_still_be_accepted(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    configure(admin, ours, group)
    with member(ours.bootstrap, group, topic) as source:
        send_values(ours.bootstrap, topic, 1)
        answer(source, take(source, 1))
        expires_ms = int(time.time() * 1000) + IN_TIME_MS
        send_with(ours, topic, (b"in hand", {"postroad-expires-at": str(expires_ms)}))
        held = take(source, 1)
        time.sleep(max(0.0, expires_ms / 1000 + 0.1 - time.time()))
        answer(source, held)
        assert_nothing_before(ours, source, topic)


@pytest.mark.parametrize("nonsense", ["soon", "", "-5", "1e3", "9" * 40])
def test_messages_with_times_that_are_none_become_dead_letters_that_say_so(
    admin: AdminClient, ours: Broker, topic: str, group: str, nonsense: str
) -> None:
    configure(admin, ours, group)
    names: Sequence[str] = ("postroad-delay-ms", "postroad-deliver-at", "postroad-expires-at")
    wrong = [(name.encode(), {name: nonsense}) for name in names]
    send_with(ours, topic, *wrong, (b"right", {"postroad-delay-ms": "0"}))
    with member(ours.bootstrap, group, topic) as source:
        assert values(work(source, 1)) == [b"right"]
        letters = dead_letters(ours.bootstrap, group, 3)
    assert values(letters) == [name.encode() for name in names]
    for letter, name in zip(letters, names, strict=True):
        told = dict(letter.headers())
        assert told["postroad-dead-reason"] == b"invalid"
        assert told["postroad-reason"].startswith(f"{name} is {nonsense[:20]!r}"[:-1].encode())


def test_times_of_a_dead_letter_are_set_aside_so_that_they_hold_for_nobody(
    admin: AdminClient, ours: Broker, topic: str, group: str
) -> None:
    """Whoever subscribes to the dead letters gets each of them at once."""
    configure(admin, ours, group)
    send_with(ours, topic, (b"kept", {"postroad-delay-ms": "50", "mine": "too", "postroad-dedup-id": "x"}))
    with member(ours.bootstrap, group, topic) as source:
        answer(source, take(source, 1), REJECT)
        (letter,) = dead_letters(ours.bootstrap, group, 1)
    set_aside = [("postroad-dead-delay-ms", b"50"), ("mine", b"too"), ("postroad-dead-dedup-id", b"x")]
    assert letter.headers()[:3] == set_aside
