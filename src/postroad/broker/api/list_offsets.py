"""ListOffsets (2), versions 1–11: the offset at a time, or one of a log's named offsets.

Timestamps below zero are names: -1 latest (the high watermark; read_committed: the stable offset), -2
earliest, -3 the record with the largest timestamp (KIP-734), -4 earliest local (KIP-405), -5 latest in remote
storage and -6 earliest pending upload (there is no remote storage: unknown).

What was acknowledged before the request is part of the answer: it waits for its sync (`acknowledged`).

A new leader's high watermark may be lower for a moment than the one that the last leader showed. Until it has
reached the start of its epoch, what lies at the end is OFFSET_NOT_AVAILABLE (KIP-207): an offset that is too
low would make a consumer read messages twice. For the same reason a leader that may have been replaced, and
has not heard of it, does not say where its log ends (`broker.evidence`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.acknowledged import answer_when_caught_up
from postroad.broker.dispatch import Call, Result
from postroad.broker.partition import Partition
from postroad.broker.parts import HasClock, HasEvidence, HasPartitions
from postroad.errors import (
    ApiError,
    LeaderNotAvailable,
    OffsetNotAvailable,
    StorageFailed,
    UnsupportedVersion,
)
from postroad.security.resources import Operation
from postroad.wire.fetch import READ_COMMITTED
from postroad.wire.messages import list_offsets as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(topic=Operation.DESCRIBE)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
UNKNOWN: Final = -1
_NOT_AT_END: Final = (EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD)
_NOT_AVAILABLE_FROM: Final = 5  # clients that speak an older version know LEADER_NOT_AVAILABLE
_NAMES_FROM: Final = {  # the version that a name came with
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


class Uses(HasClock, HasEvidence, HasPartitions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request, version = codec.decode_request(call.body, call.version), call.version
    partitions = _asked_for_end(node, request)
    access, now_ms = call.access, node.clock.monotonic_ms()
    return answer_when_caught_up(call, partitions, lambda: _respond(node, access, request, version), now_ms)


def _asked_for_end(node: Uses, request: codec.ListOffsetsRequest) -> Iterator[Partition]:
    """The partitions whose answer depends on where they end."""
    for topic in request.topics:
        for wanted in topic.partitions:
            partition = node.partitions.find(topic.name, wanted.partition_index)
            if partition is not None and wanted.timestamp not in _NOT_AT_END:
                yield partition


def _respond(node: Uses, access: Access, request: codec.ListOffsetsRequest, version: int) -> bytes:
    topics = [
        codec.ListOffsetsTopicResponse(
            topic.name,
            [
                _partition(node, access, topic.name, p, version, request.isolation_level)
                for p in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return codec.encode_response(codec.ListOffsetsResponse(topics=topics), version)


def _partition(
    node: Uses,
    access: Access,
    topic: str,
    wanted: codec.ListOffsetsPartition,
    version: int,
    isolation: int,
) -> codec.ListOffsetsPartitionResponse:
    index = wanted.partition_index
    try:
        access.check_topic(topic)
        partition = node.partitions.lead(topic, index)
        partition.check_epoch(wanted.current_leader_epoch)
        if wanted.timestamp < 0 and version < _NAMES_FROM.get(wanted.timestamp, version + 1):
            raise UnsupportedVersion()
        end = partition.stable_offset if isolation == READ_COMMITTED else partition.high_watermark
        offset, timestamp, epoch = _find(node, partition, wanted.timestamp, end)
    except OffsetNotAvailable as error:
        code = error.code if version >= _NOT_AVAILABLE_FROM else LeaderNotAvailable.code
        return codec.ListOffsetsPartitionResponse(index, code)
    except ApiError as error:
        return codec.ListOffsetsPartitionResponse(index, error.code)
    except OSError:
        return codec.ListOffsetsPartitionResponse(index, StorageFailed.code)
    return codec.ListOffsetsPartitionResponse(index, 0, timestamp, offset, epoch)


def _find(node: Uses, partition: Partition, timestamp: int, end: int) -> tuple[int, int, int]:
    """(offset, timestamp, leader epoch); `end` is up to where the client may read."""
    if timestamp == LATEST:
        _check_end(node, partition)
        return end, UNKNOWN, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = partition.log.start_offset
        return start, UNKNOWN, partition.log.leader_epochs.at(start)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return UNKNOWN, UNKNOWN, UNKNOWN
    if timestamp == MAX_TIMESTAMP:
        found = partition.log.max_timestamp()
    else:
        found = partition.log.offset_for_time(timestamp)
    if found is None or found.offset >= end:
        _check_end(node, partition)
        return UNKNOWN, UNKNOWN, UNKNOWN
    return found.offset, found.timestamp, found.leader_epoch


def _check_end(node: Uses, partition: Partition) -> None:
    """Raise while a higher end than the present one may have been shown: OffsetNotAvailable by the leader
    before this one, NotLeaderOrFollower by the one after it."""
    node.evidence.check(partition)
    if partition.leadership is not None and not partition.leadership.reached_start():
        raise OffsetNotAvailable()
