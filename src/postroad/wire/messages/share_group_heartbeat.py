# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""ShareGroupHeartbeat (76), versions 1 to 1."""

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
    bad_marker,
    does_not_fit,
    long_uvarint,
    malformed,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 76
NAME: Final = "ShareGroupHeartbeat"
MIN_VERSION: Final = 1
MAX_VERSION: Final = 1
FLEXIBLE_FROM: Final = 1

new = object.__new__


class ShareGroupHeartbeatRequest(Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "rack_id", "subscribed_topic_names")
    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    subscribed_topic_names: list[str] | None

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names


class TopicPartitions(Message):
    __slots__ = ("topic_id", "partitions")
    topic_id: bytes
    partitions: list[int]

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class Assignment(Message):
    __slots__ = ("topic_partitions",)
    topic_partitions: list[TopicPartitions]

    def __init__(
        self,
        topic_partitions: list[TopicPartitions] | None = None,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is None else topic_partitions


class ShareGroupHeartbeatResponse(Message):
    __slots__ = (
        "throttle_time_ms", "error_code", "error_message", "member_id", "member_epoch",
        "heartbeat_interval_ms", "assignment",
    )
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: Assignment | None

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment


def decode_request(body: Buffer, version: int) -> ShareGroupHeartbeatRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_share_group_heartbeat_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ShareGroupHeartbeat request", version, error) from None
    return items[0]


def encode_request(request: ShareGroupHeartbeatRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_share_group_heartbeat_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("ShareGroupHeartbeat request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> ShareGroupHeartbeatResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_share_group_heartbeat_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ShareGroupHeartbeat response", version, error) from None
    return items[0]


def encode_response(response: ShareGroupHeartbeatResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_share_group_heartbeat_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("ShareGroupHeartbeat response", version, error) from error
    return b"".join(out)


_16sB = Struct(">16sB")
_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ii = Struct(">ii")
_iib = Struct(">iib")


def _read_share_group_heartbeat_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ShareGroupHeartbeatRequest], int]:
    items: list[ShareGroupHeartbeatRequest] = []
    for _ in range(number):
        item = new(ShareGroupHeartbeatRequest)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("ShareGroupHeartbeatRequest.group_id", length, end - position)
        item.group_id = buffer[position:stop].decode()
        position = stop
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("ShareGroupHeartbeatRequest.member_id", length, end - position)
        item.member_id = buffer[position:stop].decode()
        position = stop
        item.member_epoch, length = _iB.unpack_from(buffer, position)
        position += 5
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.rack_id = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ShareGroupHeartbeatRequest.rack_id", length, end - position)
            item.rack_id = buffer[position:stop].decode()
            position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count == -1:
            item.subscribed_topic_names = None
        else:
            if count < 0 or count > end - position:
                raise bad_length("ShareGroupHeartbeatRequest.subscribed_topic_names", count, end - position)
            item.subscribed_topic_names = []
            append = item.subscribed_topic_names.append
            for _ in range(count):
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length(
                        "ShareGroupHeartbeatRequest.subscribed_topic_names", length, end - position,
                    )
                append(buffer[position:stop].decode())
                position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ShareGroupHeartbeatRequest")
        items.append(item)
    return items, position


def _write_share_group_heartbeat_request(
    out: list[Buffer], items: Sequence[ShareGroupHeartbeatRequest], version: int,
) -> None:
    for item in items:
        raw = item.group_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        raw = item.member_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_i.pack(item.member_epoch))
        if item.rack_id is None:
            out.append(b"\0")
        else:
            raw = item.rack_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        if item.subscribed_topic_names is None:
            out.append(b"\0")
        else:
            length = len(item.subscribed_topic_names) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.subscribed_topic_names:
                for text in item.subscribed_topic_names:
                    raw = text.encode()
                    length = len(raw) + 1
                    out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                    out.append(raw)
        out.append(b"\0")


def _read_topic_partitions(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TopicPartitions], int]:
    items: list[TopicPartitions] = []
    for _ in range(number):
        item = new(TopicPartitions)
        item.topic_id, count = _16sB.unpack_from(buffer, position)
        position += 17
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("TopicPartitions.partitions", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.partitions = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "TopicPartitions")
        items.append(item)
    return items, position


def _write_topic_partitions(out: list[Buffer], items: Sequence[TopicPartitions], version: int) -> None:
    for item in items:
        out.append(item.topic_id)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            count = len(item.partitions)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.partitions))
        out.append(b"\0")


def _read_assignment(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[Assignment], int]:
    items: list[Assignment] = []
    for _ in range(number):
        item = new(Assignment)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 18:
            raise bad_length("Assignment.topic_partitions", count, end - position)
        item.topic_partitions, position = _read_topic_partitions(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "Assignment")
        items.append(item)
    return items, position


def _write_assignment(out: list[Buffer], items: Sequence[Assignment], version: int) -> None:
    for item in items:
        length = len(item.topic_partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topic_partitions:
            _write_topic_partitions(out, item.topic_partitions, version)
        out.append(b"\0")


def _read_share_group_heartbeat_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ShareGroupHeartbeatResponse], int]:
    items: list[ShareGroupHeartbeatResponse] = []
    for _ in range(number):
        item = new(ShareGroupHeartbeatResponse)
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
                raise bad_length("ShareGroupHeartbeatResponse.error_message", length, end - position)
            item.error_message = buffer[position:stop].decode()
            position = stop
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.member_id = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ShareGroupHeartbeatResponse.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
        item.member_epoch, item.heartbeat_interval_ms, marker = _iib.unpack_from(buffer, position)
        position += 9
        if marker == -1:
            item.assignment = None
        elif marker == 1:
            (item.assignment,), position = _read_assignment(buffer, position, end, version, 1)
        else:
            raise bad_marker("ShareGroupHeartbeatResponse.assignment", marker)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ShareGroupHeartbeatResponse")
        items.append(item)
    return items, position


def _write_share_group_heartbeat_response(
    out: list[Buffer], items: Sequence[ShareGroupHeartbeatResponse], version: int,
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
        if item.member_id is None:
            out.append(b"\0")
        else:
            raw = item.member_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(_ii.pack(item.member_epoch, item.heartbeat_interval_ms))
        if item.assignment is None:
            out.append(b"\xff")
        else:
            out.append(b"\x01")
            _write_assignment(out, (item.assignment,), version)
        out.append(b"\0")
