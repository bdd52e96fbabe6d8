# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""OffsetCommit (8), versions 2 to 10."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final

from postroad.wire.primitives import (
    SHORT_UVARINTS,
    UNREADABLE,
    ZERO_UUID,
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

KEY: Final = 8
NAME: Final = "OffsetCommit"
MIN_VERSION: Final = 2
MAX_VERSION: Final = 10
FLEXIBLE_FROM: Final = 8

new = object.__new__


class OffsetCommitRequestPartition(Message):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int  # v6+
    committed_metadata: str | None

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class OffsetCommitRequestTopic(Message):
    __slots__ = ("name", "topic_id", "partitions")
    name: str  # v2–v9
    topic_id: bytes  # v10+
    partitions: list[OffsetCommitRequestPartition]

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitRequestPartition] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class OffsetCommitRequest(Message):
    __slots__ = (
        "group_id", "generation_id_or_member_epoch", "member_id", "retention_time_ms", "group_instance_id",
        "topics",
    )
    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    retention_time_ms: int  # v2–v4
    group_instance_id: str | None  # v7+
    topics: list[OffsetCommitRequestTopic]

    def __init__(
        self,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        retention_time_ms: int = -1,
        group_instance_id: str | None = None,
        topics: list[OffsetCommitRequestTopic] | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.retention_time_ms = retention_time_ms
        self.group_instance_id = group_instance_id
        self.topics = [] if topics is None else topics


class OffsetCommitResponsePartition(Message):
    __slots__ = ("partition_index", "error_code")
    partition_index: int
    error_code: int

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class OffsetCommitResponseTopic(Message):
    __slots__ = ("name", "topic_id", "partitions")
    name: str  # v2–v9
    topic_id: bytes  # v10+
    partitions: list[OffsetCommitResponsePartition]

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitResponsePartition] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class OffsetCommitResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")
    throttle_time_ms: int  # v3+
    topics: list[OffsetCommitResponseTopic]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponseTopic] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics


def decode_request(body: Buffer, version: int) -> OffsetCommitRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_offset_commit_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("OffsetCommit request", version, error) from None
    return items[0]


