# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DescribeProducers (61), versions 0 to 0."""

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

KEY: Final = 61
NAME: Final = "DescribeProducers"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0

new = object.__new__


class TopicRequest(Message):
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


class DescribeProducersRequest(Message):
    __slots__ = ("topics",)
    topics: list[TopicRequest]

    def __init__(
        self,
        topics: list[TopicRequest] | None = None,
    ) -> None:
        self.topics = [] if topics is None else topics


class ProducerState(Message):
    __slots__ = (
        "producer_id", "producer_epoch", "last_sequence", "last_timestamp", "coordinator_epoch",
        "current_txn_start_offset",
    )
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int

    def __init__(
        self,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_sequence = last_sequence
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_start_offset = current_txn_start_offset


class PartitionResponse(Message):
    __slots__ = ("partition_index", "error_code", "error_message", "active_producers")
    partition_index: int
    error_code: int
    error_message: str | None
    active_producers: list[ProducerState]

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: list[ProducerState] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.active_producers = [] if active_producers is None else active_producers


class TopicResponse(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[PartitionResponse]

    def __init__(
        self,
        name: str = "",
        partitions: list[PartitionResponse] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class DescribeProducersResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")
    throttle_time_ms: int
    topics: list[TopicResponse]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[TopicResponse] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics


def decode_request(body: Buffer, version: int) -> DescribeProducersRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_producers_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeProducers request", version, error) from None
    return items[0]


def encode_request(request: DescribeProducersRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_producers_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DescribeProducers request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DescribeProducersResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_producers_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeProducers response", version, error) from None
    return items[0]


def encode_response(response: DescribeProducersResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_producers_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DescribeProducers response", version, error) from error
    return b"".join(out)


_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_qiiqiqB = Struct(">qiiqiqB")
_qiiqiqx = Struct(">qiiqiqx")


def _read_topic_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TopicRequest], int]:
    items: list[TopicRequest] = []
    for _ in range(number):
        item = new(TopicRequest)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("TopicRequest.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("TopicRequest.partition_indexes", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.partition_indexes = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "TopicRequest")
        items.append(item)
    return items, position


def _write_topic_request(out: list[Buffer], items: Sequence[TopicRequest], version: int) -> None:
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


def _read_describe_producers_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeProducersRequest], int]:
    items: list[DescribeProducersRequest] = []
    for _ in range(number):
        item = new(DescribeProducersRequest)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 3:
            raise bad_length("DescribeProducersRequest.topics", count, end - position)
        item.topics, position = _read_topic_request(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeProducersRequest")
        items.append(item)
    return items, position


def _write_describe_producers_request(
    out: list[Buffer], items: Sequence[DescribeProducersRequest], version: int,
) -> None:
    for item in items:
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_topic_request(out, item.topics, version)
        out.append(b"\0")


def _read_producer_state(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ProducerState], int]:
    items: list[ProducerState] = []
    for _ in range(number):
        item = new(ProducerState)
        (
            item.producer_id, item.producer_epoch, item.last_sequence, item.last_timestamp,
            item.coordinator_epoch, item.current_txn_start_offset, tags,
        ) = _qiiqiqB.unpack_from(buffer, position)
        position += 37
        if tags:
            position = skip_tags(buffer, position, end, tags, "ProducerState")
        items.append(item)
    return items, position


def _write_producer_state(out: list[Buffer], items: Sequence[ProducerState], version: int) -> None:
    for item in items:
        out.append(
            _qiiqiqx.pack(
                item.producer_id, item.producer_epoch, item.last_sequence, item.last_timestamp,
                item.coordinator_epoch, item.current_txn_start_offset,
            )
        )


def _read_partition_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[PartitionResponse], int]:
    items: list[PartitionResponse] = []
    for _ in range(number):
        item = new(PartitionResponse)
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
                raise bad_length("PartitionResponse.error_message", length, end - position)
            item.error_message = buffer[position:stop].decode()
            position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 37:
            raise bad_length("PartitionResponse.active_producers", count, end - position)
        item.active_producers, position = _read_producer_state(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "PartitionResponse")
        items.append(item)
    return items, position


def _write_partition_response(out: list[Buffer], items: Sequence[PartitionResponse], version: int) -> None:
    for item in items:
        out.append(_ih.pack(item.partition_index, item.error_code))
        if item.error_message is None:
            out.append(b"\0")
        else:
            raw = item.error_message.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        length = len(item.active_producers) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.active_producers:
            _write_producer_state(out, item.active_producers, version)
        out.append(b"\0")


def _read_topic_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TopicResponse], int]:
    items: list[TopicResponse] = []
    for _ in range(number):
        item = new(TopicResponse)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("TopicResponse.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 9:
            raise bad_length("TopicResponse.partitions", count, end - position)
        item.partitions, position = _read_partition_response(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "TopicResponse")
        items.append(item)
    return items, position


def _write_topic_response(out: list[Buffer], items: Sequence[TopicResponse], version: int) -> None:
    for item in items:
        raw = item.name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            _write_partition_response(out, item.partitions, version)
        out.append(b"\0")


def _read_describe_producers_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeProducersResponse], int]:
    items: list[DescribeProducersResponse] = []
    for _ in range(number):
        item = new(DescribeProducersResponse)
        item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
        position += 5
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 3:
            raise bad_length("DescribeProducersResponse.topics", count, end - position)
        item.topics, position = _read_topic_response(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeProducersResponse")
        items.append(item)
    return items, position


def _write_describe_producers_response(
    out: list[Buffer], items: Sequence[DescribeProducersResponse], version: int,
) -> None:
    for item in items:
        out.append(_i.pack(item.throttle_time_ms))
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_topic_response(out, item.topics, version)
        out.append(b"\0")
