# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""ListPartitionReassignments (46), versions 0 to 0."""

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
    bad_length,
    does_not_fit,
    long_uvarint,
    malformed,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 46
NAME: Final = "ListPartitionReassignments"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0

new = object.__new__


class ListPartitionReassignmentsTopics(Message):
    __slots__ = ("name", "partition_indexes")
    name: str
    partition_indexes: list[int]

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] | None = None,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is None else partition_indexes


class ListPartitionReassignmentsRequest(Message):
    __slots__ = ("timeout_ms", "topics")
    timeout_ms: int
    topics: list[ListPartitionReassignmentsTopics] | None

    def __init__(
        self,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsTopics] | None = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics


class OngoingPartitionReassignment(Message):
    __slots__ = ("partition_index", "replicas", "adding_replicas", "removing_replicas")
    partition_index: int
    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]

    def __init__(
        self,
        partition_index: int = 0,
        replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = [] if replicas is None else replicas
        self.adding_replicas = [] if adding_replicas is None else adding_replicas
        self.removing_replicas = [] if removing_replicas is None else removing_replicas


class OngoingTopicReassignment(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[OngoingPartitionReassignment]

    def __init__(
        self,
        name: str = "",
        partitions: list[OngoingPartitionReassignment] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class ListPartitionReassignmentsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "topics")
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    topics: list[OngoingTopicReassignment]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        topics: list[OngoingTopicReassignment] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is None else topics


def decode_request(body: Buffer, version: int) -> ListPartitionReassignmentsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_list_partition_reassignments_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ListPartitionReassignments request", version, error) from None
    return items[0]


def encode_request(request: ListPartitionReassignmentsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_list_partition_reassignments_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("ListPartitionReassignments request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> ListPartitionReassignmentsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_list_partition_reassignments_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ListPartitionReassignments response", version, error) from None
    return items[0]


def encode_response(response: ListPartitionReassignmentsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_list_partition_reassignments_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("ListPartitionReassignments response", version, error) from error
    return b"".join(out)


_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")


def _read_list_partition_reassignments_topics(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ListPartitionReassignmentsTopics], int]:
    items: list[ListPartitionReassignmentsTopics] = []
    for _ in range(number):
        item = new(ListPartitionReassignmentsTopics)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("ListPartitionReassignmentsTopics.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("ListPartitionReassignmentsTopics.partition_indexes", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.partition_indexes = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ListPartitionReassignmentsTopics")
        items.append(item)
    return items, position


def _write_list_partition_reassignments_topics(
    out: list[Buffer], items: Sequence[ListPartitionReassignmentsTopics], version: int,
) -> None:
    for item in items:
        raw = item.name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.partition_indexes) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partition_indexes:
            count = len(item.partition_indexes)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.partition_indexes))
        out.append(b"\0")


def _read_list_partition_reassignments_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ListPartitionReassignmentsRequest], int]:
    items: list[ListPartitionReassignmentsRequest] = []
    for _ in range(number):
        item = new(ListPartitionReassignmentsRequest)
        item.timeout_ms, count = _iB.unpack_from(buffer, position)
        position += 5
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count == -1:
            item.topics = None
        else:
            if count < 0 or count > (end - position) // 3:
                raise bad_length("ListPartitionReassignmentsRequest.topics", count, end - position)
            item.topics, position = _read_list_partition_reassignments_topics(
                buffer, position, end, version, count,
            )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ListPartitionReassignmentsRequest")
        items.append(item)
    return items, position


def _write_list_partition_reassignments_request(
    out: list[Buffer], items: Sequence[ListPartitionReassignmentsRequest], version: int,
) -> None:
    for item in items:
        out.append(_i.pack(item.timeout_ms))
        if item.topics is None:
            out.append(b"\0")
        else:
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_list_partition_reassignments_topics(out, item.topics, version)
        out.append(b"\0")


def _read_ongoing_partition_reassignment(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OngoingPartitionReassignment], int]:
    items: list[OngoingPartitionReassignment] = []
    for _ in range(number):
        item = new(OngoingPartitionReassignment)
        item.partition_index, count = _iB.unpack_from(buffer, position)
        position += 5
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("OngoingPartitionReassignment.replicas", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.replicas = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("OngoingPartitionReassignment.adding_replicas", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.adding_replicas = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("OngoingPartitionReassignment.removing_replicas", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.removing_replicas = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "OngoingPartitionReassignment")
        items.append(item)
    return items, position


def _write_ongoing_partition_reassignment(
    out: list[Buffer], items: Sequence[OngoingPartitionReassignment], version: int,
) -> None:
    for item in items:
        out.append(_i.pack(item.partition_index))
        length = len(item.replicas) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.replicas:
            count = len(item.replicas)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.replicas))
        length = len(item.adding_replicas) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.adding_replicas:
            count = len(item.adding_replicas)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.adding_replicas))
        length = len(item.removing_replicas) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.removing_replicas:
            count = len(item.removing_replicas)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.removing_replicas))
        out.append(b"\0")


def _read_ongoing_topic_reassignment(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OngoingTopicReassignment], int]:
    items: list[OngoingTopicReassignment] = []
    for _ in range(number):
        item = new(OngoingTopicReassignment)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("OngoingTopicReassignment.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 8:
            raise bad_length("OngoingTopicReassignment.partitions", count, end - position)
        item.partitions, position = _read_ongoing_partition_reassignment(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "OngoingTopicReassignment")
        items.append(item)
    return items, position


def _write_ongoing_topic_reassignment(
    out: list[Buffer], items: Sequence[OngoingTopicReassignment], version: int,
) -> None:
    for item in items:
        raw = item.name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            _write_ongoing_partition_reassignment(out, item.partitions, version)
        out.append(b"\0")


def _read_list_partition_reassignments_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ListPartitionReassignmentsResponse], int]:
    items: list[ListPartitionReassignmentsResponse] = []
    for _ in range(number):
        item = new(ListPartitionReassignmentsResponse)
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
                raise bad_length("ListPartitionReassignmentsResponse.error_message", length, end - position)
            item.error_message = buffer[position:stop].decode()
            position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 3:
            raise bad_length("ListPartitionReassignmentsResponse.topics", count, end - position)
        item.topics, position = _read_ongoing_topic_reassignment(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ListPartitionReassignmentsResponse")
        items.append(item)
    return items, position


def _write_list_partition_reassignments_response(
    out: list[Buffer], items: Sequence[ListPartitionReassignmentsResponse], version: int,
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
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_ongoing_topic_reassignment(out, item.topics, version)
        out.append(b"\0")
