"""What the tests of subscriptions share: groups with configs, share consumers, deliveries and answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import AcknowledgeType, Consumer, KafkaException, Message, ShareConsumer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from .confluent import consumer, dotted, good, producer, reach, read, send_all
from .conftest import Broker
from .wait import PATIENCE_S, until

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT

# Members learn of a change by a heartbeat. Kafka allows none shorter than 5 s, nor locks below 15 s.
HEARTBEAT_MS = 100
KAFKA_SHORTEST_LOCK_MS = 15_000
LONG_LOCK_MS = 30_000  # no test takes so long; the default

Decide = Callable[[Message], AcknowledgeType]


def configure(admin: AdminClient, broker: Broker, group: str, **config: str | int) -> None:
    """The group's configs, with `_` for `.`; it starts at the earliest message unless told otherwise."""
    wanted: dict[str, str | int] = {"share.auto.offset.reset": "earliest", **dotted(config)}
    if broker.ours:
        wanted.setdefault("share.heartbeat.interval.ms", HEARTBEAT_MS)
    configure_group(admin, group, **wanted)


def configure_group(admin: AdminClient, group: str, **config: str | int) -> None:
    """These configs of the group, and no others; with `_` for `.`."""
    wanted = dotted(config)
    entries = [
        ConfigEntry(name, str(value), incremental_operation=AlterConfigOpType.SET)
        for name, value in wanted.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)


def short_lock_ms(broker: Broker) -> int:
    """The shortest lock that a test may wait for; it may be over before the test does anything else."""
    return 500 if broker.ours else KAFKA_SHORTEST_LOCK_MS


@contextmanager
def member(bootstrap: str, group: str, *topics: str, **settings: Any) -> Iterator[ShareConsumer]:
    """A member that answers for each message itself, unless `share_acknowledgement_mode="implicit"`."""
    opened = ShareConsumer(
        {
            **reach(bootstrap),
            "group.id": group,
            "share.acknowledgement.mode": "explicit",
            "log_level": 3,  # below, it only warns that librdkafka calls its share consumer a preview
            **dotted(settings),
        }
    )
    opened.subscribe(list(topics))
    try:
        yield opened
    finally:
        opened.close()


def send_singly(bootstrap: str, topic: str, count: int, partition: int = 0, first: int = 0) -> None:
    """Values b"0", b"1", …, each in a batch of its own: Kafka hands out whole batches, whatever is asked."""
    through = producer(bootstrap, batch_num_messages=1)
    send_all(
        through,
        topic,
        ({"value": b"%d" % n, "partition": partition} for n in range(first, first + count)),
    )


def take(source: ShareConsumer, count: int | None = None, patience_s: float = PATIENCE_S) -> list[Message]:
    """What the next poll that gives anything gives, which must be `count` messages; they are held now."""
    messages = until(lambda: poll(source), "a delivery", patience_s, pause_s=0)
    assert count is None or len(messages) == count, [message.offset() for message in messages]
    return messages


def poll(source: ShareConsumer, wait_s: float = 0.1) -> list[Message]:
    return [good(message) for message in source.poll(wait_s)]


def answer(source: ShareConsumer, messages: Sequence[Message], how: AcknowledgeType = ACCEPT) -> None:
    """Acknowledge all of them alike; the broker has confirmed it afterwards."""
    for message in messages:
        source.acknowledge(message, how)
    confirm(source)


def confirm(source: ShareConsumer) -> None:
    for place, error in source.commit_sync(PATIENCE_S).items():
        assert error is None, f"{place}: {error}"


def work(
    members: ShareConsumer | Sequence[ShareConsumer],
    count: int,
    decide: Decide = lambda message: ACCEPT,
    patience_s: float = PATIENCE_S,
) -> list[Message]:
    """The next `count` deliveries (or a few more, if they come together), each answered as `decide` says."""
    workers = [members] if isinstance(members, ShareConsumer) else members
    seen: list[Message] = []
    deadline = time.monotonic() + patience_s
    while len(seen) < count:
        assert time.monotonic() < deadline, f"{len(seen)} of {count} deliveries came in {patience_s:g} s"
        for worker in workers:
            messages = poll(worker, 0.05)
            for message in messages:
                worker.acknowledge(message, decide(message))
            if messages:
                confirm(worker)
            seen += messages
    return seen


def values(messages: Sequence[Message]) -> list[bytes]:
    return [message.value() for message in messages]


def offsets(messages: Sequence[Message]) -> list[int]:
    return [message.offset() for message in messages]


def deliveries(messages: Sequence[Message]) -> list[int]:
    return [message.delivery_count() for message in messages]


def assert_nothing_before(broker: Broker, source: ShareConsumer, topic: str, partition: int = 0) -> None:
    """Whatever else were available would come before a message that is sent now, or with it."""
    send_all(producer(broker.bootstrap), topic, [{"value": b"marker", "partition": partition}])
    messages = take(source)
    assert values(messages) == [b"marker"]
    answer(source, messages)


def dead_letters(bootstrap: str, group: str, count: int, topic: str | None = None) -> list[Message]:
    """All that is in the dead-letter topic, as soon as it holds so many."""
    name = topic or f"{group}.dead"
    with consumer(bootstrap) as source:
        held = until(lambda: _ends(source, name, count), f"{count} dead letters")
        source.assign([TopicPartition(name, partition, 0) for partition in held])
        return read(source, sum(held.values()))


def _ends(source: Consumer, topic: str, count: int) -> dict[int, int]:
    """Where the partitions end; empty until they hold `count` messages."""
    try:
        ends = {
            partition: source.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)[1]
            for partition in source.list_topics(topic, timeout=10).topics[topic].partitions
        }
    except KafkaException:
        return {}  # the topic is just being created
    return ends if sum(ends.values()) >= count else {}
