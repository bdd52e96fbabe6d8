# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""AlterShareGroupOffsets (91), versions 0 to 0."""

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

KEY: Final = 91
NAME: Final = "AlterShareGroupOffsets"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0

new = object.__new__


class AlterShareGroupOffsetsRequestPartition(Message):
    __slots__ = ("partition_index", "start_offset")
    partition_index: int
    start_offset: int

    def __init__(
        self,
        partition_index: int = 0,
        start_offset: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset


class AlterShareGroupOffsetsRequestTopic(Message):
    __slots__ = ("topic_name", "partitions")
    topic_name: str
    partitions: list[AlterShareGroupOffsetsRequestPartition]

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[AlterShareGroupOffsetsRequestPartition] | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is None else partitions


class AlterShareGroupOffsetsRequest(Message):
    __slots__ = ("group_id", "topics")
    group_id: str
    topics: list[AlterShareGroupOffsetsRequestTopic]

    def __init__(
        self,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequestTopic] | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics


class AlterShareGroupOffsetsResponsePartition(Message):
    __slots__ = ("partition_index", "error_code", "error_message")
    partition_index: int
    error_code: int
    error_message: str | None

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


class AlterShareGroupOffsetsResponseTopic(Message):
    __slots__ = ("topic_name", "topic_id", "partitions")
    topic_name: str
    topic_id: bytes
    partitions: list[AlterShareGroupOffsetsResponsePartition]

    def __init__(
        self,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[AlterShareGroupOffsetsResponsePartition] | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class AlterShareGroupOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses")
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[AlterShareGroupOffsetsResponseTopic]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponseTopic] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is None else responses


def decode_request(body: Buffer, version: int) -> AlterShareGroupOffsetsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_alter_share_group_offsets_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("AlterShareGroupOffsets request", version, error) from None
    return items[0]


def encode_request(request: AlterShareGroupOffsetsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_alter_share_group_offsets_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("AlterShareGroupOffsets request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> AlterShareGroupOffsetsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_alter_share_group_offsets_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("AlterShareGroupOffsets response", version, error) from None
    return items[0]


def encode_response(response: AlterShareGroupOffsetsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_alter_share_group_offsets_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("AlterShareGroupOffsets response", version, error) from error
    return b"".join(out)


_16sB = Struct(">16sB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_iqB = Struct(">iqB")
_iqx = Struct(">iqx")


def _read_alter_share_group_offsets_request_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterShareGroupOffsetsRequestPartition], int]:
    items: list[AlterShareGroupOffsetsRequestPartition] = []
    for _ in range(number):
        item = new(AlterShareGroupOffsetsRequestPartition)
        item.partition_index, item.start_offset, tags = _iqB.unpack_from(buffer, position)
        position += 13
        if tags:
            position = skip_tags(buffer, position, end, tags, "AlterShareGroupOffsetsRequestPartition")
        items.append(item)
    return items, position


def _write_alter_share_group_offsets_request_partition(
    out: list[Buffer], items: Sequence[AlterShareGroupOffsetsRequestPartition], version: int,
) -> None:
    for item in items:
        out.append(_iqx.pack(item.partition_index, item.start_offset))


def _read_alter_share_group_offsets_request_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterShareGroupOffsetsRequestTopic], int]:
    items: list[AlterShareGroupOffsetsRequestTopic] = []
    for _ in range(number):
        item = new(AlterShareGroupOffsetsRequestTopic)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("AlterShareGroupOffsetsRequestTopic.topic_name", length, end - position)
        item.topic_name = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 13:
            raise bad_length("AlterShareGroupOffsetsRequestTopic.partitions", count, end - position)
        item.partitions, position = _read_alter_share_group_offsets_request_partition(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "AlterShareGroupOffsetsRequestTopic")
        items.append(item)
    return items, position


def _write_alter_share_group_offsets_request_topic(
    out: list[Buffer], items: Sequence[AlterShareGroupOffsetsRequestTopic], version: int,
) -> None:
    for item in items:
        raw = item.topic_name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            _write_alter_share_group_offsets_request_partition(out, item.partitions, version)
        out.append(b"\0")


def _read_alter_share_group_offsets_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterShareGroupOffsetsRequest], int]:
    items: list[AlterShareGroupOffsetsRequest] = []
    for _ in range(number):
        item = new(AlterShareGroupOffsetsRequest)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("AlterShareGroupOffsetsRequest.group_id", length, end - position)
        item.group_id = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 3:
            raise bad_length("AlterShareGroupOffsetsRequest.topics", count, end - position)
        item.topics, position = _read_alter_share_group_offsets_request_topic(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "AlterShareGroupOffsetsRequest")
        items.append(item)
    return items, position


