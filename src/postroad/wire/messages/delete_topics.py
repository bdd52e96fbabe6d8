# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DeleteTopics (20), versions 1 to 6."""

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
    must_not_be_null,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 20
NAME: Final = "DeleteTopics"
MIN_VERSION: Final = 1
MAX_VERSION: Final = 6
FLEXIBLE_FROM: Final = 4

new = object.__new__


class DeleteTopicState(Message):
    __slots__ = ("name", "topic_id")
    name: str | None
    topic_id: bytes

    def __init__(
        self,
        name: str | None = None,
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        self.name = name
        self.topic_id = topic_id


class DeleteTopicsRequest(Message):
    __slots__ = ("topic_names", "topics", "timeout_ms")
    topic_names: list[str]  # v1–v5
    topics: list[DeleteTopicState]  # v6+
    timeout_ms: int

    def __init__(
        self,
        topic_names: list[str] | None = None,
        topics: list[DeleteTopicState] | None = None,
        timeout_ms: int = 0,
    ) -> None:
        self.topic_names = [] if topic_names is None else topic_names
        self.topics = [] if topics is None else topics
        self.timeout_ms = timeout_ms


class DeletableTopicResult(Message):
    __slots__ = ("name", "topic_id", "error_code", "error_message")
    name: str | None  # null in v6+
    topic_id: bytes  # v6+
    error_code: int
    error_message: str | None  # v5+

    def __init__(
        self,
        name: str | None = None,
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteTopicsResponse(Message):
    __slots__ = ("throttle_time_ms", "responses")
    throttle_time_ms: int
    responses: list[DeletableTopicResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is None else responses


def decode_request(body: Buffer, version: int) -> DeleteTopicsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_delete_topics_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DeleteTopics request", version, error) from None
    return items[0]


def encode_request(request: DeleteTopicsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_delete_topics_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DeleteTopics request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DeleteTopicsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_delete_topics_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DeleteTopics response", version, error) from None
    return items[0]


def encode_response(response: DeleteTopicsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_delete_topics_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DeleteTopics response", version, error) from error
    return b"".join(out)


_16sB = Struct(">16sB")
_16sh = Struct(">16sh")
_16shB = Struct(">16shB")
_16sx = Struct(">16sx")
_h = Struct(">h")
_hB = Struct(">hB")
_i = Struct(">i")
_iB = Struct(">iB")
_ii = Struct(">ii")
_ix = Struct(">ix")


def _read_delete_topic_state(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteTopicState], int]:
    items: list[DeleteTopicState] = []
    for _ in range(number):
        item = new(DeleteTopicState)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.name = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DeleteTopicState.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
        item.topic_id, tags = _16sB.unpack_from(buffer, position)
        position += 17
        if tags:
            position = skip_tags(buffer, position, end, tags, "DeleteTopicState")
        items.append(item)
    return items, position


def _write_delete_topic_state(out: list[Buffer], items: Sequence[DeleteTopicState], version: int) -> None:
    for item in items:
        if item.name is None:
            out.append(b"\0")
        else:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(_16sx.pack(item.topic_id))


def _read_delete_topics_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteTopicsRequest], int]:
    items: list[DeleteTopicsRequest] = []
    if version >= 4:
        for _ in range(number):
            item = new(DeleteTopicsRequest)
            if version <= 5:
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_uvarint(buffer, position, count)
                count -= 1
                if count < 0 or count > end - position:
                    raise bad_length("DeleteTopicsRequest.topic_names", count, end - position)
                item.topic_names = []
                append = item.topic_names.append
                for _ in range(count):
                    length = buffer[position]
                    position += 1
                    if length > 127:
                        length, position = long_uvarint(buffer, position, length)
                    length -= 1
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("DeleteTopicsRequest.topic_names", length, end - position)
                    append(buffer[position:stop].decode())
                    position = stop
            else:
                item.topic_names = []
            if version >= 6:
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_uvarint(buffer, position, count)
                count -= 1
                if count < 0 or count > (end - position) // 18:
                    raise bad_length("DeleteTopicsRequest.topics", count, end - position)
                item.topics, position = _read_delete_topic_state(buffer, position, end, version, count)
            else:
                item.topics = []
            item.timeout_ms, tags = _iB.unpack_from(buffer, position)
            position += 5
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeleteTopicsRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeleteTopicsRequest)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 2:
                raise bad_length("DeleteTopicsRequest.topic_names", count, end - position)
            item.topic_names = []
            append = item.topic_names.append
            for _ in range(count):
                (length,) = _h.unpack_from(buffer, position)
                position += 2
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DeleteTopicsRequest.topic_names", length, end - position)
                append(buffer[position:stop].decode())
                position = stop
            (item.timeout_ms,) = _i.unpack_from(buffer, position)
            position += 4
            item.topics = []
            items.append(item)
    return items, position


def _write_delete_topics_request(
    out: list[Buffer], items: Sequence[DeleteTopicsRequest], version: int,
) -> None:
    if version >= 4:
        for item in items:
            if version <= 5:
                length = len(item.topic_names) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.topic_names:
                    for text in item.topic_names:
                        raw = text.encode()
                        length = len(raw) + 1
                        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                        out.append(raw)
            if version >= 6:
                length = len(item.topics) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.topics:
                    _write_delete_topic_state(out, item.topics, version)
            out.append(_ix.pack(item.timeout_ms))
    else:
        for item in items:
            out.append(_i.pack(len(item.topic_names)))
            if item.topic_names:
                for text in item.topic_names:
                    raw = text.encode()
                    out.append(_h.pack(len(raw)))
                    out.append(raw)
            out.append(_i.pack(item.timeout_ms))


def _read_deletable_topic_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeletableTopicResult], int]:
    items: list[DeletableTopicResult] = []
    if version >= 4:
        for _ in range(number):
            item = new(DeletableTopicResult)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1 and version >= 6:
                item.name = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DeletableTopicResult.name", length, end - position)
                item.name = buffer[position:stop].decode()
                position = stop
            if version >= 6:
                item.topic_id, item.error_code, length = _16shB.unpack_from(buffer, position)
                position += 19
            elif version >= 5:
                item.error_code, length = _hB.unpack_from(buffer, position)
                position += 3
                item.topic_id = ZERO_UUID
            else:
                (item.error_code,) = _h.unpack_from(buffer, position)
                position += 2
                item.topic_id = ZERO_UUID
            if version >= 5:
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                if length == -1:
                    item.error_message = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("DeletableTopicResult.error_message", length, end - position)
                    item.error_message = buffer[position:stop].decode()
                    position = stop
            else:
                item.error_message = None
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeletableTopicResult")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeletableTopicResult)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DeletableTopicResult.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (item.error_code,) = _h.unpack_from(buffer, position)
            position += 2
            item.topic_id = ZERO_UUID
            item.error_message = None
            items.append(item)
    return items, position


