"""Promises to share consumers of librdkafka whose subscription waits for transactions (KIP-932)."""

from __future__ import annotations

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from .confluent import producer
from .conftest import Broker
from .share import answer, assert_nothing_before, configure, member, poll, take, values, work
from .test_confluent_transactions import transactional
from .wait import PATIENCE_S


def send(through: Producer, topic: str, *contents: bytes) -> None:
    for content in contents:
        through.produce(topic, content, partition=0)
    assert through.flush(PATIENCE_S) == 0


def test_committed_messages_are_delivered_and_aborted_ones_never(
    broker: Broker, admin: AdminClient, topic: str, group: str, unused_name: str
) -> None:
    configure(admin, broker, group, share_isolation_level="read_committed")
    through = transactional(broker, f"{unused_name}-id")
    with member(broker.bootstrap, group, topic) as source:
        expected = []
        for number in range(9):
            through.begin_transaction()
            contents = [b"%d.%d" % (number, part) for part in range(3)]
            send(through, topic, *contents)
            if number % 3 == 2:
                through.abort_transaction(PATIENCE_S)
            else:
                through.commit_transaction(PATIENCE_S)
                expected += contents
        assert sorted(values(work(source, len(expected)))) == sorted(expected)
        assert_nothing_before(broker, source, topic)


def test_what_lies_behind_an_open_transaction_waits(
    broker: Broker, admin: AdminClient, topic: str, group: str, unused_name: str
) -> None:
    configure(admin, broker, group, share_isolation_level="read_committed")
    through = transactional(broker, f"{unused_name}-id")
    with member(broker.bootstrap, group, topic) as source:
        send(producer(broker.bootstrap), topic, b"before")
        through.begin_transaction()
        send(through, topic, b"open")
        send(producer(broker.bootstrap), topic, b"behind")
        first = take(source, 1)
        assert values(first) == [b"before"]
        answer(source, first)
        assert poll(source, 0.3) == []
        through.commit_transaction(PATIENCE_S)
        assert sorted(values(work(source, 2))) == [b"behind", b"open"]


def test_without_it_everything_is_delivered_at_once(
    broker: Broker, admin: AdminClient, topic: str, group: str, unused_name: str
) -> None:
    configure(admin, broker, group)
    through = transactional(broker, f"{unused_name}-id")
    with member(broker.bootstrap, group, topic) as source:
        through.begin_transaction()
        send(through, topic, b"aborted later")
        assert values(take(source, 1)) == [b"aborted later"]
        through.abort_transaction(PATIENCE_S)