def _write_alter_share_group_offsets_request(
    out: list[Buffer], items: Sequence[AlterShareGroupOffsetsRequest], version: int,
) -> None:
    for item in items:
        raw = item.group_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_alter_share_group_offsets_request_topic(out, item.topics, version)
        out.append(b"\0")


def _read_alter_share_group_offsets_response_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterShareGroupOffsetsResponsePartition], int]:
    items: list[AlterShareGroupOffsetsResponsePartition] = []
    for _ in range(number):
        item = new(AlterShareGroupOffsetsResponsePartition)
        item.partition_index, item.error_code, length = _ihB.unpack_from(buffer, position)
        position += 7
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.error_message = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length(
                    "AlterShareGroupOffsetsResponsePartition.error_message", length, end - position,
                )
            item.error_message = buffer[position:stop].decode()
            position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "AlterShareGroupOffsetsResponsePartition")
        items.append(item)
    return items, position


def _write_alter_share_group_offsets_response_partition(
    out: list[Buffer], items: Sequence[AlterShareGroupOffsetsResponsePartition], version: int,
) -> None:
    for item in items:
        out.append(_ih.pack(item.partition_index, item.error_code))
        if item.error_message is None:
            out.append(b"\0")
        else:
            raw = item.error_message.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(b"\0")


def _read_alter_share_group_offsets_response_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterShareGroupOffsetsResponseTopic], int]:
    items: list[AlterShareGroupOffsetsResponseTopic] = []
    for _ in range(number):
        item = new(AlterShareGroupOffsetsResponseTopic)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("AlterShareGroupOffsetsResponseTopic.topic_name", length, end - position)
        item.topic_name = buffer[position:stop].decode()
        position = stop
        item.topic_id, count = _16sB.unpack_from(buffer, position)
        position += 17
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 8:
            raise bad_length("AlterShareGroupOffsetsResponseTopic.partitions", count, end - position)
        item.partitions, position = _read_alter_share_group_offsets_response_partition(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "AlterShareGroupOffsetsResponseTopic")
        items.append(item)
    return items, position


def _write_alter_share_group_offsets_response_topic(
    out: list[Buffer], items: Sequence[AlterShareGroupOffsetsResponseTopic], version: int,
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
            _write_alter_share_group_offsets_response_partition(out, item.partitions, version)
        out.append(b"\0")


def _read_alter_share_group_offsets_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterShareGroupOffsetsResponse], int]:
    items: list[AlterShareGroupOffsetsResponse] = []
    for _ in range(number):
        item = new(AlterShareGroupOffsetsResponse)
        item.throttle_time_ms, item.error_code, length = _ihB.unpack_from(buffer, position)
        position += 7
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.error_message = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AlterShareGroupOffsetsResponse.error_message", length, end - position)
            item.error_message = buffer[position:stop].decode()
            position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 19:
            raise bad_length("AlterShareGroupOffsetsResponse.responses", count, end - position)
        item.responses, position = _read_alter_share_group_offsets_response_topic(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "AlterShareGroupOffsetsResponse")
        items.append(item)
    return items, position


def _write_alter_share_group_offsets_response(
    out: list[Buffer], items: Sequence[AlterShareGroupOffsetsResponse], version: int,
) -> None:
    for item in items:
        out.append(_ih.pack(item.throttle_time_ms, item.error_code))
        if item.error_message is None:
            out.append(b"\0")
        else:
            raw = item.error_message.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        length = len(item.responses) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.responses:
            _write_alter_share_group_offsets_response_topic(out, item.responses, version)
        out.append(b"\0")
