"""kafka-python: what is produced comes back as it was; idempotent and with fetch sessions by default."""

from __future__ import annotations

import time

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import (
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
)

from .confluent import EVERY_COMPRESSION
from .conftest import Broker, TopicMaker
from .python_kafka import consumer, producer, read, send_values
from .wait import until


def assigned(source: KafkaConsumer, topic: str, partitions: int = 1) -> list[TopicPartition]:
    places = [TopicPartition(topic, partition) for partition in range(partitions)]
    source.assign(places)
    return places


@pytest.mark.parametrize("compression", EVERY_COMPRESSION)
def test_key_value_headers_and_timestamp_survive(broker: Broker, topic: str, compression: str) -> None:
    now = int(time.time() * 1000)
    sent = [
        (f"key-{n % 5}".encode(), f"value-{n}".encode() * 20, [("number", str(n).encode())], now - 500 + n)
        for n in range(100)
    ]
    codec = None if compression == "none" else compression
    with producer(broker.bootstrap, compression_type=codec, linger_ms=20) as through:
        answers = [
            through.send(topic, value, key=key, headers=headers, partition=0, timestamp_ms=stamp)
            for key, value, headers, stamp in sent
        ]
        assert [answer.get(30).offset for answer in answers] == list(range(100))
    with consumer(broker.bootstrap, check_crcs=True) as source:
        assigned(source, topic)
        records = read(source, 100)
    assert [record.offset for record in records] == list(range(100))
    seen = [(record.key, record.value, list(record.headers), record.timestamp) for record in records]
    assert seen == sent


def test_null_and_empty_keys_and_values_are_told_apart(broker: Broker, topic: str) -> None:
    pairs = [(None, b"v"), (b"", b"v"), (b"k", None), (b"k", b""), (b"", b"")]
    with producer(broker.bootstrap) as through:
        for key, value in pairs:
            through.send(topic, value, key=key).get(30)
    with consumer(broker.bootstrap) as source:
        assigned(source, topic)
        assert [(record.key, record.value) for record in read(source, len(pairs))] == pairs


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acks_stores_the_message(broker: Broker, topic: str, acks: int | str) -> None:
    with producer(broker.bootstrap, acks=acks) as through:
        through.send(topic, b"stored")
        through.flush(30)
    with consumer(broker.bootstrap) as source:
        assigned(source, topic)
        assert read(source, 1)[0].value == b"stored"


def test_consumer_reads_from_beginning_end_offset_and_time(broker: Broker, topic: str) -> None:
    base = int(time.time() * 1000) - 3_600_000
    with producer(broker.bootstrap) as through:
        for number in range(20):
            through.send(topic, str(number).encode(), timestamp_ms=base + number * 1000).get(30)
    with consumer(broker.bootstrap) as source:
        (place,) = assigned(source, topic)
        source.seek_to_beginning(place)
        assert read(source, 1)[0].offset == 0
        source.seek(place, 13)
        assert read(source, 1)[0].offset == 13
        found = source.offsets_for_times({place: base + 4500})[place]
        assert (found.offset, found.timestamp) == (5, base + 5000)
        assert source.offsets_for_times({place: base + 999_999})[place] is None
        source.seek_to_end(place)
        assert source.position(place) == 20
        assert (source.beginning_offsets([place])[place], source.end_offsets([place])[place]) == (0, 20)


def test_offset_out_of_range_is_raised_where_no_reset_is_wanted(broker: Broker, topic: str) -> None:
    with consumer(broker.bootstrap, auto_offset_reset="none") as source:
        (place,) = assigned(source, topic)
        source.seek(place, 500)
        with pytest.raises(OffsetOutOfRangeError):
            until(lambda: source.poll(timeout_ms=200), "an error")


def test_message_above_the_topics_limit_is_refused(broker: Broker, topic: str) -> None:
    with producer(broker.bootstrap, max_request_size=10_000_000) as through:
        refused = through.send(topic, b"x" * 2_000_000)
        with pytest.raises(MessageSizeTooLargeError):
            refused.get(30)


def test_one_fetch_session_follows_partitions_as_messages_come(broker: Broker, new_topic: TopicMaker) -> None:
    """An incremental session names only what changed: unchanged partitions must still be served."""
    topic = new_topic(partitions=8)
    with (
        producer(broker.bootstrap) as through,
        consumer(broker.bootstrap, enable_incremental_fetch_sessions=True, fetch_max_wait_ms=100) as source,
    ):
        places = assigned(source, topic, 8)
        source.seek_to_beginning(*places)
        for round_number in range(20):
            partition = (round_number * 3) % 8
            through.send(topic, str(round_number).encode(), partition=partition).get(30)
            (record,) = read(source, 1)
            assert (record.partition, record.value) == (partition, str(round_number).encode())


def test_fetch_session_forgets_and_regains_a_partition(broker: Broker, new_topic: TopicMaker) -> None:
    topic = new_topic(partitions=2)
    with consumer(broker.bootstrap, fetch_max_wait_ms=100) as source:
        places = assigned(source, topic, 2)
        source.seek_to_beginning(*places)
        send_values(broker.bootstrap, topic, 3, partition=0)
        read(source, 3)
        source.pause(places[1])
        send_values(broker.bootstrap, topic, 3, partition=1)
        assert source.poll(timeout_ms=400) == {}
        source.resume(places[1])
        assert {record.partition for record in read(source, 3)} == {1}


def test_without_fetch_sessions_every_request_is_whole(broker: Broker, new_topic: TopicMaker) -> None:
    topic = new_topic(partitions=3)
    for partition in range(3):
        send_values(broker.bootstrap, topic, 5, partition)
    with consumer(broker.bootstrap, enable_incremental_fetch_sessions=False) as source:
        assigned(source, topic, 3)
        assert len(read(source, 15)) == 15


def test_small_fetch_limits_still_bring_everything(broker: Broker, new_topic: TopicMaker) -> None:
    topic = new_topic(partitions=2)
    with producer(broker.bootstrap, linger_ms=0) as through:
        for number in range(40):
            through.send(topic, b"x" * 5000, partition=number % 2)
        through.flush(30)
    with consumer(broker.bootstrap, fetch_max_bytes=1000, max_partition_fetch_bytes=1000) as source:
        assigned(source, topic, 2)
        assert len(read(source, 40)) == 40


def test_topic_is_created_by_the_first_message(broker: Broker, unused_name: str) -> None:
    with producer(broker.bootstrap) as through:
        assert through.send(unused_name, b"first").get(30).offset == 0
