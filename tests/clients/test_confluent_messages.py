"""confluent-kafka: what is produced comes back as it was, from any place in the log."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    Message,
    TopicPartition,
)

from .confluent import (
    EVERY_COMPRESSION,
    consumer,
    producer,
    read,
    read_from,
    refusal,
    send_all,
    send_values,
)
from .conftest import Broker, TopicMaker
from .wait import until

A_DAY_MS = 86_400_000


@pytest.mark.parametrize("compression", EVERY_COMPRESSION)
def test_key_value_headers_and_timestamp_survive(broker: Broker, topic: str, compression: str) -> None:
    now = int(time.time() * 1000)
    sent = [
        {
            "key": f"key-{number % 7}".encode(),
            "value": f"value-{number}".encode() * 20,
            "headers": [("number", str(number).encode()), ("kind", b"\x00\xff")],
            "timestamp": now - 1000 + number,
            "partition": 0,
        }
        for number in range(200)
    ]
    acknowledged = send_all(producer(broker.bootstrap, compression_type=compression), topic, sent)
    assert [message.offset() for message in acknowledged] == list(range(200))

    messages = read_from(broker.bootstrap, TopicPartition(topic, 0, OFFSET_BEGINNING), 200, check_crcs=True)
    assert [message.offset() for message in messages] == list(range(200))
    for message, original in zip(messages, sent, strict=True):
        assert message.key() == original["key"]
        assert message.value() == original["value"]
        assert message.headers() == original["headers"]
        assert message.timestamp() == (TIMESTAMP_CREATE_TIME, original["timestamp"])


def test_null_and_empty_keys_and_values_are_told_apart(broker: Broker, topic: str) -> None:
    pairs = [(None, b"v"), (b"", b"v"), (b"k", None), (b"k", b""), (None, None), (b"", b"")]
    send_all(producer(broker.bootstrap), topic, ({"key": key, "value": value} for key, value in pairs))
    messages = read_from(broker.bootstrap, TopicPartition(topic, 0, 0), len(pairs))
    assert [(message.key(), message.value()) for message in messages] == pairs


def test_headers_may_repeat_be_empty_or_null_and_keep_their_order(broker: Broker, topic: str) -> None:
    headers = [("a", b"1"), ("b", None), ("a", b"2"), ("c", b""), ("ключ", b"utf-8")]
    send_all(producer(broker.bootstrap), topic, [{"value": b"v", "headers": headers}])
    (message,) = read_from(broker.bootstrap, TopicPartition(topic, 0, 0), 1)
    assert message.headers() == headers


@pytest.mark.parametrize("acks", ["1", "all"])
def test_acknowledged_message_can_be_read_at_its_offset(broker: Broker, topic: str, acks: str) -> None:
    (acknowledged,) = send_all(producer(broker.bootstrap, acks=acks), topic, [{"value": b"here"}])
    (message,) = read_from(broker.bootstrap, TopicPartition(topic, 0, acknowledged.offset()), 1)
    assert message.value() == b"here"


def test_acks_0_is_never_answered_and_still_stored(broker: Broker, topic: str) -> None:
    send_all(producer(broker.bootstrap, acks=0), topic, ({"value": b"fire and forget"} for _ in range(50)))
    assert len(read_from(broker.bootstrap, TopicPartition(topic, 0, OFFSET_BEGINNING), 50)) == 50


def test_messages_of_an_idempotent_producer_stay_in_order_in_each_partition(
    broker: Broker, new_topic: TopicMaker
) -> None:
    topic = new_topic(partitions=6)
    numbers = range(3000)
    through = producer(broker.bootstrap, enable_idempotence=True, linger_ms=1, batch_num_messages=20)
    send_all(through, topic, ({"value": str(n).encode(), "partition": n % 6} for n in numbers))
    with consumer(broker.bootstrap) as source:
        source.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(6)])
        seen: dict[int, list[int]] = {partition: [] for partition in range(6)}
        for message in read(source, len(numbers)):
            seen[message.partition()].append(int(message.value()))
    assert seen == {partition: list(range(partition, 3000, 6)) for partition in range(6)}


def test_consumer_starts_at_the_asked_offset(broker: Broker, topic: str) -> None:
    send_values(broker.bootstrap, topic, 100, linger_ms=50)  # one batch: the offset lies inside it
    (message,) = read_from(broker.bootstrap, TopicPartition(topic, 0, 73), 1)
    assert (message.offset(), message.value()) == (73, b"73")


def test_consumer_at_the_end_sees_only_what_comes_later(broker: Broker, topic: str) -> None:
    send_values(broker.bootstrap, topic, 10)
    with consumer(broker.bootstrap, enable_partition_eof=True) as source:
        source.assign([TopicPartition(topic, 0, OFFSET_END)])
        until(lambda: _at_end(source.poll(0.1)), "the consumer is at the end")
        send_all(producer(broker.bootstrap), topic, [{"value": b"later"}])
        message = until(lambda: _message(source.poll(0.2)), "the message that came later")
    assert (message.offset(), message.value()) == (10, b"later")


def test_consumer_starts_at_the_first_message_of_a_time(broker: Broker, topic: str) -> None:
    base = int(time.time() * 1000) - A_DAY_MS
    through = producer(broker.bootstrap)
    for number in range(20):  # one batch each
        send_all(through, topic, [{"value": str(number).encode(), "timestamp": base + number * 1000}])
    with consumer(broker.bootstrap) as source:
        asked = {"exact": base + 7000, "between": base + 7001, "before": base - 1, "after": base + 60_000}
        found = {
            name: source.offsets_for_times([TopicPartition(topic, 0, when)], timeout=10)[0].offset
            for name, when in asked.items()
        }
        assert found == {"exact": 7, "between": 8, "before": 0, "after": OFFSET_END}
        source.assign([TopicPartition(topic, 0, found["between"])])
        assert read(source, 1)[0].value() == b"8"


def test_time_is_found_inside_a_compressed_batch(broker: Broker, topic: str) -> None:
    base = int(time.time() * 1000) - A_DAY_MS
    through = producer(broker.bootstrap, linger_ms=200, compression_type="zstd")
    send_all(through, topic, ({"value": b"x" * 100, "timestamp": base + number} for number in range(100)))
    with consumer(broker.bootstrap) as source:
        (found,) = source.offsets_for_times([TopicPartition(topic, 0, base + 42)], timeout=10)
    assert found.offset == 42


def test_watermarks_are_the_first_offset_and_the_next_one(broker: Broker, topic: str) -> None:
    with consumer(broker.bootstrap) as source:
        assert source.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (0, 0)
        send_values(broker.bootstrap, topic, 12)
        assert source.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (0, 12)


def test_offset_out_of_range_resets_as_the_consumer_asked(broker: Broker, topic: str) -> None:
    send_values(broker.bootstrap, topic, 5)
    (message,) = read_from(broker.bootstrap, TopicPartition(topic, 0, 1000), 1)
    assert message.offset() == 0


def test_offset_out_of_range_is_an_error_where_no_reset_is_wanted(broker: Broker, topic: str) -> None:
    send_values(broker.bootstrap, topic, 5)
    with consumer(broker.bootstrap, auto_offset_reset="error") as source:
        source.assign([TopicPartition(topic, 0, 1000)])
        answer = until(lambda: source.poll(0.2), "an answer to the fetch")
    assert answer.error().code() == KafkaError._AUTO_OFFSET_RESET


def test_seek_and_pause_and_resume(broker: Broker, topic: str) -> None:
    send_values(broker.bootstrap, topic, 50)
    partition = TopicPartition(topic, 0, 0)
    with consumer(broker.bootstrap) as source:
        source.assign([partition])
        assert [m.offset() for m in read(source, 10)] == list(range(10))
        source.seek(TopicPartition(topic, 0, 40))
        assert [m.offset() for m in read(source, 10)] == list(range(40, 50))
        source.pause([partition])
        source.seek(TopicPartition(topic, 0, 0))
        assert source.poll(0.5) is None
        source.resume([partition])
        assert read(source, 1)[0].offset() == 0


def test_log_append_time_is_the_brokers(broker: Broker, new_topic: TopicMaker) -> None:
    topic = new_topic(**{"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    send_all(producer(broker.bootstrap), topic, [{"value": b"v", "timestamp": 12345}])
    (message,) = read_from(broker.bootstrap, TopicPartition(topic, 0, 0), 1, check_crcs=True)
    kind, stamp = message.timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert before <= stamp <= int(time.time() * 1000)


def test_message_of_15_megabytes_passes_where_the_topic_allows_it(
    broker: Broker, new_topic: TopicMaker
) -> None:
    topic = new_topic(**{"max.message.bytes": 20_000_000})
    value = bytes(range(256)) * (15_000_000 // 256)
    through = producer(broker.bootstrap, message_max_bytes=20_000_000)
    send_all(through, topic, [{"value": value}, {"value": b"next"}])
    # The consumer asks for 1 MB at most: the first batch comes whole all the same.
    first, second = read_from(
        broker.bootstrap, TopicPartition(topic, 0, 0), 2, fetch_message_max_bytes=1_000_000
    )
    assert first.value() == value
    assert second.value() == b"next"


def test_message_above_the_topics_limit_is_refused_and_the_next_one_is_not(
    broker: Broker, topic: str
) -> None:
    through = producer(broker.bootstrap, message_max_bytes=20_000_000)
    error = refusal(through, topic, value=b"x" * 2_000_000)
    assert error.code() == KafkaError.MSG_SIZE_TOO_LARGE
    (acknowledged,) = send_all(through, topic, [{"value": b"small"}])
    assert acknowledged.offset() == 0


def test_topics_own_compression_is_applied_by_the_broker(broker: Broker, new_topic: TopicMaker) -> None:
    topic = new_topic(**{"compression.type": "gzip"})
    send_all(producer(broker.bootstrap, linger_ms=50), topic, ({"value": b"a" * 500} for _ in range(100)))
    messages = read_from(broker.bootstrap, TopicPartition(topic, 0, 0), 100, check_crcs=True)
    assert [message.value() for message in messages] == [b"a" * 500] * 100


def test_topic_is_created_by_the_first_message(broker: Broker, unused_name: str) -> None:
    (acknowledged,) = send_all(producer(broker.bootstrap), unused_name, [{"value": b"first"}])
    assert (acknowledged.partition(), acknowledged.offset()) == (0, 0)
    (message,) = read_from(broker.bootstrap, TopicPartition(unused_name, 0, 0), 1)
    assert message.value() == b"first"


def test_unknown_topic_is_an_error_for_a_consumer_that_may_not_create_it(
    broker: Broker, unused_name: str
) -> None:
    with consumer(broker.bootstrap, allow_auto_create_topics=False) as source:
        source.subscribe([unused_name])
        answer = until(lambda: source.poll(0.2), "an error event")
    assert answer.error().code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_producer_with_a_wrong_partition_is_told(broker: Broker, topic: str) -> None:
    error = refusal(producer(broker.bootstrap, message_timeout_ms=3000), topic, value=b"v", partition=7)
    assert error.code() in {KafkaError._UNKNOWN_PARTITION, KafkaError._MSG_TIMED_OUT}


def test_unread_positions_are_invalid_and_read_ones_follow_the_last_message(
    broker: Broker, topic: str
) -> None:
    send_values(broker.bootstrap, topic, 3)
    with consumer(broker.bootstrap) as source:
        source.assign([TopicPartition(topic, 0, 0)])
        assert source.position([TopicPartition(topic, 0)])[0].offset == OFFSET_INVALID
        read(source, 3)
        assert source.position([TopicPartition(topic, 0)])[0].offset == 3


def _at_end(event: Message | None) -> bool:
    return event is not None and event.error() and event.error().code() == KafkaError._PARTITION_EOF


def _message(event: Message | None) -> Message | None:
    return event if event is not None and not event.error() else None
