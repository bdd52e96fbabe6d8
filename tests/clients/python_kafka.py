"""What the kafka-python tests share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.consumer.fetcher import ConsumerRecord

from .wait import PATIENCE_S, until

QUICK_GROUP = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 200, "metadata_max_age_ms": 500}


def producer(bootstrap: str, **settings: Any) -> closing[KafkaProducer]:
    return closing(KafkaProducer(bootstrap_servers=bootstrap, **settings))


def admin_client(bootstrap: str) -> closing[KafkaAdminClient]:
    return closing(KafkaAdminClient(bootstrap_servers=bootstrap))


@contextmanager
def consumer(bootstrap: str, *topics: str, **settings: Any) -> Iterator[KafkaConsumer]:
    defaults: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, **(defaults | settings))) as opened:
        if topics:
            subscribe(opened, *topics)
        yield opened


def subscribe(member: KafkaConsumer, *topics: str, listener: ConsumerRebalanceListener | None = None) -> None:
    """With metadata that came when it was known what for, and before it joins: a leader that assigned without
    joins again when they come. If the poll that does so ends meanwhile, kafka-python sends no heartbeats from
    then on."""
    member.subscribe(topics, listener=listener)
    until(lambda: set(topics) <= member.topics(), f"metadata of {topics}")


def send_values(bootstrap: str, topic: str, count: int, partition: int = 0, **settings: Any) -> None:
    """`count` messages whose values are b"0", b"1", …"""
    with producer(bootstrap, **settings) as through:
        sent = [through.send(topic, str(number).encode(), partition=partition) for number in range(count)]
        through.flush(PATIENCE_S)
        for answer in sent:
            answer.get(PATIENCE_S)


def read(source: KafkaConsumer, count: int, patience_s: float = PATIENCE_S) -> list[ConsumerRecord]:
    """The next `count` records, whatever partitions they come from."""
    records: list[ConsumerRecord] = []
    deadline = time.monotonic() + patience_s
    while len(records) < count and time.monotonic() < deadline:
        for part in source.poll(timeout_ms=200, max_records=count - len(records)).values():
            records += part
    assert len(records) == count, f"{len(records)} of {count} records came in {patience_s:g} s"
    return records


def settle(members: list[KafkaConsumer], partitions: int, patience_s: float = PATIENCE_S) -> list[set[int]]:
    """Poll all members until they own all partitions in one generation, each one once, nobody without.

    They are polled side by side, as members in processes of their own are: one after the other, each would
    wait in its own poll for a join of the others that nobody sends meanwhile.
    """

    def owned() -> list[set[int]] | None:
        with ThreadPoolExecutor(len(members)) as pool:
            list(pool.map(lambda member: member.poll(timeout_ms=200), members))
        shares = [{owned.partition for owned in member.assignment()} for member in members]
        whole = sum(map(len, shares)) == partitions and set().union(*shares) == set(range(partitions))
        one_generation = len({member.group_metadata().generation_id for member in members}) == 1
        return shares if whole and all(shares) and one_generation else None

    return until(owned, f"{len(members)} members share {partitions} partitions", patience_s)
