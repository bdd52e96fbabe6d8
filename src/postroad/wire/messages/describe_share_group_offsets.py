# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DescribeShareGroupOffsets (90), versions 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final

from postroad.wire.primitives import (
    INT32_ARRAYS,
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

KEY: Final = 90
NAME: Final = "DescribeShareGroupOffsets"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FLEXIBLE_FROM: Final = 0

new = object.__new__


class DescribeShareGroupOffsetsRequestTopic(Message):
    __slots__ = ("topic_name", "partitions")
    topic_name: str
    partitions: list[int]

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is None else partitions


class DescribeShareGroupOffsetsRequestGroup(Message):
    __slots__ = ("group_id", "topics")
    group_id: str
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None

    def __init__(
        self,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = topics


class DescribeShareGroupOffsetsRequest(Message):
    __slots__ = ("groups",)
    groups: list[DescribeShareGroupOffsetsRequestGroup]

    def __init__(
        self,
        groups: list[DescribeShareGroupOffsetsRequestGroup] | None = None,
    ) -> None:
        self.groups = [] if groups is None else groups


class DescribeShareGroupOffsetsResponsePartition(Message):
    __slots__ = ("partition_index", "start_offset", "leader_epoch", "lag", "error_code", "error_message")
    partition_index: int
    start_offset: int
    leader_epoch: int
    lag: int  # v1+
    error_code: int
    error_message: str | None

    def __init__(
        self,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.leader_epoch = leader_epoch
        self.lag = lag
        self.error_code = error_code
        self.error_message = error_message


class DescribeShareGroupOffsetsResponseTopic(Message):
    __slots__ = ("topic_name", "topic_id", "partitions")
    topic_name: str
    topic_id: bytes
    partitions: list[DescribeShareGroupOffsetsResponsePartition]

    def __init__(
        self,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[DescribeShareGroupOffsetsResponsePartition] | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class DescribeShareGroupOffsetsResponseGroup(Message):
    __slots__ = ("group_id", "topics", "error_code", "error_message")
    group_id: str
    topics: list[DescribeShareGroupOffsetsResponseTopic]
    error_code: int
    error_message: str | None

    def __init__(
        self,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsResponseTopic] | None = None,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics
        self.error_code = error_code
        self.error_message = error_message


class DescribeShareGroupOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "groups")
    throttle_time_ms: int
    groups: list[DescribeShareGroupOffsetsResponseGroup]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponseGroup] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is None else groups


def decode_request(body: Buffer, version: int) -> DescribeShareGroupOffsetsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_share_group_offsets_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeShareGroupOffsets request", version, error) from None
    return items[0]


def encode_request(request: DescribeShareGroupOffsetsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_share_group_offsets_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DescribeShareGroupOffsets request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DescribeShareGroupOffsetsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_share_group_offsets_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeShareGroupOffsets response", version, error) from None
    return items[0]


def encode_response(response: DescribeShareGroupOffsetsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_share_group_offsets_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DescribeShareGroupOffsets response", version, error) from error
    return b"".join(out)


_16sB = Struct(">16sB")
_h = Struct(">h")
_hB = Struct(">hB")
_i = Struct(">i")
_iB = Struct(">iB")
_iqih = Struct(">iqih")
_iqihB = Struct(">iqihB")
_iqiqh = Struct(">iqiqh")
_iqiqhB = Struct(">iqiqhB")


def _read_describe_share_group_offsets_request_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeShareGroupOffsetsRequestTopic], int]:
    items: list[DescribeShareGroupOffsetsRequestTopic] = []
    for _ in range(number):
        item = new(DescribeShareGroupOffsetsRequestTopic)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("DescribeShareGroupOffsetsRequestTopic.topic_name", length, end - position)
        item.topic_name = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("DescribeShareGroupOffsetsRequestTopic.partitions", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.partitions = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeShareGroupOffsetsRequestTopic")
        items.append(item)
    return items, position


def _write_describe_share_group_offsets_request_topic(
    out: list[Buffer], items: Sequence[DescribeShareGroupOffsetsRequestTopic], version: int,
) -> None:
    for item in items:
        raw = item.topic_name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            count = len(item.partitions)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.partitions))
        out.append(b"\0")


def _read_describe_share_group_offsets_request_group(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeShareGroupOffsetsRequestGroup], int]:
    items: list[DescribeShareGroupOffsetsRequestGroup] = []
    for _ in range(number):
        item = new(DescribeShareGroupOffsetsRequestGroup)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("DescribeShareGroupOffsetsRequestGroup.group_id", length, end - position)
        item.group_id = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count == -1:
            item.topics = None
        else:
            if count < 0 or count > (end - position) // 3:
                raise bad_length("DescribeShareGroupOffsetsRequestGroup.topics", count, end - position)
            item.topics, position = _read_describe_share_group_offsets_request_topic(
                buffer, position, end, version, count,
            )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeShareGroupOffsetsRequestGroup")
        items.append(item)
    return items, position


def _write_describe_share_group_offsets_request_group(
    out: list[Buffer], items: Sequence[DescribeShareGroupOffsetsRequestGroup], version: int,
) -> None:
    for item in items:
        raw = item.group_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        if item.topics is None:
            out.append(b"\0")
        else:
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_describe_share_group_offsets_request_topic(out, item.topics, version)
        out.append(b"\0")


