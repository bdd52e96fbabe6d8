"""The plain Kafka client against which Spark's rows are held: confluent-kafka, nothing of ours."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

PATIENCE_S = 120.0  # all of it takes moments; this only bounds a failure


class Row(NamedTuple):
    """What a Kafka consumer and a row of Spark both know of a message."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    time_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Message(NamedTuple):
    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    headers: Sequence[tuple[str, bytes | None]] = ()
    time_ms: int = 0


def create(bootstrap: str, topic: str, partitions: int = 1, **config: str) -> None:
    """The topic is there afterwards; a config's dots are written as underscores."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    new = NewTopic(topic, partitions, 1, config=settings)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([new])[topic].result(PATIENCE_S)


def create_replicated(bootstrap: str, topic: str, partitions: int, replicas: int = 3) -> None:
    """The topic is there afterwards, on several nodes."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, replicas)])[topic].result(PATIENCE_S)


def add_partitions(bootstrap: str, topic: str, total: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, total)])[topic].result(PATIENCE_S)


def delete(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(PATIENCE_S)


def delete_before(bootstrap: str, topic: str, partition: int, offset: int) -> None:
    """Records before the offset are deleted, as retention would."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for outcome in admin.delete_records([TopicPartition(topic, partition, offset)]).values():
        outcome.result(PATIENCE_S)


def send(bootstrap: str, topic: str, messages: Iterable[Message], **settings: Any) -> None:
    """All of them are stored afterwards, in order for each partition."""
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failures.append(error)

    config = {name.replace("_", "."): value for name, value in settings.items()}
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **config})
    for each in messages:
        producer.produce(
            topic,
            value=each.value,
            key=each.key,
            partition=each.partition,
            headers=list(each.headers),
            timestamp=each.time_ms,
            on_delivery=delivered,
        )
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    assert not failures


def numbered(count: int, partition: int = 0, first: int = 0) -> list[Message]:
    """`count` messages whose values are numbers."""
    return [Message(b"%d" % number, partition=partition) for number in range(first, first + count)]


def read_all(bootstrap: str, topic: str, isolation: str = "read_uncommitted") -> list[Row]:
    """All that the topic has now, by partition and offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "plain",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    try:
        partitions = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        return sorted(_until_the_end(consumer, set(partitions)))
    finally:
        consumer.close()


def numbers_in(bootstrap: str, topic: str) -> list[int]:
    """The values of all that the topic has now, sorted."""
    return sorted(int(row.value or b"") for row in read_all(bootstrap, topic))


def _until_the_end(consumer: Consumer, open_partitions: set[int]) -> list[Row]:
    rows = []
    deadline = time.monotonic() + PATIENCE_S
    while open_partitions:
        assert time.monotonic() < deadline, "the plain consumer did not come to the end"
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error() is not None:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            open_partitions.discard(message.partition())
            continue
        rows.append(
            Row(
                message.topic(),
                message.partition(),
                message.offset(),
                message.key(),
                message.value(),
                message.timestamp()[1],
                tuple(message.headers() or ()),
            )
        )
    return rows


def of_spark(rows: Iterable[Any]) -> list[Row]:
    """The same from collected rows of a DataFrame, by partition and offset."""
    found = []
    for row in rows:
        fields = row.asDict(recursive=True)
        headers = tuple(
            (each["key"], None if each["value"] is None else bytes(each["value"]))
            for each in fields.get("headers") or ()
        )
        found.append(
            Row(
                fields["topic"],
                fields["partition"],
                fields["offset"],
                None if fields["key"] is None else bytes(fields["key"]),
                None if fields["value"] is None else bytes(fields["value"]),
                round(fields["timestamp"].timestamp() * 1000),
                headers,
            )
        )
    return sorted(found, key=lambda row: row[:3])
