# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""OffsetDelete (47), versions 0 to 0."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final

from postroad.wire.primitives import (
    UNREADABLE,
    Buffer,
    Message,
    bad_length,
    does_not_fit,
    malformed,
    unsupported,
)

KEY: Final = 47
NAME: Final = "OffsetDelete"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 32767

new = object.__new__


class OffsetDeleteRequestPartition(Message):
    __slots__ = ("partition_index",)
    partition_index: int

    def __init__(
        self,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index


class OffsetDeleteRequestTopic(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[OffsetDeleteRequestPartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetDeleteRequestPartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class OffsetDeleteRequest(Message):
    __slots__ = ("group_id", "topics")
    group_id: str
    topics: list[OffsetDeleteRequestTopic]

    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetDeleteRequestTopic] | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics


class OffsetDeleteResponsePartition(Message):
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


class OffsetDeleteResponseTopic(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[OffsetDeleteResponsePartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetDeleteResponsePartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class OffsetDeleteResponse(Message):
    __slots__ = ("error_code", "throttle_time_ms", "topics")
    error_code: int
    throttle_time_ms: int
    topics: list[OffsetDeleteResponseTopic]

    def __init__(
        self,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] | None = None,
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics


def decode_request(body: Buffer, version: int) -> OffsetDeleteRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_offset_delete_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("OffsetDelete request", version, error) from None
    return items[0]


def encode_request(request: OffsetDeleteRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_offset_delete_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("OffsetDelete request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> OffsetDeleteResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_offset_delete_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("OffsetDelete response", version, error) from None
    return items[0]


def encode_response(response: OffsetDeleteResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_offset_delete_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("OffsetDelete response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_hii = Struct(">hii")
_i = Struct(">i")
_ih = Struct(">ih")


def _read_offset_delete_request_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetDeleteRequestPartition], int]:
    items: list[OffsetDeleteRequestPartition] = []
    for _ in range(number):
        item = new(OffsetDeleteRequestPartition)
        (item.partition_index,) = _i.unpack_from(buffer, position)
        position += 4
        items.append(item)
    return items, position


def _write_offset_delete_request_partition(
    out: list[Buffer], items: Sequence[OffsetDeleteRequestPartition], version: int,
) -> None:
    for item in items:
        out.append(_i.pack(item.partition_index))


def _read_offset_delete_request_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetDeleteRequestTopic], int]:
    items: list[OffsetDeleteRequestTopic] = []
    for _ in range(number):
        item = new(OffsetDeleteRequestTopic)
        (length,) = _h.unpack_from(buffer, position)
        position += 2
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("OffsetDeleteRequestTopic.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        (count,) = _i.unpack_from(buffer, position)
        position += 4
        if count < 0 or count > (end - position) // 4:
            raise bad_length("OffsetDeleteRequestTopic.partitions", count, end - position)
        item.partitions, position = _read_offset_delete_request_partition(
            buffer, position, end, version, count,
        )
        items.append(item)
    return items, position


def _write_offset_delete_request_topic(
    out: list[Buffer], items: Sequence[OffsetDeleteRequestTopic], version: int,
) -> None:
    for item in items:
        raw = item.name.encode()
        out.append(_h.pack(len(raw)))
        out.append(raw)
        out.append(_i.pack(len(item.partitions)))
        if item.partitions:
            _write_offset_delete_request_partition(out, item.partitions, version)


def _read_offset_delete_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetDeleteRequest], int]:
    items: list[OffsetDeleteRequest] = []
    for _ in range(number):
        item = new(OffsetDeleteRequest)
        (length,) = _h.unpack_from(buffer, position)
        position += 2
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("OffsetDeleteRequest.group_id", length, end - position)
        item.group_id = buffer[position:stop].decode()
        position = stop
        (count,) = _i.unpack_from(buffer, position)
        position += 4
        if count < 0 or count > (end - position) // 6:
            raise bad_length("OffsetDeleteRequest.topics", count, end - position)
        item.topics, position = _read_offset_delete_request_topic(buffer, position, end, version, count)
        items.append(item)
    return items, position


def _write_offset_delete_request(
    out: list[Buffer], items: Sequence[OffsetDeleteRequest], version: int,
) -> None:
    for item in items:
        raw = item.group_id.encode()
        out.append(_h.pack(len(raw)))
        out.append(raw)
        out.append(_i.pack(len(item.topics)))
        if item.topics:
            _write_offset_delete_request_topic(out, item.topics, version)


def _read_offset_delete_response_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetDeleteResponsePartition], int]:
    items: list[OffsetDeleteResponsePartition] = []
    for _ in range(number):
        item = new(OffsetDeleteResponsePartition)
        item.partition_index, item.error_code = _ih.unpack_from(buffer, position)
        position += 6
        items.append(item)
    return items, position


def _write_offset_delete_response_partition(
    out: list[Buffer], items: Sequence[OffsetDeleteResponsePartition], version: int,
) -> None:
    for item in items:
        out.append(_ih.pack(item.partition_index, item.error_code))


def _read_offset_delete_response_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetDeleteResponseTopic], int]:
    items: list[OffsetDeleteResponseTopic] = []
    for _ in range(number):
        item = new(OffsetDeleteResponseTopic)
        (length,) = _h.unpack_from(buffer, position)
        position += 2
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("OffsetDeleteResponseTopic.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        (count,) = _i.unpack_from(buffer, position)
        position += 4
        if count < 0 or count > (end - position) // 6:
            raise bad_length("OffsetDeleteResponseTopic.partitions", count, end - position)
        item.partitions, position = _read_offset_delete_response_partition(
            buffer, position, end, version, count,
        )
        items.append(item)
    return items, position


def _write_offset_delete_response_topic(
    out: list[Buffer], items: Sequence[OffsetDeleteResponseTopic], version: int,
) -> None:
    for item in items:
        raw = item.name.encode()
        out.append(_h.pack(len(raw)))
        out.append(raw)
        out.append(_i.pack(len(item.partitions)))
        if item.partitions:
            _write_offset_delete_response_partition(out, item.partitions, version)


def _read_offset_delete_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetDeleteResponse], int]:
    items: list[OffsetDeleteResponse] = []
    for _ in range(number):
        item = new(OffsetDeleteResponse)
        item.error_code, item.throttle_time_ms, count = _hii.unpack_from(buffer, position)
        position += 10
        if count < 0 or count > (end - position) // 6:
            raise bad_length("OffsetDeleteResponse.topics", count, end - position)
        item.topics, position = _read_offset_delete_response_topic(buffer, position, end, version, count)
        items.append(item)
    return items, position


def _write_offset_delete_response(
    out: list[Buffer], items: Sequence[OffsetDeleteResponse], version: int,
) -> None:
    for item in items:
        out.append(_hii.pack(item.error_code, item.throttle_time_ms, len(item.topics)))
        if item.topics:
            _write_offset_delete_response_topic(out, item.topics, version)
