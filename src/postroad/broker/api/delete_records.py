"""DeleteRecords (21), versions 0–2: everything below an offset (-1: the high watermark) goes.

The high watermark covers what was acknowledged before the request (`acknowledged`).
What is deleted can't be read once this is answered, also after a kill; a sync that is asked for here
makes it last over a power cut. The files of whole segments follow in a thread. Where there are other replicas
it is answered when all who may be elected have followed, or with REQUEST_TIMED_OUT (then nobody knows).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.acknowledged import WAIT_MS_MAX, answer_when_caught_up
from postroad.broker.dispatch import Call, Result
from postroad.broker.partition import Partition
from postroad.broker.parts import HasClock, HasFlusher, HasHousekeeping, HasPartitions
from postroad.errors import ApiError, InvalidTopic, OffsetOutOfRange, PolicyViolation
from postroad.security.resources import Operation
from postroad.wire.messages import delete_records as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(topic=Operation.DELETE)

HIGH_WATERMARK: Final = -1
TIMEOUT_MS_MAX: Final = 60_000  # clients' own time-outs are shorter


class Uses(HasClock, HasFlusher, HasHousekeeping, HasPartitions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request, version = codec.decode_request(call.body, call.version), call.version
    named = [(topic.name, wanted.partition_index) for topic in request.topics for wanted in topic.partitions]
    found = [node.partitions.find(topic, index) for topic, index in named]
    partitions = [partition for partition in found if partition is not None]
    now_ms = node.clock.monotonic_ms()
    if any(partition.leadership is not None for partition in partitions):
        return Deletion(node, call, request, now_ms).begin(partitions, now_ms)
    return answer_when_caught_up(
        call, partitions, lambda: _respond(node, call.access, request, version), now_ms
    )


def _respond(node: Uses, access: Access, request: codec.DeleteRecordsRequest, version: int) -> bytes:
    topics = [
        codec.DeleteRecordsTopicResult(
            topic.name, [_delete(node, access, topic.name, p) for p in topic.partitions]
        )
        for topic in request.topics
    ]
    return codec.encode_response(codec.DeleteRecordsResponse(topics=topics), version)


class Deletion:
    """A request for partitions with other replicas: whoever may lead next must have deleted as much, or the
    records would be back after an election."""

    def __init__(self, node: Uses, call: Call, request: codec.DeleteRecordsRequest, now_ms: int) -> None:
        self._node = node
        self._access = call.access
        self._request = request
        self._version = call.version
        self._parked = call.park()
        self._deadline_ms = now_ms + min(max(request.timeout_ms, 0), TIMEOUT_MS_MAX)
        self._left = 0
        self._topics: list[codec.DeleteRecordsTopicResult] = []

    def begin(self, partitions: Sequence[Partition], now_ms: int) -> Result:
        """Wait for what was acknowledged before, then delete."""
        self._left = len(partitions) + 1
        for partition in partitions:
            deadline_ms = now_ms + WAIT_MS_MAX
            partition.when_committed(partition.log.written_offset, self._caught_up, deadline_ms)
        self._caught_up(None)
        return self._parked

    def _caught_up(self, _: ApiError | None) -> None:
        self._left -= 1
        if not self._left:
            self._delete_all()

    def _delete_all(self) -> None:
        for topic in self._request.topics:
            results = [_delete(self._node, self._access, topic.name, wanted) for wanted in topic.partitions]
            self._topics.append(codec.DeleteRecordsTopicResult(topic.name, results))
        self._left = 1 + sum(len(topic.partitions) for topic in self._topics)
        for deleted in self._topics:
            for result in deleted.partitions:
                self._wait(deleted.name, result)
        self._deleted(None, None)

    def _wait(self, topic: str, result: codec.DeleteRecordsPartitionResult) -> None:
        deleted = partial(self._deleted, result)
        partition = None if result.error_code else self._node.partitions.find(topic, result.partition_index)
        if partition is None:
            deleted(None)
        else:
            partition.when_deleted(result.low_watermark, deleted, self._deadline_ms)

    def _deleted(self, result: codec.DeleteRecordsPartitionResult | None, error: ApiError | None) -> None:
        if result is not None and error is not None:
            result.low_watermark, result.error_code = -1, error.code
        self._left -= 1
        if not self._left and not self._parked.abandoned:
            response = codec.DeleteRecordsResponse(topics=self._topics)
            self._parked.complete(codec.encode_response(response, self._version))


def _delete(
    node: Uses, access: Access, topic: str, wanted: codec.DeleteRecordsPartition
) -> codec.DeleteRecordsPartitionResult:
    index = wanted.partition_index
    try:
        access.check_topic(topic)
        partition = node.partitions.lead(topic, index)
        if partition.internal:
            raise InvalidTopic(f"{topic} is kept by the nodes themselves; its records can't be deleted.")
        settings = partition.log.settings
        if settings.cleanup_compact and not settings.cleanup_delete:
            raise PolicyViolation("The topic is compacted only (cleanup.policy); write tombstones instead.")
        high = partition.high_watermark
        offset = high if wanted.offset == HIGH_WATERMARK else wanted.offset
        if not 0 <= offset <= high:
            raise OffsetOutOfRange(f"Only records up to offset {high} can be deleted.")
        low = partition.log.delete_before(offset, high)
    except ApiError as error:
        return codec.DeleteRecordsPartitionResult(index, -1, error.code)
    node.housekeeping.expire(partition)
    node.flusher.request(partition)
    return codec.DeleteRecordsPartitionResult(index, low)
