"""Promises to transactional producers and read_committed consumers of kafka-python."""

from __future__ import annotations

from contextlib import closing

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from .conftest import Broker, TopicMaker
from .python_kafka import producer
from .wait import PATIENCE_S, until


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
