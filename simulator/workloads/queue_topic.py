"""What producers sent to one topic of the queues, and what lies there in the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from postroad.client.metadata import TopicPartition
from postroad.wire import header_names
from simulator.workloads.queue_history import Headers, Position


@dataclass
class SentMessage:
    value: bytes
    key: bytes | None
    headers: Headers
    sent_at: float
    position: Position | None = None  # once it was acknowledged
    acknowledged_at: float = 0.0


class FoundMessage(NamedTuple):
    """A message as it lies in the log."""

    position: Position
    timestamp: int
    key: bytes | None
    value: bytes
    headers: Headers

    def due_ms(self) -> int:
        return due_ms(self.headers, self.timestamp)


@dataclass
class QueueTopic:
    name: str
    partitions: int
    configs: dict[str, str]
    keyed: bool = False
    delayed: bool = False  # some messages ask for times
    sent: dict[bytes, SentMessage] = field(default_factory=dict)  # by value
    found: dict[Position, FoundMessage] = field(default_factory=dict)  # in the end
    first_offsets: dict[TopicPartition, int] = field(default_factory=dict)  # in the end

    def topic_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, index) for index in range(self.partitions)]

    def is_deleted(self, position: Position) -> bool:
        """Whether the log begins behind it."""
        return position.offset < self.first_offsets[position.topic_partition]

    def messages(self, lost_until: float) -> Iterator[tuple[Position, SentMessage]]:
        """Each message that must have come to its end: what lies in the log, and what was acknowledged and is
        there no longer. What was sent by `lost_until` may have been lost."""
        for position, found in self.found.items():
            if found.value in self.sent:
                yield position, self.sent[found.value]
        for sent in self.sent.values():
            position_or_none = sent.position
            if position_or_none is None or sent.sent_at <= lost_until:
                continue
            if self.is_deleted(position_or_none):
                yield position_or_none, sent


def due_ms(headers: Headers, timestamp: int) -> int:
    """The wall time before which the message must not be delivered; 0: there is none."""
    for name, value in headers:
        if name == header_names.DELIVER_AT and value is not None:
            return int(value)
        if name == header_names.DELAY_MS and value is not None:
            return timestamp + int(value)
    return 0


def expires(headers: Headers) -> bool:
    return any(name == header_names.EXPIRES_AT for name, _ in headers)
