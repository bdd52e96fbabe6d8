"""What the confluent-kafka tests share: producers that must succeed, consumers that are always closed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from .wait import PATIENCE_S, until

EVERY_COMPRESSION = ["none", "gzip", "snappy", "lz4", "zstd"]
QUICK_GROUP = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}


class Secured(str):
    """A bootstrap address, and what clients have to show there (settings of librdkafka)."""

    client: Mapping[str, Any]

    def __new__(cls, bootstrap: str, client: Mapping[str, Any]) -> Secured:
        made = super().__new__(cls, bootstrap)
        made.client = client
        return made


def reach(bootstrap: str) -> dict[str, Any]:
    """What librdkafka needs to be told to reach it."""
    shown = bootstrap.client if isinstance(bootstrap, Secured) else {}
    return {"bootstrap.servers": str(bootstrap), **shown}


def producer(bootstrap: str, **settings: Any) -> Producer:
    """Settings are written with `_` for `.`: `compression_type="gzip"`."""
    return Producer({**reach(bootstrap), **dotted(settings)})


@contextmanager
def consumer(bootstrap: str, group: str = "unused", **settings: Any) -> Iterator[Consumer]:
    config: dict[str, Any] = {
        **reach(bootstrap),
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **dotted(settings),
    }
    opened = Consumer(config)
    try:
        yield opened
    finally:
        opened.close()


def send_all(through: Producer, topic: str, messages: Iterable[dict[str, Any]]) -> list[Message]:
    """Produce each message (keyword arguments of `produce`) and give them as acknowledged, in that order."""
    acknowledged: list[Message] = []
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        refused.append(error) if error else acknowledged.append(message)

    for message in messages:
        through.produce(topic, on_delivery=delivered, **message)
    left = through.flush(PATIENCE_S)
    assert not refused, refused[0]
    assert left == 0, f"{left} messages were never acknowledged"
    return acknowledged


def send_values(bootstrap: str, topic: str, count: int, partition: int = 0, **settings: Any) -> None:
    """`count` messages whose values are b"0", b"1", …"""
    send_all(
        producer(bootstrap, **settings),
        topic,
        ({"value": str(number).encode(), "partition": partition} for number in range(count)),
    )


def refusal(through: Producer, topic: str, **message: Any) -> KafkaError:
    """The error that the broker answers this message with."""
    errors: list[KafkaError] = []
    through.produce(topic, on_delivery=lambda error, _: errors.append(error), **message)
    through.flush(PATIENCE_S)
    assert errors, "neither acknowledged nor refused"
    assert errors[0], "acknowledged, not refused"
    return errors[0]


def read(source: Consumer, count: int, patience_s: float = PATIENCE_S) -> list[Message]:
    """The next `count` messages, whatever partitions they come from."""
    messages: list[Message] = []
    deadline = time.monotonic() + patience_s
    while len(messages) < count and time.monotonic() < deadline:
        messages += [good(message) for message in source.consume(count - len(messages), timeout=0.2)]
    assert len(messages) == count, f"{len(messages)} of {count} messages came in {patience_s:g} s"
    return messages


def read_from(bootstrap: str, partition: TopicPartition, count: int, **settings: Any) -> list[Message]:
    with consumer(bootstrap, **settings) as source:
        source.assign([partition])
        return read(source, count)


def settle(members: list[Consumer], partitions: int, patience_s: float = PATIENCE_S) -> list[set[int]]:
    """Poll all members until they own all partitions, each one once, and nobody is left without."""

    def owned() -> list[set[int]] | None:
        for member in members:
            member.poll(0.05)
        shares = [{owned.partition for owned in member.assignment()} for member in members]
        whole = sum(map(len, shares)) == partitions and set().union(*shares) == set(range(partitions))
        return shares if whole and all(shares) else None

    return until(owned, f"{len(members)} members share {partitions} partitions", patience_s)


def good(message: Message) -> Message:
    if message.error():
        raise KafkaException(message.error())
    return message


def dotted(settings: dict[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "."): value for key, value in settings.items()}
