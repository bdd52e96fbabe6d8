# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DeleteRecords (21), versions 0 to 2."""

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

KEY: Final = 21
NAME: Final = "DeleteRecords"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 2
FLEXIBLE_FROM: Final = 2

new = object.__new__


class DeleteRecordsPartition(Message):
    __slots__ = ("partition_index", "offset")
    partition_index: int
    offset: int

    def __init__(
        self,
        partition_index: int = 0,
        offset: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.offset = offset


class DeleteRecordsTopic(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[DeleteRecordsPartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[DeleteRecordsPartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class DeleteRecordsRequest(Message):
    __slots__ = ("topics", "timeout_ms")
    topics: list[DeleteRecordsTopic]
    timeout_ms: int

    def __init__(
        self,
        topics: list[DeleteRecordsTopic] | None = None,
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.timeout_ms = timeout_ms


class DeleteRecordsPartitionResult(Message):
    __slots__ = ("partition_index", "low_watermark", "error_code")
    partition_index: int
    low_watermark: int
    error_code: int

    def __init__(
        self,
        partition_index: int = 0,
        low_watermark: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.low_watermark = low_watermark
        self.error_code = error_code


class DeleteRecordsTopicResult(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[DeleteRecordsPartitionResult]

    def __init__(
        self,
        name: str = "",
        partitions: list[DeleteRecordsPartitionResult] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class DeleteRecordsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")
    throttle_time_ms: int
    topics: list[DeleteRecordsTopicResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics


def decode_request(body: Buffer, version: int) -> DeleteRecordsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_delete_records_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DeleteRecords request", version, error) from None
    return items[0]


def encode_request(request: DeleteRecordsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_delete_records_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DeleteRecords request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DeleteRecordsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_delete_records_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DeleteRecords response", version, error) from None
    return items[0]


def encode_response(response: DeleteRecordsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_delete_records_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DeleteRecords response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_i = Struct(">i")
_iB = Struct(">iB")
_ii = Struct(">ii")
_iq = Struct(">iq")
_iqB = Struct(">iqB")
_iqh = Struct(">iqh")
_iqhB = Struct(">iqhB")
_iqhx = Struct(">iqhx")
_iqx = Struct(">iqx")
_ix = Struct(">ix")


def _read_delete_records_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteRecordsPartition], int]:
    items: list[DeleteRecordsPartition] = []
    if version >= 2:
        for _ in range(number):
            item = new(DeleteRecordsPartition)
            item.partition_index, item.offset, tags = _iqB.unpack_from(buffer, position)
            position += 13
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeleteRecordsPartition")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeleteRecordsPartition)
            item.partition_index, item.offset = _iq.unpack_from(buffer, position)
            position += 12
            items.append(item)
    return items, position


def _write_delete_records_partition(
    out: list[Buffer], items: Sequence[DeleteRecordsPartition], version: int,
) -> None:
    if version >= 2:
        for item in items:
            out.append(_iqx.pack(item.partition_index, item.offset))
    else:
        for item in items:
            out.append(_iq.pack(item.partition_index, item.offset))


def _read_delete_records_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteRecordsTopic], int]:
    items: list[DeleteRecordsTopic] = []
    if version >= 2:
        for _ in range(number):
            item = new(DeleteRecordsTopic)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DeleteRecordsTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 13:
                raise bad_length("DeleteRecordsTopic.partitions", count, end - position)
            item.partitions, position = _read_delete_records_partition(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeleteRecordsTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeleteRecordsTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DeleteRecordsTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 12:
                raise bad_length("DeleteRecordsTopic.partitions", count, end - position)
            item.partitions, position = _read_delete_records_partition(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_delete_records_topic(out: list[Buffer], items: Sequence[DeleteRecordsTopic], version: int) -> None:
    if version >= 2:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                _write_delete_records_partition(out, item.partitions, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                _write_delete_records_partition(out, item.partitions, version)


def _read_delete_records_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteRecordsRequest], int]:
    items: list[DeleteRecordsRequest] = []
    if version >= 2:
        for _ in range(number):
            item = new(DeleteRecordsRequest)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("DeleteRecordsRequest.topics", count, end - position)
            item.topics, position = _read_delete_records_topic(buffer, position, end, version, count)
            item.timeout_ms, tags = _iB.unpack_from(buffer, position)
            position += 5
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeleteRecordsRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeleteRecordsRequest)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 6:
                raise bad_length("DeleteRecordsRequest.topics", count, end - position)
            item.topics, position = _read_delete_records_topic(buffer, position, end, version, count)
            (item.timeout_ms,) = _i.unpack_from(buffer, position)
            position += 4
            items.append(item)
    return items, position


def _write_delete_records_request(
    out: list[Buffer], items: Sequence[DeleteRecordsRequest], version: int,
) -> None:
    if version >= 2:
        for item in items:
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_delete_records_topic(out, item.topics, version)
            out.append(_ix.pack(item.timeout_ms))
    else:
        for item in items:
            out.append(_i.pack(len(item.topics)))
            if item.topics:
                _write_delete_records_topic(out, item.topics, version)
            out.append(_i.pack(item.timeout_ms))


def _read_delete_records_partition_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteRecordsPartitionResult], int]:
    items: list[DeleteRecordsPartitionResult] = []
    if version >= 2:
        for _ in range(number):
            item = new(DeleteRecordsPartitionResult)
            (
                item.partition_index, item.low_watermark, item.error_code, tags,
            ) = _iqhB.unpack_from(buffer, position)
            position += 15
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeleteRecordsPartitionResult")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeleteRecordsPartitionResult)
            item.partition_index, item.low_watermark, item.error_code = _iqh.unpack_from(buffer, position)
            position += 14
            items.append(item)
    return items, position


def _write_delete_records_partition_result(
    out: list[Buffer], items: Sequence[DeleteRecordsPartitionResult], version: int,
) -> None:
    if version >= 2:
        for item in items:
            out.append(_iqhx.pack(item.partition_index, item.low_watermark, item.error_code))
    else:
        for item in items:
            out.append(_iqh.pack(item.partition_index, item.low_watermark, item.error_code))


def _read_delete_records_topic_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteRecordsTopicResult], int]:
    items: list[DeleteRecordsTopicResult] = []
    if version >= 2:
        for _ in range(number):
            item = new(DeleteRecordsTopicResult)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DeleteRecordsTopicResult.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 15:
                raise bad_length("DeleteRecordsTopicResult.partitions", count, end - position)
            item.partitions, position = _read_delete_records_partition_result(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeleteRecordsTopicResult")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeleteRecordsTopicResult)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DeleteRecordsTopicResult.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 14:
                raise bad_length("DeleteRecordsTopicResult.partitions", count, end - position)
            item.partitions, position = _read_delete_records_partition_result(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_delete_records_topic_result(
    out: list[Buffer], items: Sequence[DeleteRecordsTopicResult], version: int,
) -> None:
    if version >= 2:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                _write_delete_records_partition_result(out, item.partitions, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                _write_delete_records_partition_result(out, item.partitions, version)


def _read_delete_records_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteRecordsResponse], int]:
    items: list[DeleteRecordsResponse] = []
    if version >= 2:
        for _ in range(number):
            item = new(DeleteRecordsResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("DeleteRecordsResponse.topics", count, end - position)
            item.topics, position = _read_delete_records_topic_result(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeleteRecordsResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeleteRecordsResponse)
            item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
            position += 8
            if count < 0 or count > (end - position) // 6:
                raise bad_length("DeleteRecordsResponse.topics", count, end - position)
            item.topics, position = _read_delete_records_topic_result(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_delete_records_response(
    out: list[Buffer], items: Sequence[DeleteRecordsResponse], version: int,
) -> None:
    if version >= 2:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_delete_records_topic_result(out, item.topics, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_ii.pack(item.throttle_time_ms, len(item.topics)))
            if item.topics:
                _write_delete_records_topic_result(out, item.topics, version)