def encode_request(request: OffsetCommitRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_offset_commit_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("OffsetCommit request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> OffsetCommitResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_offset_commit_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("OffsetCommit response", version, error) from None
    return items[0]


def encode_response(response: OffsetCommitResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_offset_commit_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("OffsetCommit response", version, error) from error
    return b"".join(out)


_16sB = Struct(">16sB")
_h = Struct(">h")
_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ihx = Struct(">ihx")
_ii = Struct(">ii")
_iqh = Struct(">iqh")
_iqi = Struct(">iqi")
_iqiB = Struct(">iqiB")
_iqih = Struct(">iqih")
_q = Struct(">q")


def _read_offset_commit_request_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetCommitRequestPartition], int]:
    items: list[OffsetCommitRequestPartition] = []
    if version >= 8:
        for _ in range(number):
            item = new(OffsetCommitRequestPartition)
            (
                item.partition_index, item.committed_offset, item.committed_leader_epoch, length,
            ) = _iqiB.unpack_from(buffer, position)
            position += 17
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.committed_metadata = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length(
                        "OffsetCommitRequestPartition.committed_metadata", length, end - position,
                    )
                item.committed_metadata = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetCommitRequestPartition")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetCommitRequestPartition)
            if version >= 6:
                (
                    item.partition_index, item.committed_offset, item.committed_leader_epoch, length,
                ) = _iqih.unpack_from(buffer, position)
                position += 18
            else:
                item.partition_index, item.committed_offset, length = _iqh.unpack_from(buffer, position)
                position += 14
                item.committed_leader_epoch = -1
            if length == -1:
                item.committed_metadata = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length(
                        "OffsetCommitRequestPartition.committed_metadata", length, end - position,
                    )
                item.committed_metadata = buffer[position:stop].decode()
                position = stop
            items.append(item)
    return items, position


def _write_offset_commit_request_partition(
    out: list[Buffer], items: Sequence[OffsetCommitRequestPartition], version: int,
) -> None:
    if version >= 8:
        for item in items:
            out.append(_iqi.pack(item.partition_index, item.committed_offset, item.committed_leader_epoch))
            if item.committed_metadata is None:
                out.append(b"\0")
            else:
                raw = item.committed_metadata.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = b"" if item.committed_metadata is None else item.committed_metadata.encode()
            if version >= 6:
                out.append(
                    _iqih.pack(
                        item.partition_index, item.committed_offset, item.committed_leader_epoch,
                        -1 if item.committed_metadata is None else len(raw),
                    )
                )
            else:
                out.append(
                    _iqh.pack(
                        item.partition_index, item.committed_offset,
                        -1 if item.committed_metadata is None else len(raw),
                    )
                )
            out.append(raw)


def _read_offset_commit_request_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetCommitRequestTopic], int]:
    items: list[OffsetCommitRequestTopic] = []
    if version >= 8:
        for _ in range(number):
            item = new(OffsetCommitRequestTopic)
            if version <= 9:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("OffsetCommitRequestTopic.name", length, end - position)
                item.name = buffer[position:stop].decode()
                position = stop
            else:
                item.name = ""
            if version >= 10:
                item.topic_id, count = _16sB.unpack_from(buffer, position)
                position += 17
            else:
                count = buffer[position]
                position += 1
                item.topic_id = ZERO_UUID
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 18:
                raise bad_length("OffsetCommitRequestTopic.partitions", count, end - position)
            item.partitions, position = _read_offset_commit_request_partition(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetCommitRequestTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetCommitRequestTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetCommitRequestTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 14:
                raise bad_length("OffsetCommitRequestTopic.partitions", count, end - position)
            item.partitions, position = _read_offset_commit_request_partition(
                buffer, position, end, version, count,
            )
            item.topic_id = ZERO_UUID
            items.append(item)
    return items, position


def _write_offset_commit_request_topic(
    out: list[Buffer], items: Sequence[OffsetCommitRequestTopic], version: int,
) -> None:
    if version >= 8:
        for item in items:
            if version <= 9:
                raw = item.name.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if version >= 10:
                out.append(item.topic_id)
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                _write_offset_commit_request_partition(out, item.partitions, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                _write_offset_commit_request_partition(out, item.partitions, version)


def _read_offset_commit_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetCommitRequest], int]:
    items: list[OffsetCommitRequest] = []
    if version >= 8:
        for _ in range(number):
            item = new(OffsetCommitRequest)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetCommitRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            item.generation_id_or_member_epoch, length = _iB.unpack_from(buffer, position)
            position += 5
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetCommitRequest.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.group_instance_id = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("OffsetCommitRequest.group_instance_id", length, end - position)
                item.group_instance_id = buffer[position:stop].decode()
                position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("OffsetCommitRequest.topics", count, end - position)
            item.topics, position = _read_offset_commit_request_topic(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            item.retention_time_ms = -1
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetCommitRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetCommitRequest)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetCommitRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            item.generation_id_or_member_epoch, length = _ih.unpack_from(buffer, position)
            position += 6
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetCommitRequest.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
            if version >= 7:
                (length,) = _h.unpack_from(buffer, position)
                position += 2
                item.retention_time_ms = -1
            elif version >= 5:
                item.retention_time_ms = -1
            else:
                (item.retention_time_ms,) = _q.unpack_from(buffer, position)
                position += 8
            if version >= 7:
                if length == -1:
                    item.group_instance_id = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("OffsetCommitRequest.group_instance_id", length, end - position)
                    item.group_instance_id = buffer[position:stop].decode()
                    position = stop
            else:
                item.group_instance_id = None
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 6:
                raise bad_length("OffsetCommitRequest.topics", count, end - position)
            item.topics, position = _read_offset_commit_request_topic(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_offset_commit_request(
    out: list[Buffer], items: Sequence[OffsetCommitRequest], version: int,
) -> None:
    if version >= 8:
        for item in items:
            raw = item.group_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_i.pack(item.generation_id_or_member_epoch))
            raw = item.member_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            if item.group_instance_id is None:
                out.append(b"\0")
            else:
                raw = item.group_instance_id.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_offset_commit_request_topic(out, item.topics, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.group_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = item.member_id.encode()
            out.append(_ih.pack(item.generation_id_or_member_epoch, len(raw)))
            out.append(raw)
            if version >= 5:
                pass
            else:
                out.append(_q.pack(item.retention_time_ms))
            if version >= 7:
                raw = b"" if item.group_instance_id is None else item.group_instance_id.encode()
                out.append(_h.pack(-1 if item.group_instance_id is None else len(raw)))
                out.append(raw)
            out.append(_i.pack(len(item.topics)))
            if item.topics:
                _write_offset_commit_request_topic(out, item.topics, version)


def _read_offset_commit_response_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetCommitResponsePartition], int]:
    items: list[OffsetCommitResponsePartition] = []
    if version >= 8:
        for _ in range(number):
            item = new(OffsetCommitResponsePartition)
            item.partition_index, item.error_code, tags = _ihB.unpack_from(buffer, position)
            position += 7
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetCommitResponsePartition")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetCommitResponsePartition)
            item.partition_index, item.error_code = _ih.unpack_from(buffer, position)
            position += 6
            items.append(item)
    return items, position