def _read_describe_share_group_offsets_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeShareGroupOffsetsRequest], int]:
    items: list[DescribeShareGroupOffsetsRequest] = []
    for _ in range(number):
        item = new(DescribeShareGroupOffsetsRequest)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 3:
            raise bad_length("DescribeShareGroupOffsetsRequest.groups", count, end - position)
        item.groups, position = _read_describe_share_group_offsets_request_group(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeShareGroupOffsetsRequest")
        items.append(item)
    return items, position


def _write_describe_share_group_offsets_request(
    out: list[Buffer], items: Sequence[DescribeShareGroupOffsetsRequest], version: int,
) -> None:
    for item in items:
        length = len(item.groups) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.groups:
            _write_describe_share_group_offsets_request_group(out, item.groups, version)
        out.append(b"\0")


def _read_describe_share_group_offsets_response_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeShareGroupOffsetsResponsePartition], int]:
    items: list[DescribeShareGroupOffsetsResponsePartition] = []
    for _ in range(number):
        item = new(DescribeShareGroupOffsetsResponsePartition)
        if version >= 1:
            (
                item.partition_index, item.start_offset, item.leader_epoch, item.lag, item.error_code, length,
            ) = _iqiqhB.unpack_from(buffer, position)
            position += 27
        else:
            (
                item.partition_index, item.start_offset, item.leader_epoch, item.error_code, length,
            ) = _iqihB.unpack_from(buffer, position)
            position += 19
            item.lag = -1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.error_message = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length(
                    "DescribeShareGroupOffsetsResponsePartition.error_message", length, end - position,
                )
            item.error_message = buffer[position:stop].decode()
            position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeShareGroupOffsetsResponsePartition")
        items.append(item)
    return items, position


def _write_describe_share_group_offsets_response_partition(
    out: list[Buffer], items: Sequence[DescribeShareGroupOffsetsResponsePartition], version: int,
) -> None:
    for item in items:
        if version >= 1:
            out.append(
                _iqiqh.pack(
                    item.partition_index, item.start_offset, item.leader_epoch, item.lag, item.error_code,
                )
            )
        else:
            out.append(
                _iqih.pack(item.partition_index, item.start_offset, item.leader_epoch, item.error_code)
            )
        if item.error_message is None:
            out.append(b"\0")
        else:
            raw = item.error_message.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(b"\0")


def _read_describe_share_group_offsets_response_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeShareGroupOffsetsResponseTopic], int]:
    items: list[DescribeShareGroupOffsetsResponseTopic] = []
    for _ in range(number):
        item = new(DescribeShareGroupOffsetsResponseTopic)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("DescribeShareGroupOffsetsResponseTopic.topic_name", length, end - position)
        item.topic_name = buffer[position:stop].decode()
        position = stop
        item.topic_id, count = _16sB.unpack_from(buffer, position)
        position += 17
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 20:
            raise bad_length("DescribeShareGroupOffsetsResponseTopic.partitions", count, end - position)
        item.partitions, position = _read_describe_share_group_offsets_response_partition(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeShareGroupOffsetsResponseTopic")
        items.append(item)
    return items, position


def _write_describe_share_group_offsets_response_topic(
    out: list[Buffer], items: Sequence[DescribeShareGroupOffsetsResponseTopic], version: int,
) -> None:
    for item in items:
        raw = item.topic_name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(item.topic_id)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            _write_describe_share_group_offsets_response_partition(out, item.partitions, version)
        out.append(b"\0")


def _read_describe_share_group_offsets_response_group(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeShareGroupOffsetsResponseGroup], int]:
    items: list[DescribeShareGroupOffsetsResponseGroup] = []
    for _ in range(number):
        item = new(DescribeShareGroupOffsetsResponseGroup)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("DescribeShareGroupOffsetsResponseGroup.group_id", length, end - position)
        item.group_id = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 19:
            raise bad_length("DescribeShareGroupOffsetsResponseGroup.topics", count, end - position)
        item.topics, position = _read_describe_share_group_offsets_response_topic(
            buffer, position, end, version, count,
        )
        item.error_code, length = _hB.unpack_from(buffer, position)
        position += 3
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.error_message = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length(
                    "DescribeShareGroupOffsetsResponseGroup.error_message", length, end - position,
                )
            item.error_message = buffer[position:stop].decode()
            position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeShareGroupOffsetsResponseGroup")
        items.append(item)
    return items, position


def _write_describe_share_group_offsets_response_group(
    out: list[Buffer], items: Sequence[DescribeShareGroupOffsetsResponseGroup], version: int,
) -> None:
    for item in items:
        raw = item.group_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_describe_share_group_offsets_response_topic(out, item.topics, version)
        out.append(_h.pack(item.error_code))
        if item.error_message is None:
            out.append(b"\0")
        else:
            raw = item.error_message.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(b"\0")


def _read_describe_share_group_offsets_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeShareGroupOffsetsResponse], int]:
    items: list[DescribeShareGroupOffsetsResponse] = []
    for _ in range(number):
        item = new(DescribeShareGroupOffsetsResponse)
        item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
        position += 5
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 6:
            raise bad_length("DescribeShareGroupOffsetsResponse.groups", count, end - position)
        item.groups, position = _read_describe_share_group_offsets_response_group(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeShareGroupOffsetsResponse")
        items.append(item)
    return items, position


def _write_describe_share_group_offsets_response(
    out: list[Buffer], items: Sequence[DescribeShareGroupOffsetsResponse], version: int,
) -> None:
    for item in items:
        out.append(_i.pack(item.throttle_time_ms))
        length = len(item.groups) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.groups:
            _write_describe_share_group_offsets_response_group(out, item.groups, version)
        out.append(b"\0")
