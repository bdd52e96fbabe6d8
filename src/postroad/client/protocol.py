"""What members of a classic consumer group tell each other, through the coordinator, as bytes.

    subscription := version (int16) which topics a member wants
    assignment   := version (int16) which partitions it gets

Version 0 is written, as every client reads it; any version is read, since each only appends.
The assignor is Kafka's `range`: each topic's partitions in order, in even runs, to its members in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Final

from postroad.client.metadata import TopicPartition
from postroad.errors import ProtocolError
from postroad.wire.messages import consumer_protocol_assignment as assignments
from postroad.wire.messages import consumer_protocol_subscription as subscriptions

PROTOCOL_TYPE: Final = "consumer"
RANGE: Final = "range"
_VERSION: Final = Struct(">h")


def write_subscription(topics: Sequence[str]) -> bytes:
    body = subscriptions.ConsumerProtocolSubscription(topics=sorted(topics))
    return _VERSION.pack(0) + subscriptions.encode(body, 0)


def read_subscription(data: bytes) -> list[str]:
    """The topics. ProtocolError if these are no such bytes."""
    return list(subscriptions.decode(_body(data), 0).topics)


def write_assignment(topic_partitions: Sequence[TopicPartition]) -> bytes:
    gathered: dict[str, list[int]] = {}
    for topic, index in sorted(topic_partitions):
        gathered.setdefault(topic, []).append(index)
    body = assignments.ConsumerProtocolAssignment(
        assigned_partitions=[
            assignments.TopicPartition(topic=topic, partitions=indexes) for topic, indexes in gathered.items()
        ]
    )
    return _VERSION.pack(0) + assignments.encode(body, 0)


def read_assignment(data: bytes) -> list[TopicPartition]:
    """Empty for a member that has none yet. ProtocolError if these are no such bytes."""
    if not data:
        return []
    body = assignments.decode(_body(data), 0)
    return [
        TopicPartition(owned.topic, index) for owned in body.assigned_partitions for index in owned.partitions
    ]


def assign_range(
    members: Mapping[str, Sequence[str]], partitions: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """member → topics it wants, topic → number of partitions: member → partitions it gets."""
    assigned: dict[str, list[TopicPartition]] = {member: [] for member in members}
    for topic in sorted({topic for wanted in members.values() for topic in wanted}):
        takers = sorted(member for member, wanted in members.items() if topic in wanted)
        share, extra = divmod(partitions.get(topic, 0), len(takers))
        start = 0
        for topic_partition, member in enumerate(takers):
            stop = start + share + (topic_partition < extra)
            assigned[member] += (TopicPartition(topic, index) for index in range(start, stop))
            start = stop
    return assigned


def _body(data: bytes) -> memoryview:
    if len(data) < _VERSION.size or _VERSION.unpack_from(data)[0] < 0:
        raise ProtocolError("the member's bytes are neither a subscription nor an assignment")
    return memoryview(data)[_VERSION.size :]
