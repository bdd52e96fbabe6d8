"""Promises to transactional producers and read_committed consumers of librdkafka."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from .confluent import consumer, good, producer, read
from .conftest import Broker, TopicMaker
from .wait import PATIENCE_S, until


def transactional(broker: Broker, name: str, **settings: object) -> Producer:
    through = producer(broker.bootstrap, transactional_id=name, **settings)
    through.init_transactions(PATIENCE_S)
    return through


def values(broker: Broker, topic: str, isolation: str) -> list[bytes | None]:
    """All that can be read now, from the first offset to the end that the broker tells of."""
    found: list[bytes | None] = []
    with consumer(broker.bootstrap, isolation_level=isolation, enable_partition_eof=True) as source:
        source.assign([TopicPartition(topic, 0, 0)])
        while True:
            (event,) = source.consume(1, timeout=PATIENCE_S)
            error = event.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                return found
            found.append(good(event).value())


def check_committed(broker: Broker, topic: str, expected: list[bytes]) -> None:
    """The answer to a commit comes before its markers: they are there a moment later."""
    until(lambda: values(broker, topic, "read_committed") == expected, "the markers are written")


def end_of(broker: Broker, topic: str, isolation: str) -> int:
    with consumer(broker.bootstrap, isolation_level=isolation) as source:
        return int(source.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S)[1])


def test_what_is_committed_is_read_and_what_is_aborted_is_not(
    broker: Broker, topic: str, unused_name: str
) -> None:
    through = transactional(broker, unused_name)
    for number in range(9):
        through.begin_transaction()
        for part in range(3):
            through.produce(topic, f"{number}.{part}".encode(), partition=0)
        if number % 3 == 2:
            through.flush(PATIENCE_S)
            through.abort_transaction(PATIENCE_S)
        else:
            through.commit_transaction(PATIENCE_S)
    expected = [f"{n}.{part}".encode() for n in range(9) if n % 3 != 2 for part in range(3)]
    check_committed(broker, topic, expected)
    assert len(values(broker, topic, "read_uncommitted")) == 27


def test_an_open_transaction_holds_back_read_committed_only(
    broker: Broker, topic: str, unused_name: str
) -> None:
    through = transactional(broker, unused_name)
    through.begin_transaction()
    through.produce(topic, b"open", partition=0)
    through.flush(PATIENCE_S)
    plain = producer(broker.bootstrap)
    plain.produce(topic, b"plain", partition=0)
    plain.flush(PATIENCE_S)
    assert values(broker, topic, "read_uncommitted") == [b"open", b"plain"]
    assert values(broker, topic, "read_committed") == []
    assert (end_of(broker, topic, "read_uncommitted"), end_of(broker, topic, "read_committed")) == (2, 0)
    with consumer(broker.bootstrap, isolation_level="read_committed") as waiting:
        waiting.assign([TopicPartition(topic, 0, 0)])
        assert waiting.consume(1, timeout=0.3) == []
        through.commit_transaction(PATIENCE_S)
        assert [message.value() for message in read(waiting, 2)] == [b"open", b"plain"]
    until(lambda: end_of(broker, topic, "read_committed") == 3, "the marker is stable")
    assert end_of(broker, topic, "read_uncommitted") == 3


def test_a_new_instance_fences_the_old_one_and_aborts_what_it_left(
    broker: Broker, topic: str, unused_name: str
) -> None:
    old = transactional(broker, unused_name)
    old.begin_transaction()
    old.produce(topic, b"never seen", partition=0)
    old.flush(PATIENCE_S)
    new = transactional(broker, unused_name)
    assert values(broker, topic, "read_committed") == []
    with pytest.raises(KafkaException) as refused:
        old.commit_transaction(PATIENCE_S)
    assert refused.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    new.begin_transaction()
    new.produce(topic, b"seen", partition=0)
    new.commit_transaction(PATIENCE_S)
    check_committed(broker, topic, [b"seen"])


def test_a_fenced_producer_can_not_write_either(broker: Broker, topic: str, unused_name: str) -> None:
    old = transactional(broker, unused_name)
    transactional(broker, unused_name)
    old.begin_transaction()
    old.produce(topic, b"late", partition=0)
    with pytest.raises(KafkaException):
        old.commit_transaction(PATIENCE_S)
    assert values(broker, topic, "read_uncommitted") == []


def test_transactions_of_nothing_are_fine(broker: Broker, topic: str, unused_name: str) -> None:
    through = transactional(broker, unused_name)
    for commit in (True, False, True):
        through.begin_transaction()
        if commit:
            through.commit_transaction(PATIENCE_S)
        else:
            through.abort_transaction(PATIENCE_S)
    through.begin_transaction()
    through.produce(topic, b"x", partition=0)
    through.commit_transaction(PATIENCE_S)
    check_committed(broker, topic, [b"x"])


def committed(broker: Broker, group: str, topic: str) -> int:
    with consumer(broker.bootstrap, group) as asking:
        return int(asking.committed([TopicPartition(topic, 0)], PATIENCE_S)[0].offset)


def copy(source: Consumer, through: Producer, count: int, to_topic: str) -> None:
    """One step of consume, transform and produce."""
    through.begin_transaction()
    for message in read(source, count):
        through.produce(to_topic, (message.value() or b"") + b"!", partition=0)
    through.send_offsets_to_transaction(
        source.position(source.assignment()), source.consumer_group_metadata(), PATIENCE_S
    )


def test_consume_transform_produce_with_every_third_aborted(
    broker: Broker, new_topic: TopicMaker, topic: str, unused_name: str
) -> None:
    out = new_topic()
    plain = producer(broker.bootstrap)
    for number in range(30):
        plain.produce(topic, str(number).encode(), partition=0)
    plain.flush(PATIENCE_S)
    through = transactional(broker, unused_name)
    plain.produce(out, b"first", partition=0)
    plain.flush(PATIENCE_S)
    done = tries = 0
    while done < 30:
        tries += 1
        with consumer(broker.bootstrap, f"{unused_name}-group", isolation_level="read_committed") as source:
            source.subscribe([topic])
            copy(source, through, 5, out)
            if tries % 3 == 0:
                through.abort_transaction(PATIENCE_S)
            else:
                through.commit_transaction(PATIENCE_S)
                done += 5
        assert committed(broker, f"{unused_name}-group", topic) == done
    check_committed(broker, out, [b"first", *(b"%d!" % n for n in range(30))])


def test_a_transaction_that_takes_too_long_is_aborted(broker: Broker, topic: str, unused_name: str) -> None:
    through = transactional(broker, unused_name, transaction_timeout_ms=1000)
    through.begin_transaction()
    through.produce(topic, b"too late", partition=0)
    through.flush(PATIENCE_S)
    plain = producer(broker.bootstrap)
    plain.produce(topic, b"plain", partition=0)
    plain.flush(PATIENCE_S)
    check_committed(broker, topic, [b"plain"])
    with pytest.raises(KafkaException):
        through.commit_transaction(PATIENCE_S)


def test_many_partitions_and_messages_are_one_transaction(
    broker: Broker, topic: str, unused_name: str
) -> None:
    through = transactional(broker, unused_name, linger_ms=5)
    through.begin_transaction()
    for number in range(5000):
        through.produce(topic, str(number).encode() * 20, partition=0)
        through.poll(0)
    through.commit_transaction(PATIENCE_S)
    until(lambda: len(values(broker, topic, "read_committed")) == 5000, "all of it is there")


def test_a_group_goes_on_behind_markers_and_what_was_aborted(
    broker: Broker, topic: str, unused_name: str
) -> None:
    """Offsets of markers and of aborted messages are no messages, and no group waits for them."""
    through = transactional(broker, unused_name)
    group = f"{unused_name}-group"
    for number in range(4):
        through.begin_transaction()
        through.produce(topic, b"%d" % number, partition=0)
        through.flush(PATIENCE_S)
        if number % 2:
            through.abort_transaction(PATIENCE_S)
        else:
            through.commit_transaction(PATIENCE_S)
        if number % 2 == 0:
            with consumer(broker.bootstrap, group, isolation_level="read_committed") as source:
                source.subscribe([topic])
                (message,) = read(source, 1)
                assert (message.value(), message.offset()) == (b"%d" % number, 2 * number)
                source.commit(message, asynchronous=False)
    until(lambda: end_of(broker, topic, "read_committed") == 8, "four messages and four markers")
    assert committed(broker, group, topic) == 5