def _write_deletable_topic_result(
    out: list[Buffer], items: Sequence[DeletableTopicResult], version: int,
) -> None:
    if version >= 4:
        for item in items:
            if item.name is None and version <= 5:
                raise must_not_be_null("DeletableTopicResult.name", version)
            if item.name is None:
                out.append(b"\0")
            else:
                raw = item.name.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if version >= 6:
                out.append(_16sh.pack(item.topic_id, item.error_code))
            else:
                out.append(_h.pack(item.error_code))
            if version >= 5:
                if item.error_message is None:
                    out.append(b"\0")
                else:
                    raw = item.error_message.encode()
                    length = len(raw) + 1
                    out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                    out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            if item.name is None:
                raise must_not_be_null("DeletableTopicResult.name", version)
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_h.pack(item.error_code))


def _read_delete_topics_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteTopicsResponse], int]:
    items: list[DeleteTopicsResponse] = []
    if version >= 4:
        for _ in range(number):
            item = new(DeleteTopicsResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("DeleteTopicsResponse.responses", count, end - position)
            item.responses, position = _read_deletable_topic_result(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeleteTopicsResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeleteTopicsResponse)
            item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
            position += 8
            if count < 0 or count > (end - position) // 4:
                raise bad_length("DeleteTopicsResponse.responses", count, end - position)
            item.responses, position = _read_deletable_topic_result(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_delete_topics_response(
    out: list[Buffer], items: Sequence[DeleteTopicsResponse], version: int,
) -> None:
    if version >= 4:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.responses) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.responses:
                _write_deletable_topic_result(out, item.responses, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_ii.pack(item.throttle_time_ms, len(item.responses)))
            if item.responses:
                _write_deletable_topic_result(out, item.responses, version)
