# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DeleteShareGroupOffsets (92), versions 0 to 0."""

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

KEY: Final = 92
NAME: Final = "DeleteShareGroupOffsets"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0

new = object.__new__


class DeleteShareGroupOffsetsRequestTopic(Message):
    __slots__ = ("topic_name",)
    topic_name: str

    def __init__(
        self,
        topic_name: str = "",
    ) -> None:
        self.topic_name = topic_name


class DeleteShareGroupOffsetsRequest(Message):
    __slots__ = ("group_id", "topics")
    group_id: str
    topics: list[DeleteShareGroupOffsetsRequestTopic]

    def __init__(
        self,
        group_id: str = "",
        topics: list[DeleteShareGroupOffsetsRequestTopic] | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics


class DeleteShareGroupOffsetsResponseTopic(Message):
    __slots__ = ("topic_name", "topic_id", "error_code", "error_message")
    topic_name: str
    topic_id: bytes
    error_code: int
    error_message: str | None

    def __init__(
        self,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteShareGroupOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses")
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[DeleteShareGroupOffsetsResponseTopic]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[DeleteShareGroupOffsetsResponseTopic] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is None else responses


def decode_request(body: Buffer, version: int) -> DeleteShareGroupOffsetsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_delete_share_group_offsets_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DeleteShareGroupOffsets request", version, error) from None
    return items[0]


def encode_request(request: DeleteShareGroupOffsetsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_delete_share_group_offsets_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DeleteShareGroupOffsets request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DeleteShareGroupOffsetsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_delete_share_group_offsets_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DeleteShareGroupOffsets response", version, error) from None
    return items[0]


def encode_response(response: DeleteShareGroupOffsetsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_delete_share_group_offsets_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DeleteShareGroupOffsets response", version, error) from error
    return b"".join(out)


_16sh = Struct(">16sh")
_16shB = Struct(">16shB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")


def _read_delete_share_group_offsets_request_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteShareGroupOffsetsRequestTopic], int]:
    items: list[DeleteShareGroupOffsetsRequestTopic] = []
    for _ in range(number):
        item = new(DeleteShareGroupOffsetsRequestTopic)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("DeleteShareGroupOffsetsRequestTopic.topic_name", length, end - position)
        item.topic_name = buffer[position:stop].decode()
        position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DeleteShareGroupOffsetsRequestTopic")
        items.append(item)
    return items, position


def _write_delete_share_group_offsets_request_topic(
    out: list[Buffer], items: Sequence[DeleteShareGroupOffsetsRequestTopic], version: int,
) -> None:
    for item in items:
        raw = item.topic_name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(b"\0")


def _read_delete_share_group_offsets_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteShareGroupOffsetsRequest], int]:
    items: list[DeleteShareGroupOffsetsRequest] = []
    for _ in range(number):
        item = new(DeleteShareGroupOffsetsRequest)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("DeleteShareGroupOffsetsRequest.group_id", length, end - position)
        item.group_id = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 2:
            raise bad_length("DeleteShareGroupOffsetsRequest.topics", count, end - position)
        item.topics, position = _read_delete_share_group_offsets_request_topic(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DeleteShareGroupOffsetsRequest")
        items.append(item)
    return items, position


def _write_delete_share_group_offsets_request(
    out: list[Buffer], items: Sequence[DeleteShareGroupOffsetsRequest], version: int,
) -> None:
    for item in items:
        raw = item.group_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_delete_share_group_offsets_request_topic(out, item.topics, version)
        out.append(b"\0")


def _read_delete_share_group_offsets_response_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteShareGroupOffsetsResponseTopic], int]:
    items: list[DeleteShareGroupOffsetsResponseTopic] = []
    for _ in range(number):
        item = new(DeleteShareGroupOffsetsResponseTopic)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("DeleteShareGroupOffsetsResponseTopic.topic_name", length, end - position)
        item.topic_name = buffer[position:stop].decode()
        position = stop
        item.topic_id, item.error_code, length = _16shB.unpack_from(buffer, position)
        position += 19
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.error_message = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DeleteShareGroupOffsetsResponseTopic.error_message", length, end - position)
            item.error_message = buffer[position:stop].decode()
            position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DeleteShareGroupOffsetsResponseTopic")
        items.append(item)
    return items, position


def _write_delete_share_group_offsets_response_topic(
    out: list[Buffer], items: Sequence[DeleteShareGroupOffsetsResponseTopic], version: int,
) -> None:
    for item in items:
        raw = item.topic_name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_16sh.pack(item.topic_id, item.error_code))
        if item.error_message is None:
            out.append(b"\0")
        else:
            raw = item.error_message.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(b"\0")


def _read_delete_share_group_offsets_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteShareGroupOffsetsResponse], int]:
    items: list[DeleteShareGroupOffsetsResponse] = []
    for _ in range(number):
        item = new(DeleteShareGroupOffsetsResponse)
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
                raise bad_length("DeleteShareGroupOffsetsResponse.error_message", length, end - position)
            item.error_message = buffer[position:stop].decode()
            position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 21:
            raise bad_length("DeleteShareGroupOffsetsResponse.responses", count, end - position)
        item.responses, position = _read_delete_share_group_offsets_response_topic(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DeleteShareGroupOffsetsResponse")
        items.append(item)
    return items, position


def _write_delete_share_group_offsets_response(
    out: list[Buffer], items: Sequence[DeleteShareGroupOffsetsResponse], version: int,
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
            _write_delete_share_group_offsets_response_topic(out, item.responses, version)
        out.append(b"\0")
