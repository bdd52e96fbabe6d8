# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""OffsetForLeaderEpoch (23), versions 2 to 4."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final

from postroad.wire.primitives import (
    SHORT_UVARINTS,
    UNREADABLE,
    Buffer,
    Message,
    bad_length,
    does_not_fit,
    long_uvarint,
    malformed,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 23
NAME: Final = "OffsetForLeaderEpoch"
MIN_VERSION: Final = 2
MAX_VERSION: Final = 4
FLEXIBLE_FROM: Final = 4

new = object.__new__


class OffsetForLeaderPartition(Message):
    __slots__ = ("partition", "current_leader_epoch", "leader_epoch")
    partition: int
    current_leader_epoch: int
    leader_epoch: int

    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch


class OffsetForLeaderTopic(Message):
    __slots__ = ("topic", "partitions")
    topic: str
    partitions: list[OffsetForLeaderPartition]

    def __init__(
        self,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions


class OffsetForLeaderEpochRequest(Message):
    __slots__ = ("replica_id", "topics")
    replica_id: int  # v3+
    topics: list[OffsetForLeaderTopic]

    def __init__(
        self,
        replica_id: int = -2,
        topics: list[OffsetForLeaderTopic] | None = None,
    ) -> None:
        self.replica_id = replica_id
        self.topics = [] if topics is None else topics


class EpochEndOffset(Message):
    __slots__ = ("error_code", "partition", "leader_epoch", "end_offset")
    error_code: int
    partition: int
    leader_epoch: int
    end_offset: int

    def __init__(
        self,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.error_code = error_code
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset


class OffsetForLeaderTopicResult(Message):
    __slots__ = ("topic", "partitions")
    topic: str
    partitions: list[EpochEndOffset]

    def __init__(
        self,
        topic: str = "",
        partitions: list[EpochEndOffset] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions


class OffsetForLeaderEpochResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")
    throttle_time_ms: int
    topics: list[OffsetForLeaderTopicResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics


def decode_request(body: Buffer, version: int) -> OffsetForLeaderEpochRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_offset_for_leader_epoch_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("OffsetForLeaderEpoch request", version, error) from None
    return items[0]


def encode_request(request: OffsetForLeaderEpochRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_offset_for_leader_epoch_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("OffsetForLeaderEpoch request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> OffsetForLeaderEpochResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_offset_for_leader_epoch_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("OffsetForLeaderEpoch response", version, error) from None
    return items[0]


def encode_response(response: OffsetForLeaderEpochResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_offset_for_leader_epoch_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("OffsetForLeaderEpoch response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_hiiq = Struct(">hiiq")
_hiiqB = Struct(">hiiqB")
_hiiqx = Struct(">hiiqx")
_i = Struct(">i")
_iB = Struct(">iB")
_ii = Struct(">ii")
_iii = Struct(">iii")
_iiiB = Struct(">iiiB")
_iiix = Struct(">iiix")


def _read_offset_for_leader_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetForLeaderPartition], int]:
    items: list[OffsetForLeaderPartition] = []
    if version >= 4:
        for _ in range(number):
            item = new(OffsetForLeaderPartition)
            (
                item.partition, item.current_leader_epoch, item.leader_epoch, tags,
            ) = _iiiB.unpack_from(buffer, position)
            position += 13
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetForLeaderPartition")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetForLeaderPartition)
            item.partition, item.current_leader_epoch, item.leader_epoch = _iii.unpack_from(buffer, position)
            position += 12
            items.append(item)
    return items, position


def _write_offset_for_leader_partition(
    out: list[Buffer], items: Sequence[OffsetForLeaderPartition], version: int,
) -> None:
    if version >= 4:
        for item in items:
            out.append(_iiix.pack(item.partition, item.current_leader_epoch, item.leader_epoch))
    else:
        for item in items:
            out.append(_iii.pack(item.partition, item.current_leader_epoch, item.leader_epoch))


def _read_offset_for_leader_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetForLeaderTopic], int]:
    items: list[OffsetForLeaderTopic] = []
    if version >= 4:
        for _ in range(number):
            item = new(OffsetForLeaderTopic)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetForLeaderTopic.topic", length, end - position)
            item.topic = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 13:
                raise bad_length("OffsetForLeaderTopic.partitions", count, end - position)
            item.partitions, position = _read_offset_for_leader_partition(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetForLeaderTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetForLeaderTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetForLeaderTopic.topic", length, end - position)
            item.topic = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 12:
                raise bad_length("OffsetForLeaderTopic.partitions", count, end - position)
            item.partitions, position = _read_offset_for_leader_partition(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_offset_for_leader_topic(
    out: list[Buffer], items: Sequence[OffsetForLeaderTopic], version: int,
) -> None:
    if version >= 4:
        for item in items:
            raw = item.topic.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                _write_offset_for_leader_partition(out, item.partitions, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.topic.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                _write_offset_for_leader_partition(out, item.partitions, version)


def _read_offset_for_leader_epoch_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetForLeaderEpochRequest], int]:
    items: list[OffsetForLeaderEpochRequest] = []
    if version >= 4:
        for _ in range(number):
            item = new(OffsetForLeaderEpochRequest)
            item.replica_id, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("OffsetForLeaderEpochRequest.topics", count, end - position)
            item.topics, position = _read_offset_for_leader_topic(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetForLeaderEpochRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetForLeaderEpochRequest)
            if version >= 3:
                item.replica_id, count = _ii.unpack_from(buffer, position)
                position += 8
            else:
                (count,) = _i.unpack_from(buffer, position)
                position += 4
                item.replica_id = -2
            if count < 0 or count > (end - position) // 6:
                raise bad_length("OffsetForLeaderEpochRequest.topics", count, end - position)
            item.topics, position = _read_offset_for_leader_topic(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_offset_for_leader_epoch_request(
    out: list[Buffer], items: Sequence[OffsetForLeaderEpochRequest], version: int,
) -> None:
    if version >= 4:
        for item in items:
            out.append(_i.pack(item.replica_id))
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_offset_for_leader_topic(out, item.topics, version)
            out.append(b"\0")
    else:
        for item in items:
            if version >= 3:
                out.append(_ii.pack(item.replica_id, len(item.topics)))
            else:
                out.append(_i.pack(len(item.topics)))
            if item.topics:
                _write_offset_for_leader_topic(out, item.topics, version)


def _read_epoch_end_offset(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[EpochEndOffset], int]:
    items: list[EpochEndOffset] = []
    if version >= 4:
        for _ in range(number):
            item = new(EpochEndOffset)
            (
                item.error_code, item.partition, item.leader_epoch, item.end_offset, tags,
            ) = _hiiqB.unpack_from(buffer, position)
            position += 19
            if tags:
                position = skip_tags(buffer, position, end, tags, "EpochEndOffset")
            items.append(item)
    else:
        for _ in range(number):
            item = new(EpochEndOffset)
            (
                item.error_code, item.partition, item.leader_epoch, item.end_offset,
            ) = _hiiq.unpack_from(buffer, position)
            position += 18
            items.append(item)
    return items, position


def _write_epoch_end_offset(out: list[Buffer], items: Sequence[EpochEndOffset], version: int) -> None:
    if version >= 4:
        for item in items:
            out.append(_hiiqx.pack(item.error_code, item.partition, item.leader_epoch, item.end_offset))
    else:
        for item in items:
            out.append(_hiiq.pack(item.error_code, item.partition, item.leader_epoch, item.end_offset))


def _read_offset_for_leader_topic_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetForLeaderTopicResult], int]:
    items: list[OffsetForLeaderTopicResult] = []
    if version >= 4:
        for _ in range(number):
            item = new(OffsetForLeaderTopicResult)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetForLeaderTopicResult.topic", length, end - position)
            item.topic = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 19:
                raise bad_length("OffsetForLeaderTopicResult.partitions", count, end - position)
            item.partitions, position = _read_epoch_end_offset(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetForLeaderTopicResult")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetForLeaderTopicResult)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetForLeaderTopicResult.topic", length, end - position)
            item.topic = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 18:
                raise bad_length("OffsetForLeaderTopicResult.partitions", count, end - position)
            item.partitions, position = _read_epoch_end_offset(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_offset_for_leader_topic_result(
    out: list[Buffer], items: Sequence[OffsetForLeaderTopicResult], version: int,
) -> None:
    if version >= 4:
        for item in items:
            raw = item.topic.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                _write_epoch_end_offset(out, item.partitions, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.topic.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                _write_epoch_end_offset(out, item.partitions, version)


def _read_offset_for_leader_epoch_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetForLeaderEpochResponse], int]:
    items: list[OffsetForLeaderEpochResponse] = []
    if version >= 4:
        for _ in range(number):
            item = new(OffsetForLeaderEpochResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("OffsetForLeaderEpochResponse.topics", count, end - position)
            item.topics, position = _read_offset_for_leader_topic_result(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetForLeaderEpochResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetForLeaderEpochResponse)
            item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
            position += 8
            if count < 0 or count > (end - position) // 6:
                raise bad_length("OffsetForLeaderEpochResponse.topics", count, end - position)
            item.topics, position = _read_offset_for_leader_topic_result(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_offset_for_leader_epoch_response(
    out: list[Buffer], items: Sequence[OffsetForLeaderEpochResponse], version: int,
) -> None:
    if version >= 4:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_offset_for_leader_topic_result(out, item.topics, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_ii.pack(item.throttle_time_ms, len(item.topics)))
            if item.topics:
                _write_offset_for_leader_topic_result(out, item.topics, version)
