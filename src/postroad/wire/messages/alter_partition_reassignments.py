# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""AlterPartitionReassignments (45), versions 0 to 1."""

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

KEY: Final = 45
NAME: Final = "AlterPartitionReassignments"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FLEXIBLE_FROM: Final = 0

new = object.__new__


class ReassignablePartition(Message):
    __slots__ = ("partition_index", "replicas")
    partition_index: int
    replicas: list[int] | None

    def __init__(
        self,
        partition_index: int = 0,
        replicas: list[int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = replicas


class ReassignableTopic(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[ReassignablePartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[ReassignablePartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class AlterPartitionReassignmentsRequest(Message):
    __slots__ = ("timeout_ms", "allow_replication_factor_change", "topics")
    timeout_ms: int
    allow_replication_factor_change: bool  # v1+
    topics: list[ReassignableTopic]

    def __init__(
        self,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] | None = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = [] if topics is None else topics


class ReassignablePartitionResponse(Message):
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


class ReassignableTopicResponse(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[ReassignablePartitionResponse]

    def __init__(
        self,
        name: str = "",
        partitions: list[ReassignablePartitionResponse] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class AlterPartitionReassignmentsResponse(Message):
    __slots__ = (
        "throttle_time_ms", "allow_replication_factor_change", "error_code", "error_message", "responses",
    )
    throttle_time_ms: int
    allow_replication_factor_change: bool  # v1+
    error_code: int
    error_message: str | None
    responses: list[ReassignableTopicResponse]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[ReassignableTopicResponse] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is None else responses


def decode_request(body: Buffer, version: int) -> AlterPartitionReassignmentsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_alter_partition_reassignments_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("AlterPartitionReassignments request", version, error) from None
    return items[0]


def encode_request(request: AlterPartitionReassignmentsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_alter_partition_reassignments_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("AlterPartitionReassignments request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> AlterPartitionReassignmentsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_alter_partition_reassignments_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("AlterPartitionReassignments response", version, error) from None
    return items[0]


def encode_response(response: AlterPartitionReassignmentsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_alter_partition_reassignments_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("AlterPartitionReassignments response", version, error) from error
    return b"".join(out)


_i = Struct(">i")
_iZ = Struct(">i?")
_iZh = Struct(">i?h")
_iB = Struct(">iB")
_iBB = Struct(">iBB")
_iBhB = Struct(">iBhB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")


def _read_reassignable_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ReassignablePartition], int]:
    items: list[ReassignablePartition] = []
    for _ in range(number):
        item = new(ReassignablePartition)
        item.partition_index, count = _iB.unpack_from(buffer, position)
        position += 5
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count == -1:
            item.replicas = None
        else:
            if count < 0 or count > (end - position) // 4:
                raise bad_length("ReassignablePartition.replicas", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.replicas = [*numbers.unpack_from(buffer, position)]
            position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ReassignablePartition")
        items.append(item)
    return items, position


def _write_reassignable_partition(
    out: list[Buffer], items: Sequence[ReassignablePartition], version: int,
) -> None:
    for item in items:
        out.append(_i.pack(item.partition_index))
        if item.replicas is None:
            out.append(b"\0")
        else:
            length = len(item.replicas) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.replicas:
                count = len(item.replicas)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                out.append(numbers.pack(*item.replicas))
        out.append(b"\0")


def _read_reassignable_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ReassignableTopic], int]:
    items: list[ReassignableTopic] = []
    for _ in range(number):
        item = new(ReassignableTopic)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("ReassignableTopic.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 6:
            raise bad_length("ReassignableTopic.partitions", count, end - position)
        item.partitions, position = _read_reassignable_partition(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ReassignableTopic")
        items.append(item)
    return items, position


def _write_reassignable_topic(out: list[Buffer], items: Sequence[ReassignableTopic], version: int) -> None:
    for item in items:
        raw = item.name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            _write_reassignable_partition(out, item.partitions, version)
        out.append(b"\0")


def _read_alter_partition_reassignments_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterPartitionReassignmentsRequest], int]:
    items: list[AlterPartitionReassignmentsRequest] = []
    for _ in range(number):
        item = new(AlterPartitionReassignmentsRequest)
        if version >= 1:
            item.timeout_ms, allow_replication_factor_change, count = _iBB.unpack_from(buffer, position)
            position += 6
            if allow_replication_factor_change > 1:
                raise bad_bool(
                    "AlterPartitionReassignmentsRequest.allow_replication_factor_change",
                    allow_replication_factor_change,
                )
            item.allow_replication_factor_change = allow_replication_factor_change == 1
        else:
            item.timeout_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            item.allow_replication_factor_change = True
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 3:
            raise bad_length("AlterPartitionReassignmentsRequest.topics", count, end - position)
        item.topics, position = _read_reassignable_topic(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "AlterPartitionReassignmentsRequest")
        items.append(item)
    return items, position


def _write_alter_partition_reassignments_request(
    out: list[Buffer], items: Sequence[AlterPartitionReassignmentsRequest], version: int,
) -> None:
    for item in items:
        if version >= 1:
            out.append(_iZ.pack(item.timeout_ms, item.allow_replication_factor_change))
        else:
            out.append(_i.pack(item.timeout_ms))
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_reassignable_topic(out, item.topics, version)
        out.append(b"\0")


def _read_reassignable_partition_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ReassignablePartitionResponse], int]:
    items: list[ReassignablePartitionResponse] = []
    for _ in range(number):
        item = new(ReassignablePartitionResponse)
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
                raise bad_length("ReassignablePartitionResponse.error_message", length, end - position)
            item.error_message = buffer[position:stop].decode()
            position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ReassignablePartitionResponse")
        items.append(item)
    return items, position


def _write_reassignable_partition_response(
    out: list[Buffer], items: Sequence[ReassignablePartitionResponse], version: int,
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


def _read_reassignable_topic_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ReassignableTopicResponse], int]:
    items: list[ReassignableTopicResponse] = []
    for _ in range(number):
        item = new(ReassignableTopicResponse)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("ReassignableTopicResponse.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 8:
            raise bad_length("ReassignableTopicResponse.partitions", count, end - position)
        item.partitions, position = _read_reassignable_partition_response(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ReassignableTopicResponse")
        items.append(item)
    return items, position


def _write_reassignable_topic_response(
    out: list[Buffer], items: Sequence[ReassignableTopicResponse], version: int,
) -> None:
    for item in items:
        raw = item.name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            _write_reassignable_partition_response(out, item.partitions, version)
        out.append(b"\0")


def _read_alter_partition_reassignments_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AlterPartitionReassignmentsResponse], int]:
    items: list[AlterPartitionReassignmentsResponse] = []
    for _ in range(number):
        item = new(AlterPartitionReassignmentsResponse)
        if version >= 1:
            (
                item.throttle_time_ms, allow_replication_factor_change, item.error_code, length,
            ) = _iBhB.unpack_from(buffer, position)
            position += 8
            if allow_replication_factor_change > 1:
                raise bad_bool(
                    "AlterPartitionReassignmentsResponse.allow_replication_factor_change",
                    allow_replication_factor_change,
                )
            item.allow_replication_factor_change = allow_replication_factor_change == 1
        else:
            item.throttle_time_ms, item.error_code, length = _ihB.unpack_from(buffer, position)
            position += 7
            item.allow_replication_factor_change = True
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.error_message = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AlterPartitionReassignmentsResponse.error_message", length, end - position)
            item.error_message = buffer[position:stop].decode()
            position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 3:
            raise bad_length("AlterPartitionReassignmentsResponse.responses", count, end - position)
        item.responses, position = _read_reassignable_topic_response(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "AlterPartitionReassignmentsResponse")
        items.append(item)
    return items, position


def _write_alter_partition_reassignments_response(
    out: list[Buffer], items: Sequence[AlterPartitionReassignmentsResponse], version: int,
) -> None:
    for item in items:
        if version >= 1:
            out.append(
                _iZh.pack(item.throttle_time_ms, item.allow_replication_factor_change, item.error_code)
            )
        else:
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
            _write_reassignable_topic_response(out, item.responses, version)
        out.append(b"\0")
