# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""ListOffsets (2), versions 1 to 11."""

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

KEY: Final = 2
NAME: Final = "ListOffsets"
MIN_VERSION: Final = 1
MAX_VERSION: Final = 11
FLEXIBLE_FROM: Final = 6

new = object.__new__


class ListOffsetsPartition(Message):
    __slots__ = ("partition_index", "current_leader_epoch", "timestamp")
    partition_index: int
    current_leader_epoch: int  # v4+
    timestamp: int

    def __init__(
        self,
        partition_index: int = 0,
        current_leader_epoch: int = -1,
        timestamp: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp


class ListOffsetsTopic(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[ListOffsetsPartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[ListOffsetsPartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class ListOffsetsRequest(Message):
    __slots__ = ("replica_id", "isolation_level", "topics", "timeout_ms")
    replica_id: int
    isolation_level: int  # v2+
    topics: list[ListOffsetsTopic]
    timeout_ms: int  # v10+

    def __init__(
        self,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsTopic] | None = None,
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = [] if topics is None else topics
        self.timeout_ms = timeout_ms


class ListOffsetsPartitionResponse(Message):
    __slots__ = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch")
    partition_index: int
    error_code: int
    timestamp: int
    offset: int
    leader_epoch: int  # v4+

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch


class ListOffsetsTopicResponse(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[ListOffsetsPartitionResponse]

    def __init__(
        self,
        name: str = "",
        partitions: list[ListOffsetsPartitionResponse] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class ListOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")
    throttle_time_ms: int  # v2+
    topics: list[ListOffsetsTopicResponse]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsTopicResponse] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics


def decode_request(body: Buffer, version: int) -> ListOffsetsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_list_offsets_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ListOffsets request", version, error) from None
    return items[0]


def encode_request(request: ListOffsetsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_list_offsets_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("ListOffsets request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> ListOffsetsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_list_offsets_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ListOffsets response", version, error) from None
    return items[0]


def encode_response(response: ListOffsetsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_list_offsets_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("ListOffsets response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_i = Struct(">i")
_iB = Struct(">iB")
_ib = Struct(">ib")
_ibB = Struct(">ibB")
_ibi = Struct(">ibi")
_ihqq = Struct(">ihqq")
_ihqqi = Struct(">ihqqi")
_ihqqiB = Struct(">ihqqiB")
_ihqqix = Struct(">ihqqix")
_ii = Struct(">ii")
_iiq = Struct(">iiq")
_iiqB = Struct(">iiqB")
_iiqx = Struct(">iiqx")
_iq = Struct(">iq")
_ix = Struct(">ix")


def _read_list_offsets_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ListOffsetsPartition], int]:
    items: list[ListOffsetsPartition] = []
    if version >= 6:
        for _ in range(number):
            item = new(ListOffsetsPartition)
            (
                item.partition_index, item.current_leader_epoch, item.timestamp, tags,
            ) = _iiqB.unpack_from(buffer, position)
            position += 17
            if tags:
                position = skip_tags(buffer, position, end, tags, "ListOffsetsPartition")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ListOffsetsPartition)
            if version >= 4:
                (
                    item.partition_index, item.current_leader_epoch, item.timestamp,
                ) = _iiq.unpack_from(buffer, position)
                position += 16
            else:
                item.partition_index, item.timestamp = _iq.unpack_from(buffer, position)
                position += 12
                item.current_leader_epoch = -1
            items.append(item)
    return items, position


def _write_list_offsets_partition(
    out: list[Buffer], items: Sequence[ListOffsetsPartition], version: int,
) -> None:
    if version >= 6:
        for item in items:
            out.append(_iiqx.pack(item.partition_index, item.current_leader_epoch, item.timestamp))
    else:
        for item in items:
            if version >= 4:
                out.append(_iiq.pack(item.partition_index, item.current_leader_epoch, item.timestamp))
            else:
                out.append(_iq.pack(item.partition_index, item.timestamp))


def _read_list_offsets_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ListOffsetsTopic], int]:
    items: list[ListOffsetsTopic] = []
    if version >= 6:
        for _ in range(number):
            item = new(ListOffsetsTopic)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ListOffsetsTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 17:
                raise bad_length("ListOffsetsTopic.partitions", count, end - position)
            item.partitions, position = _read_list_offsets_partition(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "ListOffsetsTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ListOffsetsTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ListOffsetsTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 12:
                raise bad_length("ListOffsetsTopic.partitions", count, end - position)
            item.partitions, position = _read_list_offsets_partition(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_list_offsets_topic(out: list[Buffer], items: Sequence[ListOffsetsTopic], version: int) -> None:
    if version >= 6:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                _write_list_offsets_partition(out, item.partitions, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                _write_list_offsets_partition(out, item.partitions, version)


def _read_list_offsets_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ListOffsetsRequest], int]:
    items: list[ListOffsetsRequest] = []
    if version >= 6:
        for _ in range(number):
            item = new(ListOffsetsRequest)
            item.replica_id, item.isolation_level, count = _ibB.unpack_from(buffer, position)
            position += 6
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("ListOffsetsRequest.topics", count, end - position)
            item.topics, position = _read_list_offsets_topic(buffer, position, end, version, count)
            if version >= 10:
                item.timeout_ms, tags = _iB.unpack_from(buffer, position)
                position += 5
            else:
                tags = buffer[position]
                position += 1
                item.timeout_ms = 0
            if tags:
                position = skip_tags(buffer, position, end, tags, "ListOffsetsRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ListOffsetsRequest)
            if version >= 2:
                item.replica_id, item.isolation_level, count = _ibi.unpack_from(buffer, position)
                position += 9
            else:
                item.replica_id, count = _ii.unpack_from(buffer, position)
                position += 8
                item.isolation_level = 0
            if count < 0 or count > (end - position) // 6:
                raise bad_length("ListOffsetsRequest.topics", count, end - position)
            item.topics, position = _read_list_offsets_topic(buffer, position, end, version, count)
            item.timeout_ms = 0
            items.append(item)
    return items, position


def _write_list_offsets_request(out: list[Buffer], items: Sequence[ListOffsetsRequest], version: int) -> None:
    if version >= 6:
        for item in items:
            out.append(_ib.pack(item.replica_id, item.isolation_level))
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_list_offsets_topic(out, item.topics, version)
            if version >= 10:
                out.append(_ix.pack(item.timeout_ms))
            else:
                out.append(b"\0")
    else:
        for item in items:
            if version >= 2:
                out.append(_ibi.pack(item.replica_id, item.isolation_level, len(item.topics)))
            else:
                out.append(_ii.pack(item.replica_id, len(item.topics)))
            if item.topics:
                _write_list_offsets_topic(out, item.topics, version)


def _read_list_offsets_partition_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ListOffsetsPartitionResponse], int]:
    items: list[ListOffsetsPartitionResponse] = []
    if version >= 6:
        for _ in range(number):
            item = new(ListOffsetsPartitionResponse)
            (
                item.partition_index, item.error_code, item.timestamp, item.offset, item.leader_epoch, tags,
            ) = _ihqqiB.unpack_from(buffer, position)
            position += 27
            if tags:
                position = skip_tags(buffer, position, end, tags, "ListOffsetsPartitionResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ListOffsetsPartitionResponse)
            if version >= 4:
                (
                    item.partition_index, item.error_code, item.timestamp, item.offset, item.leader_epoch,
                ) = _ihqqi.unpack_from(buffer, position)
                position += 26
            else:
                (
                    item.partition_index, item.error_code, item.timestamp, item.offset,
                ) = _ihqq.unpack_from(buffer, position)
                position += 22
                item.leader_epoch = -1
            items.append(item)
    return items, position


def _write_list_offsets_partition_response(
    out: list[Buffer], items: Sequence[ListOffsetsPartitionResponse], version: int,
) -> None:
    if version >= 6:
        for item in items:
            out.append(
                _ihqqix.pack(
                    item.partition_index, item.error_code, item.timestamp, item.offset, item.leader_epoch,
                )
            )
    else:
        for item in items:
            if version >= 4:
                out.append(
                    _ihqqi.pack(
                        item.partition_index, item.error_code, item.timestamp, item.offset, item.leader_epoch,
                    )
                )
            else:
                out.append(_ihqq.pack(item.partition_index, item.error_code, item.timestamp, item.offset))


def _read_list_offsets_topic_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ListOffsetsTopicResponse], int]:
    items: list[ListOffsetsTopicResponse] = []
    if version >= 6:
        for _ in range(number):
            item = new(ListOffsetsTopicResponse)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ListOffsetsTopicResponse.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 27:
                raise bad_length("ListOffsetsTopicResponse.partitions", count, end - position)
            item.partitions, position = _read_list_offsets_partition_response(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "ListOffsetsTopicResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ListOffsetsTopicResponse)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ListOffsetsTopicResponse.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 22:
                raise bad_length("ListOffsetsTopicResponse.partitions", count, end - position)
            item.partitions, position = _read_list_offsets_partition_response(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_list_offsets_topic_response(
    out: list[Buffer], items: Sequence[ListOffsetsTopicResponse], version: int,
) -> None:
    if version >= 6:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                _write_list_offsets_partition_response(out, item.partitions, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                _write_list_offsets_partition_response(out, item.partitions, version)


def _read_list_offsets_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ListOffsetsResponse], int]:
    items: list[ListOffsetsResponse] = []
    if version >= 6:
        for _ in range(number):
            item = new(ListOffsetsResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("ListOffsetsResponse.topics", count, end - position)
            item.topics, position = _read_list_offsets_topic_response(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "ListOffsetsResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ListOffsetsResponse)
            if version >= 2:
                item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
                position += 8
            else:
                (count,) = _i.unpack_from(buffer, position)
                position += 4
                item.throttle_time_ms = 0
            if count < 0 or count > (end - position) // 6:
                raise bad_length("ListOffsetsResponse.topics", count, end - position)
            item.topics, position = _read_list_offsets_topic_response(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_list_offsets_response(
    out: list[Buffer], items: Sequence[ListOffsetsResponse], version: int,
) -> None:
    if version >= 6:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_list_offsets_topic_response(out, item.topics, version)
            out.append(b"\0")
    else:
        for item in items:
            if version >= 2:
                out.append(_ii.pack(item.throttle_time_ms, len(item.topics)))
            else:
                out.append(_i.pack(len(item.topics)))
            if item.topics:
                _write_list_offsets_topic_response(out, item.topics, version)
