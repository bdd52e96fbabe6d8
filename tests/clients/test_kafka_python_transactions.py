"""Promises to transactional producers and read_committed consumers of kafka-python."""

from __future__ import annotations

from contextlib import closing

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from .conftest import Broker, TopicMaker
from .python_kafka import consumer, producer, read, send_values
from .wait import PATIENCE_S, until

ISOLATIONS = ("read_uncommitted", "read_committed")


def values(broker: Broker, topic: str, isolation: str) -> list[bytes]:
    where = TopicPartition(topic, 0)
    settings = {
        "bootstrap_servers": broker.bootstrap,
        "isolation_level": isolation,
        "auto_offset_reset": "earliest",
    }
    with closing(KafkaConsumer(**settings)) as source:
        source.assign([where])
        end = source.end_offsets([where])[where]
        found: list[bytes] = []
        while source.position(where) < end:
            for batch in source.poll(timeout_ms=200).values():
                found += [record.value for record in batch]
        return found


def end_of(broker: Broker, topic: str, isolation: str) -> int:
    where = TopicPartition(topic, 0)
    with consumer(broker.bootstrap, isolation_level=isolation) as source:
        return int(source.end_offsets([where])[where])


def check_committed(broker: Broker, topic: str, expected: list[bytes]) -> None:
    """The answer to a commit comes before its markers: they are there a moment later."""
    until(lambda: values(broker, topic, "read_committed") == expected, "the markers are written")


def test_what_is_committed_is_read_and_what_is_aborted_is_not(
    broker: Broker, topic: str, unused_name: str
) -> None:
    with producer(broker.bootstrap, transactional_id=unused_name) as through:
        through.init_transactions()
        for number in range(6):
            through.begin_transaction()
            for part in range(3):
                through.send(topic, f"{number}.{part}".encode(), partition=0)
            if number % 3 == 2:
                through.flush(PATIENCE_S)
                through.abort_transaction()
            else:
                through.commit_transaction()
    expected = [f"{n}.{part}".encode() for n in range(6) if n % 3 != 2 for part in range(3)]
    check_committed(broker, topic, expected)
    assert len(values(broker, topic, "read_uncommitted")) == 18


def test_a_new_instance_fences_the_old_one(broker: Broker, topic: str, unused_name: str) -> None:
    settings = {"transactional_id": unused_name}
    with producer(broker.bootstrap, **settings) as old, producer(broker.bootstrap, **settings) as new:
        old.init_transactions()
        old.begin_transaction()
        old.send(topic, b"never seen", partition=0).get(PATIENCE_S)
        new.init_transactions()
        with pytest.raises(KafkaError):
            old.commit_transaction()
        new.begin_transaction()
        new.send(topic, b"seen", partition=0)
        new.commit_transaction()
    check_committed(broker, topic, [b"seen"])


def test_a_fenced_producer_can_not_write_either(broker: Broker, topic: str, unused_name: str) -> None:
    settings = {"transactional_id": unused_name}
    with producer(broker.bootstrap, **settings) as old, producer(broker.bootstrap, **settings) as new:
        old.init_transactions()
        new.init_transactions()
        old.begin_transaction()
        with pytest.raises(KafkaError):
            old.send(topic, b"late", partition=0).get(PATIENCE_S)
    assert values(broker, topic, "read_uncommitted") == []


def test_transactions_of_nothing_are_fine(broker: Broker, topic: str, unused_name: str) -> None:
    with producer(broker.bootstrap, transactional_id=unused_name) as through:
        through.init_transactions()
        for commit in (True, False, True):
            through.begin_transaction()
            if commit:
                through.commit_transaction()
            else:
                through.abort_transaction()
        through.begin_transaction()
        through.send(topic, b"x", partition=0)
        through.commit_transaction()
    check_committed(broker, topic, [b"x"])


def test_an_open_transaction_holds_back_read_committed_only(
    broker: Broker, topic: str, unused_name: str
) -> None:
    with producer(broker.bootstrap, transactional_id=unused_name) as through:
        through.init_transactions()
        through.begin_transaction()
        through.send(topic, b"open", partition=0).get(PATIENCE_S)
        assert [end_of(broker, topic, isolation) for isolation in ISOLATIONS] == [1, 0]
        through.commit_transaction()
        check_committed(broker, topic, [b"open"])
        assert [end_of(broker, topic, isolation) for isolation in ISOLATIONS] == [2, 2]


def test_consume_transform_produce_with_every_third_aborted(
    broker: Broker, new_topic: TopicMaker, topic: str, unused_name: str
) -> None:
    out, where, group = new_topic(), TopicPartition(topic, 0), f"{unused_name}-group"
    send_values(broker.bootstrap, topic, 20)
    with (
        producer(broker.bootstrap, transactional_id=unused_name) as through,
        consumer(broker.bootstrap, group_id=group, isolation_level="read_committed") as source,
    ):
        through.init_transactions()
        source.assign([where])
        done = tries = 0
        while done < 20:
            tries += 1
            source.seek(where, done)
            through.begin_transaction()
            for record in read(source, 4):
                through.send(out, record.value + b"!", partition=0)
            through.send_offsets_to_transaction({where: OffsetAndMetadata(done + 4, "", -1)}, group)
            if tries % 3 == 0:
                through.abort_transaction()
            else:
                through.commit_transaction()
                done += 4
            until(lambda: (source.committed(where) or 0) == done, "the group has its offset")  # noqa: B023
    check_committed(broker, out, [b"%d!" % n for n in range(20)])


def test_offsets_are_committed_with_the_transaction(
    broker: Broker, new_topic: TopicMaker, topic: str, unused_name: str
) -> None:
    out, where, group = new_topic(), TopicPartition(topic, 0), f"{unused_name}-group"
    settings = {"bootstrap_servers": broker.bootstrap, "group_id": group, "enable_auto_commit": False}
    with (
        producer(broker.bootstrap, transactional_id=unused_name) as through,
        closing(KafkaConsumer(**settings)) as source,
    ):
        through.init_transactions()
        source.assign([where])
        for number in range(1, 7):
            through.begin_transaction()
            through.send(out, str(number).encode(), partition=0)
            through.send_offsets_to_transaction({where: OffsetAndMetadata(number, "", -1)}, group)
            if number % 3 == 0:
                through.abort_transaction()
            else:
                through.commit_transaction()
            expected = number if number % 3 else number - 1
            until(lambda: source.committed(where) == expected, "the group has its offset")  # noqa: B023
    check_committed(broker, out, [b"1", b"2", b"4", b"5"])