def _write_offset_commit_response_partition(
    out: list[Buffer], items: Sequence[OffsetCommitResponsePartition], version: int,
) -> None:
    if version >= 8:
        for item in items:
            out.append(_ihx.pack(item.partition_index, item.error_code))
    else:
        for item in items:
            out.append(_ih.pack(item.partition_index, item.error_code))


def _read_offset_commit_response_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetCommitResponseTopic], int]:
    items: list[OffsetCommitResponseTopic] = []
    if version >= 8:
        for _ in range(number):
            item = new(OffsetCommitResponseTopic)
            if version <= 9:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("OffsetCommitResponseTopic.name", length, end - position)
                item.name = buffer[position:stop].decode()
                position = stop
            else:
                item.name = ""
            if version >= 10:
                item.topic_id, count = _16sB.unpack_from(buffer, position)
                position += 17
            else:
                count = buffer[position]
                position += 1
                item.topic_id = ZERO_UUID
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 7:
                raise bad_length("OffsetCommitResponseTopic.partitions", count, end - position)
            item.partitions, position = _read_offset_commit_response_partition(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetCommitResponseTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetCommitResponseTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetCommitResponseTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 6:
                raise bad_length("OffsetCommitResponseTopic.partitions", count, end - position)
            item.partitions, position = _read_offset_commit_response_partition(
                buffer, position, end, version, count,
            )
            item.topic_id = ZERO_UUID
            items.append(item)
    return items, position


def _write_offset_commit_response_topic(
    out: list[Buffer], items: Sequence[OffsetCommitResponseTopic], version: int,
) -> None:
    if version >= 8:
        for item in items:
            if version <= 9:
                raw = item.name.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if version >= 10:
                out.append(item.topic_id)
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                _write_offset_commit_response_partition(out, item.partitions, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                _write_offset_commit_response_partition(out, item.partitions, version)


def _read_offset_commit_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetCommitResponse], int]:
    items: list[OffsetCommitResponse] = []
    if version >= 8:
        for _ in range(number):
            item = new(OffsetCommitResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("OffsetCommitResponse.topics", count, end - position)
            item.topics, position = _read_offset_commit_response_topic(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetCommitResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetCommitResponse)
            if version >= 3:
                item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
                position += 8
            else:
                (count,) = _i.unpack_from(buffer, position)
                position += 4
                item.throttle_time_ms = 0
            if count < 0 or count > (end - position) // 6:
                raise bad_length("OffsetCommitResponse.topics", count, end - position)
            item.topics, position = _read_offset_commit_response_topic(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_offset_commit_response(
    out: list[Buffer], items: Sequence[OffsetCommitResponse], version: int,
) -> None:
    if version >= 8:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_offset_commit_response_topic(out, item.topics, version)
            out.append(b"\0")
    else:
        for item in items:
            if version >= 3:
                out.append(_ii.pack(item.throttle_time_ms, len(item.topics)))
            else:
                out.append(_i.pack(len(item.topics)))
            if item.topics:
                _write_offset_commit_response_topic(out, item.topics, version)
