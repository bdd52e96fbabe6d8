# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""CreatePartitions (37), versions 0 to 3."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final

from postroad.wire.primitives import (
    INT32_ARRAYS,
    SHORT_UVARINTS,
    UNREADABLE,
    Buffer,
    Message,
    bad_bool,
    bad_length,
    does_not_fit,
    long_uvarint,
    malformed,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 37
NAME: Final = "CreatePartitions"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 3
FLEXIBLE_FROM: Final = 2

new = object.__new__


class CreatePartitionsAssignment(Message):
    __slots__ = ("broker_ids",)
    broker_ids: list[int]

    def __init__(
        self,
        broker_ids: list[int] | None = None,
    ) -> None:
        self.broker_ids = [] if broker_ids is None else broker_ids


class CreatePartitionsTopic(Message):
    __slots__ = ("name", "count", "assignments")
    name: str
    count: int
    assignments: list[CreatePartitionsAssignment] | None

    def __init__(
        self,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None = None,
    ) -> None:
        self.name = name
        self.count = count
        self.assignments = assignments


class CreatePartitionsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "validate_only")
    topics: list[CreatePartitionsTopic]
    timeout_ms: int
    validate_only: bool

    def __init__(
        self,
        topics: list[CreatePartitionsTopic] | None = None,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only


class CreatePartitionsTopicResult(Message):
    __slots__ = ("name", "error_code", "error_message")
    name: str
    error_code: int
    error_message: str | None

    def __init__(
        self,
        name: str = "",
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.error_code = error_code
        self.error_message = error_message


class CreatePartitionsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")
    throttle_time_ms: int
    results: list[CreatePartitionsTopicResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results


def decode_request(body: Buffer, version: int) -> CreatePartitionsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_create_partitions_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("CreatePartitions request", version, error) from None
    return items[0]


def encode_request(request: CreatePartitionsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_create_partitions_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("CreatePartitions request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> CreatePartitionsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_create_partitions_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("CreatePartitions response", version, error) from None
    return items[0]


def encode_response(response: CreatePartitionsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_create_partitions_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("CreatePartitions response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_hB = Struct(">hB")
_hh = Struct(">hh")
_i = Struct(">i")
_iZ = Struct(">i?")
_iZx = Struct(">i?x")
_iB = Struct(">iB")
_iBB = Struct(">iBB")
_ii = Struct(">ii")


def _read_create_partitions_assignment(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[CreatePartitionsAssignment], int]:
    items: list[CreatePartitionsAssignment] = []
    if version >= 2:
        for _ in range(number):
            item = new(CreatePartitionsAssignment)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("CreatePartitionsAssignment.broker_ids", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.broker_ids = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "CreatePartitionsAssignment")
            items.append(item)
    else:
        for _ in range(number):
            item = new(CreatePartitionsAssignment)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 4:
                raise bad_length("CreatePartitionsAssignment.broker_ids", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.broker_ids = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            items.append(item)
    return items, position


def _write_create_partitions_assignment(
    out: list[Buffer], items: Sequence[CreatePartitionsAssignment], version: int,
) -> None:
    if version >= 2:
        for item in items:
            length = len(item.broker_ids) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.broker_ids:
                count = len(item.broker_ids)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                out.append(numbers.pack(*item.broker_ids))
            out.append(b"\0")
    else:
        for item in items:
            out.append(_i.pack(len(item.broker_ids)))
            if item.broker_ids:
                count = len(item.broker_ids)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                out.append(numbers.pack(*item.broker_ids))


def _read_create_partitions_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[CreatePartitionsTopic], int]:
    items: list[CreatePartitionsTopic] = []
    if version >= 2:
        for _ in range(number):
            item = new(CreatePartitionsTopic)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("CreatePartitionsTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            item.count, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count == -1:
                item.assignments = None
            else:
                if count < 0 or count > (end - position) // 2:
                    raise bad_length("CreatePartitionsTopic.assignments", count, end - position)
                item.assignments, position = _read_create_partitions_assignment(
                    buffer, position, end, version, count,
                )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "CreatePartitionsTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(CreatePartitionsTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("CreatePartitionsTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            item.count, count = _ii.unpack_from(buffer, position)
            position += 8
            if count == -1:
                item.assignments = None
            else:
                if count < 0 or count > (end - position) // 4:
                    raise bad_length("CreatePartitionsTopic.assignments", count, end - position)
                item.assignments, position = _read_create_partitions_assignment(
                    buffer, position, end, version, count,
                )
            items.append(item)
    return items, position


def _write_create_partitions_topic(
    out: list[Buffer], items: Sequence[CreatePartitionsTopic], version: int,
) -> None:
    if version >= 2:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_i.pack(item.count))
            if item.assignments is None:
                out.append(b"\0")
            else:
                length = len(item.assignments) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.assignments:
                    _write_create_partitions_assignment(out, item.assignments, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_ii.pack(item.count, -1 if item.assignments is None else len(item.assignments)))
            if item.assignments:
                _write_create_partitions_assignment(out, item.assignments, version)


def _read_create_partitions_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[CreatePartitionsRequest], int]:
    items: list[CreatePartitionsRequest] = []
    if version >= 2:
        for _ in range(number):
            item = new(CreatePartitionsRequest)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 7:
                raise bad_length("CreatePartitionsRequest.topics", count, end - position)
            item.topics, position = _read_create_partitions_topic(buffer, position, end, version, count)
            item.timeout_ms, validate_only, tags = _iBB.unpack_from(buffer, position)
            position += 6
            if validate_only > 1:
                raise bad_bool("CreatePartitionsRequest.validate_only", validate_only)
            item.validate_only = validate_only == 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "CreatePartitionsRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(CreatePartitionsRequest)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 10:
                raise bad_length("CreatePartitionsRequest.topics", count, end - position)
            item.topics, position = _read_create_partitions_topic(buffer, position, end, version, count)
            item.timeout_ms, validate_only = _iB.unpack_from(buffer, position)
            position += 5
            if validate_only > 1:
                raise bad_bool("CreatePartitionsRequest.validate_only", validate_only)
            item.validate_only = validate_only == 1
            items.append(item)
    return items, position


def _write_create_partitions_request(
    out: list[Buffer], items: Sequence[CreatePartitionsRequest], version: int,
) -> None:
    if version >= 2:
        for item in items:
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_create_partitions_topic(out, item.topics, version)
            out.append(_iZx.pack(item.timeout_ms, item.validate_only))
    else:
        for item in items:
            out.append(_i.pack(len(item.topics)))
            if item.topics:
                _write_create_partitions_topic(out, item.topics, version)
            out.append(_iZ.pack(item.timeout_ms, item.validate_only))


def _read_create_partitions_topic_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[CreatePartitionsTopicResult], int]:
    items: list[CreatePartitionsTopicResult] = []
    if version >= 2:
        for _ in range(number):
            item = new(CreatePartitionsTopicResult)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("CreatePartitionsTopicResult.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
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
                    raise bad_length("CreatePartitionsTopicResult.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "CreatePartitionsTopicResult")
            items.append(item)
    else:
        for _ in range(number):
            item = new(CreatePartitionsTopicResult)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("CreatePartitionsTopicResult.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            item.error_code, length = _hh.unpack_from(buffer, position)
            position += 4
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("CreatePartitionsTopicResult.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            items.append(item)
    return items, position


def _write_create_partitions_topic_result(
    out: list[Buffer], items: Sequence[CreatePartitionsTopicResult], version: int,
) -> None:
    if version >= 2:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_h.pack(item.error_code))
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
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = b"" if item.error_message is None else item.error_message.encode()
            out.append(_hh.pack(item.error_code, -1 if item.error_message is None else len(raw)))
            out.append(raw)


def _read_create_partitions_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[CreatePartitionsResponse], int]:
    items: list[CreatePartitionsResponse] = []
    if version >= 2:
        for _ in range(number):
            item = new(CreatePartitionsResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 5:
                raise bad_length("CreatePartitionsResponse.results", count, end - position)
            item.results, position = _read_create_partitions_topic_result(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "CreatePartitionsResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(CreatePartitionsResponse)
            item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
            position += 8
            if count < 0 or count > (end - position) // 6:
                raise bad_length("CreatePartitionsResponse.results", count, end - position)
            item.results, position = _read_create_partitions_topic_result(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_create_partitions_response(
    out: list[Buffer], items: Sequence[CreatePartitionsResponse], version: int,
) -> None:
    if version >= 2:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.results) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.results:
                _write_create_partitions_topic_result(out, item.results, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_ii.pack(item.throttle_time_ms, len(item.results)))
            if item.results:
                _write_create_partitions_topic_result(out, item.results, version)
