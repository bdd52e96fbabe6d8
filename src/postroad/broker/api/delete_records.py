"""DeleteRecords (21), versions 0–2: everything below an offset (-1: the high watermark) goes.

The high watermark covers what was acknowledged before the request (`acknowledged`).
What is deleted can't be read once this is answered, also after a kill; a sync that is asked for here
makes it last over a power cut. The files of whole segments follow in a thread.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.acknowledged import answer_when_caught_up
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasClock, HasFlusher, HasHousekeeping, HasPartitions
from postroad.errors import ApiError, InvalidTopic, OffsetOutOfRange, PolicyViolation
from postroad.wire.messages import delete_records as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM

HIGH_WATERMARK: Final = -1


class Uses(HasClock, HasFlusher, HasHousekeeping, HasPartitions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request, version = codec.decode_request(call.body, call.version), call.version
    named = [(topic.name, wanted.partition_index) for topic in request.topics for wanted in topic.partitions]
    found = [node.partitions.find(topic, index) for topic, index in named]
    partitions = [partition for partition in found if partition is not None]
    now_ms = node.clock.monotonic_ms()
    return answer_when_caught_up(call, partitions, lambda: _respond(node, request, version), now_ms)


def _respond(node: Uses, request: codec.DeleteRecordsRequest, version: int) -> bytes:
    topics = [
        codec.DeleteRecordsTopicResult(topic.name, [_delete(node, topic.name, p) for p in topic.partitions])
        for topic in request.topics
    ]
    return codec.encode_response(codec.DeleteRecordsResponse(topics=topics), version)


def _delete(
    node: Uses, topic: str, wanted: codec.DeleteRecordsPartition
) -> codec.DeleteRecordsPartitionResult:
    index = wanted.partition_index
    try:
        partition = node.partitions.lead(topic, index)
        if partition.internal:
            raise InvalidTopic(f"{topic} is kept by the nodes themselves; its records can't be deleted.")
        settings = partition.log.settings
        if settings.cleanup_compact and not settings.cleanup_delete:
            raise PolicyViolation("The topic is compacted only (cleanup.policy); write tombstones instead.")
        high = partition.high_watermark
        offset = high if wanted.offset == HIGH_WATERMARK else wanted.offset
        if not 0 <= offset <= high:
            raise OffsetOutOfRange(f"Records up to offset {high} can be deleted.")
        low = partition.log.delete_before(offset, high)
    except ApiError as error:
        return codec.DeleteRecordsPartitionResult(index, -1, error.code)
    node.housekeeping.expire(partition)
    node.flusher.request(partition)
    return codec.DeleteRecordsPartitionResult(index, low)
