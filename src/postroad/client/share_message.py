"""A message that a member of a subscription holds, and what can be said of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from postroad.client.metadata import TopicPartition
from postroad.errors import CorruptMessage, ProtocolError
from postroad.wire import batch as batches
from postroad.wire.records import Record, decode_records

ACQUIRED_MAX: Final = 1_000_000  # far beyond what anybody asks for; an answer may name any range


class AckType(IntEnum):
    """The wire's numbers. GAP is for offsets without a message, which only the client itself finds."""

    GAP = 0
    ACCEPT = 1  # it is done with
    RELEASE = 2  # let it come again
    REJECT = 3  # it can't be handled: to the dead letters
    RENEW = 4  # the lock starts anew
    RETURN = 100  # nobody saw it: as if it had not been delivered. Postroad only
    PLEDGE = 101  # it is done with if a transaction commits (`client.transactions`). Postroad only


class ShareMessage(NamedTuple):
    """Held from its delivery until it is acknowledged or its lock ends; `delivery_count` begins with 1."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    delivery_count: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class Delivery(NamedTuple):
    """What came of one partition. `gaps` were acquired and hold no message, `damaged` can't be read."""

    messages: list[ShareMessage]
    gaps: list[int]
    damaged: list[int]


def read_delivery(topic_partition: TopicPartition, answer: Any) -> Delivery:
    """From a partition's part of a ShareFetch answer. Its batches may hold more than was acquired."""
    counts = _delivery_counts(answer.acquired_records)
    delivery = Delivery([], [], [])
    if not counts:
        return delivery
    data = memoryview(answer.records)
    for position, header in batches.walk(data):
        if header.attributes & batches.CONTROL:
            continue
        try:
            batches.check(data, header, position)
            records = decode_records(data[position : position + header.size])
        except CorruptMessage:
            within = [at for at in counts if header.base_offset <= at < header.next_offset]
            delivery.damaged.extend(at for at in within if counts.pop(at))
        else:
            delivery.messages.extend(_messages(topic_partition, records, counts))
    delivery.gaps.extend(counts)
    return delivery


def _delivery_counts(acquired: Iterable[Any]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for run in acquired:
        if len(counts) + run.last_offset - run.first_offset >= ACQUIRED_MAX:
            raise ProtocolError(f"A partition hands out more than {ACQUIRED_MAX:,} messages at once.")
        counts.update(dict.fromkeys(range(run.first_offset, run.last_offset + 1), run.delivery_count))
    return counts


def _messages(
    topic_partition: TopicPartition, records: Iterable[Record], counts: dict[int, int]
) -> Iterable[ShareMessage]:
    topic, partition = topic_partition
    for offset, timestamp, key, value, headers in records:
        count = counts.pop(offset, 0)
        if count:
            yield ShareMessage(topic, partition, offset, timestamp, key, value, headers, count)
