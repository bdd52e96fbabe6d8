# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""ConsumerGroupHeartbeat (68), versions 0 to 1."""

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

KEY: Final = 68
NAME: Final = "ConsumerGroupHeartbeat"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FLEXIBLE_FROM: Final = 0

new = object.__new__


class RequestTopicPartitions(Message):
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


class ConsumerGroupHeartbeatRequest(Message):
    __slots__ = (
        "group_id", "member_id", "member_epoch", "instance_id", "rack_id", "rebalance_timeout_ms",
        "subscribed_topic_names", "subscribed_topic_regex", "server_assignor", "topic_partitions",
    )
    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    subscribed_topic_names: list[str] | None
    subscribed_topic_regex: str | None  # v1+
    server_assignor: str | None
    topic_partitions: list[RequestTopicPartitions] | None

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: list[RequestTopicPartitions] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.server_assignor = server_assignor
        self.topic_partitions = topic_partitions


class ResponseTopicPartitions(Message):
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
    topic_partitions: list[ResponseTopicPartitions]

    def __init__(
        self,
        topic_partitions: list[ResponseTopicPartitions] | None = None,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is None else topic_partitions


class ConsumerGroupHeartbeatResponse(Message):
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


def decode_request(body: Buffer, version: int) -> ConsumerGroupHeartbeatRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_consumer_group_heartbeat_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ConsumerGroupHeartbeat request", version, error) from None
    return items[0]


def encode_request(request: ConsumerGroupHeartbeatRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_consumer_group_heartbeat_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("ConsumerGroupHeartbeat request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> ConsumerGroupHeartbeatResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_consumer_group_heartbeat_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ConsumerGroupHeartbeat response", version, error) from None
    return items[0]


def encode_response(response: ConsumerGroupHeartbeatResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_consumer_group_heartbeat_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("ConsumerGroupHeartbeat response", version, error) from error
    return b"".join(out)


_16sB = Struct(">16sB")
_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ii = Struct(">ii")
_iib = Struct(">iib")


def _read_request_topic_partitions(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[RequestTopicPartitions], int]:
    items: list[RequestTopicPartitions] = []
    for _ in range(number):
        item = new(RequestTopicPartitions)
        item.topic_id, count = _16sB.unpack_from(buffer, position)
        position += 17
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("RequestTopicPartitions.partitions", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.partitions = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "RequestTopicPartitions")
        items.append(item)
    return items, position


def _write_request_topic_partitions(
    out: list[Buffer], items: Sequence[RequestTopicPartitions], version: int,
) -> None:
    for item in items:
        out.append(item.topic_id)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            count = len(item.partitions)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.partitions))
        out.append(b"\0")


def _read_consumer_group_heartbeat_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ConsumerGroupHeartbeatRequest], int]:
    items: list[ConsumerGroupHeartbeatRequest] = []
    for _ in range(number):
        item = new(ConsumerGroupHeartbeatRequest)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("ConsumerGroupHeartbeatRequest.group_id", length, end - position)
        item.group_id = buffer[position:stop].decode()
        position = stop
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("ConsumerGroupHeartbeatRequest.member_id", length, end - position)
        item.member_id = buffer[position:stop].decode()
        position = stop
        item.member_epoch, length = _iB.unpack_from(buffer, position)
        position += 5
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.instance_id = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ConsumerGroupHeartbeatRequest.instance_id", length, end - position)
            item.instance_id = buffer[position:stop].decode()
            position = stop
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.rack_id = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ConsumerGroupHeartbeatRequest.rack_id", length, end - position)
            item.rack_id = buffer[position:stop].decode()
            position = stop
        item.rebalance_timeout_ms, count = _iB.unpack_from(buffer, position)
        position += 5
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count == -1:
            item.subscribed_topic_names = None
        else:
            if count < 0 or count > end - position:
                raise bad_length(
                    "ConsumerGroupHeartbeatRequest.subscribed_topic_names", count, end - position,
                )
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
                        "ConsumerGroupHeartbeatRequest.subscribed_topic_names", length, end - position,
                    )
                append(buffer[position:stop].decode())
                position = stop
        if version >= 1:
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.subscribed_topic_regex = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length(
                        "ConsumerGroupHeartbeatRequest.subscribed_topic_regex", length, end - position,
                    )
                item.subscribed_topic_regex = buffer[position:stop].decode()
                position = stop
        else:
            item.subscribed_topic_regex = None
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.server_assignor = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ConsumerGroupHeartbeatRequest.server_assignor", length, end - position)
            item.server_assignor = buffer[position:stop].decode()
            position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count == -1:
            item.topic_partitions = None
        else:
            if count < 0 or count > (end - position) // 18:
                raise bad_length("ConsumerGroupHeartbeatRequest.topic_partitions", count, end - position)
            item.topic_partitions, position = _read_request_topic_partitions(
                buffer, position, end, version, count,
            )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ConsumerGroupHeartbeatRequest")
        items.append(item)
    return items, position


def _write_consumer_group_heartbeat_request(
    out: list[Buffer], items: Sequence[ConsumerGroupHeartbeatRequest], version: int,
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
        if item.instance_id is None:
            out.append(b"\0")
        else:
            raw = item.instance_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        if item.rack_id is None:
            out.append(b"\0")
        else:
            raw = item.rack_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(_i.pack(item.rebalance_timeout_ms))
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
        if version >= 1:
            if item.subscribed_topic_regex is None:
                out.append(b"\0")
            else:
                raw = item.subscribed_topic_regex.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
        if item.server_assignor is None:
            out.append(b"\0")
        else:
            raw = item.server_assignor.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        if item.topic_partitions is None:
            out.append(b"\0")
        else:
            length = len(item.topic_partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topic_partitions:
                _write_request_topic_partitions(out, item.topic_partitions, version)
        out.append(b"\0")


def _read_response_topic_partitions(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ResponseTopicPartitions], int]:
    items: list[ResponseTopicPartitions] = []
    for _ in range(number):
        item = new(ResponseTopicPartitions)
        item.topic_id, count = _16sB.unpack_from(buffer, position)
        position += 17
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("ResponseTopicPartitions.partitions", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.partitions = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ResponseTopicPartitions")
        items.append(item)
    return items, position


def _write_response_topic_partitions(
    out: list[Buffer], items: Sequence[ResponseTopicPartitions], version: int,
) -> None:
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
        item.topic_partitions, position = _read_response_topic_partitions(
            buffer, position, end, version, count,
        )
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
            _write_response_topic_partitions(out, item.topic_partitions, version)
        out.append(b"\0")


def _read_consumer_group_heartbeat_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ConsumerGroupHeartbeatResponse], int]:
    items: list[ConsumerGroupHeartbeatResponse] = []
    for _ in range(number):
        item = new(ConsumerGroupHeartbeatResponse)
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
                raise bad_length("ConsumerGroupHeartbeatResponse.error_message", length, end - position)
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
                raise bad_length("ConsumerGroupHeartbeatResponse.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
        item.member_epoch, item.heartbeat_interval_ms, marker = _iib.unpack_from(buffer, position)
        position += 9
        if marker == -1:
            item.assignment = None
        elif marker == 1:
            (item.assignment,), position = _read_assignment(buffer, position, end, version, 1)
        else:
            raise bad_marker("ConsumerGroupHeartbeatResponse.assignment", marker)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ConsumerGroupHeartbeatResponse")
        items.append(item)
    return items, position


def _write_consumer_group_heartbeat_response(
    out: list[Buffer], items: Sequence[ConsumerGroupHeartbeatResponse], version: int,
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
