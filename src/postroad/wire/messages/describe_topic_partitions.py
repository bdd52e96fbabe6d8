# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DescribeTopicPartitions (75), versions 0 to 0."""

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
    bad_bool,
    bad_length,
    bad_marker,
    does_not_fit,
    long_uvarint,
    malformed,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 75
NAME: Final = "DescribeTopicPartitions"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0

new = object.__new__


class TopicRequest(Message):
    __slots__ = ("name",)
    name: str

    def __init__(
        self,
        name: str = "",
    ) -> None:
        self.name = name


class RequestCursor(Message):
    __slots__ = ("topic_name", "partition_index")
    topic_name: str
    partition_index: int

    def __init__(
        self,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsRequest(Message):
    __slots__ = ("topics", "response_partition_limit", "cursor")
    topics: list[TopicRequest]
    response_partition_limit: int
    cursor: RequestCursor | None

    def __init__(
        self,
        topics: list[TopicRequest] | None = None,
        response_partition_limit: int = 2000,
        cursor: RequestCursor | None = None,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor


class DescribeTopicPartitionsResponsePartition(Message):
    __slots__ = (
        "error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes",
        "eligible_leader_replicas", "last_known_elr", "offline_replicas",
    )
    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: list[int]
    isr_nodes: list[int]
    eligible_leader_replicas: list[int] | None
    last_known_elr: list[int] | None
    offline_replicas: list[int]

    def __init__(
        self,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] | None = None,
        isr_nodes: list[int] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] | None = None,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is None else replica_nodes
        self.isr_nodes = [] if isr_nodes is None else isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas = [] if offline_replicas is None else offline_replicas


class DescribeTopicPartitionsResponseTopic(Message):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")
    error_code: int
    name: str | None
    topic_id: bytes
    is_internal: bool
    partitions: list[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: int

    def __init__(
        self,
        error_code: int = 0,
        name: str | None = None,
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] | None = None,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is None else partitions
        self.topic_authorized_operations = topic_authorized_operations


class ResponseCursor(Message):
    __slots__ = ("topic_name", "partition_index")
    topic_name: str
    partition_index: int

    def __init__(
        self,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "next_cursor")
    throttle_time_ms: int
    topics: list[DescribeTopicPartitionsResponseTopic]
    next_cursor: ResponseCursor | None

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] | None = None,
        next_cursor: ResponseCursor | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
        self.next_cursor = next_cursor


def decode_request(body: Buffer, version: int) -> DescribeTopicPartitionsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_topic_partitions_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeTopicPartitions request", version, error) from None
    return items[0]


def encode_request(request: DescribeTopicPartitionsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_topic_partitions_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DescribeTopicPartitions request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DescribeTopicPartitionsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_topic_partitions_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeTopicPartitions response", version, error) from None
    return items[0]


def encode_response(response: DescribeTopicPartitionsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_topic_partitions_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DescribeTopicPartitions response", version, error) from error
    return b"".join(out)


_16sZ = Struct(">16s?")
_16sBB = Struct(">16sBB")
_b = Struct(">b")
_h = Struct(">h")
_hB = Struct(">hB")
_hiii = Struct(">hiii")
_hiiiB = Struct(">hiiiB")
_i = Struct(">i")
_iB = Struct(">iB")
_ib = Struct(">ib")
_ix = Struct(">ix")


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
        out.append(b"\0")


def _read_request_cursor(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[RequestCursor], int]:
    items: list[RequestCursor] = []
    for _ in range(number):
        item = new(RequestCursor)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("RequestCursor.topic_name", length, end - position)
        item.topic_name = buffer[position:stop].decode()
        position = stop
        item.partition_index, tags = _iB.unpack_from(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position, end, tags, "RequestCursor")
        items.append(item)
    return items, position


def _write_request_cursor(out: list[Buffer], items: Sequence[RequestCursor], version: int) -> None:
    for item in items:
        raw = item.topic_name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_ix.pack(item.partition_index))


def _read_describe_topic_partitions_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeTopicPartitionsRequest], int]:
    items: list[DescribeTopicPartitionsRequest] = []
    for _ in range(number):
        item = new(DescribeTopicPartitionsRequest)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 2:
            raise bad_length("DescribeTopicPartitionsRequest.topics", count, end - position)
        item.topics, position = _read_topic_request(buffer, position, end, version, count)
        item.response_partition_limit, marker = _ib.unpack_from(buffer, position)
        position += 5
        if marker == -1:
            item.cursor = None
        elif marker == 1:
            (item.cursor,), position = _read_request_cursor(buffer, position, end, version, 1)
        else:
            raise bad_marker("DescribeTopicPartitionsRequest.cursor", marker)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeTopicPartitionsRequest")
        items.append(item)
    return items, position


def _write_describe_topic_partitions_request(
    out: list[Buffer], items: Sequence[DescribeTopicPartitionsRequest], version: int,
) -> None:
    for item in items:
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_topic_request(out, item.topics, version)
        out.append(_i.pack(item.response_partition_limit))
        if item.cursor is None:
            out.append(b"\xff")
        else:
            out.append(b"\x01")
            _write_request_cursor(out, (item.cursor,), version)
        out.append(b"\0")


def _read_describe_topic_partitions_response_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeTopicPartitionsResponsePartition], int]:
    items: list[DescribeTopicPartitionsResponsePartition] = []
    for _ in range(number):
        item = new(DescribeTopicPartitionsResponsePartition)
        (
            item.error_code, item.partition_index, item.leader_id, item.leader_epoch, count,
        ) = _hiiiB.unpack_from(buffer, position)
        position += 15
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("DescribeTopicPartitionsResponsePartition.replica_nodes", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.replica_nodes = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("DescribeTopicPartitionsResponsePartition.isr_nodes", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.isr_nodes = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count == -1:
            item.eligible_leader_replicas = None
        else:
            if count < 0 or count > (end - position) // 4:
                raise bad_length(
                    "DescribeTopicPartitionsResponsePartition.eligible_leader_replicas", count,
                    end - position,
                )
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.eligible_leader_replicas = [*numbers.unpack_from(buffer, position)]
            position += count * 4
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count == -1:
            item.last_known_elr = None
        else:
            if count < 0 or count > (end - position) // 4:
                raise bad_length(
                    "DescribeTopicPartitionsResponsePartition.last_known_elr", count, end - position,
                )
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.last_known_elr = [*numbers.unpack_from(buffer, position)]
            position += count * 4
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length(
                "DescribeTopicPartitionsResponsePartition.offline_replicas", count, end - position,
            )
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.offline_replicas = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeTopicPartitionsResponsePartition")
        items.append(item)
    return items, position


def _write_describe_topic_partitions_response_partition(
    out: list[Buffer], items: Sequence[DescribeTopicPartitionsResponsePartition], version: int,
) -> None:
    for item in items:
        out.append(_hiii.pack(item.error_code, item.partition_index, item.leader_id, item.leader_epoch))
        length = len(item.replica_nodes) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.replica_nodes:
            count = len(item.replica_nodes)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.replica_nodes))
        length = len(item.isr_nodes) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.isr_nodes:
            count = len(item.isr_nodes)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.isr_nodes))
        if item.eligible_leader_replicas is None:
            out.append(b"\0")
        else:
            length = len(item.eligible_leader_replicas) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.eligible_leader_replicas:
                count = len(item.eligible_leader_replicas)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                out.append(numbers.pack(*item.eligible_leader_replicas))
        if item.last_known_elr is None:
            out.append(b"\0")
        else:
            length = len(item.last_known_elr) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.last_known_elr:
                count = len(item.last_known_elr)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                out.append(numbers.pack(*item.last_known_elr))
        length = len(item.offline_replicas) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.offline_replicas:
            count = len(item.offline_replicas)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.offline_replicas))
        out.append(b"\0")


def _read_describe_topic_partitions_response_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeTopicPartitionsResponseTopic], int]:
    items: list[DescribeTopicPartitionsResponseTopic] = []
    for _ in range(number):
        item = new(DescribeTopicPartitionsResponseTopic)
        item.error_code, length = _hB.unpack_from(buffer, position)
        position += 3
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.name = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeTopicPartitionsResponseTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
        item.topic_id, is_internal, count = _16sBB.unpack_from(buffer, position)
        position += 18
        if is_internal > 1:
            raise bad_bool("DescribeTopicPartitionsResponseTopic.is_internal", is_internal)
        item.is_internal = is_internal == 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 20:
            raise bad_length("DescribeTopicPartitionsResponseTopic.partitions", count, end - position)
        item.partitions, position = _read_describe_topic_partitions_response_partition(
            buffer, position, end, version, count,
        )
        item.topic_authorized_operations, tags = _iB.unpack_from(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeTopicPartitionsResponseTopic")
        items.append(item)
    return items, position


def _write_describe_topic_partitions_response_topic(
    out: list[Buffer], items: Sequence[DescribeTopicPartitionsResponseTopic], version: int,
) -> None:
    for item in items:
        out.append(_h.pack(item.error_code))
        if item.name is None:
            out.append(b"\0")
        else:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(_16sZ.pack(item.topic_id, item.is_internal))
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            _write_describe_topic_partitions_response_partition(out, item.partitions, version)
        out.append(_ix.pack(item.topic_authorized_operations))


def _read_response_cursor(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ResponseCursor], int]:
    items: list[ResponseCursor] = []
    for _ in range(number):
        item = new(ResponseCursor)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("ResponseCursor.topic_name", length, end - position)
        item.topic_name = buffer[position:stop].decode()
        position = stop
        item.partition_index, tags = _iB.unpack_from(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position, end, tags, "ResponseCursor")
        items.append(item)
    return items, position


def _write_response_cursor(out: list[Buffer], items: Sequence[ResponseCursor], version: int) -> None:
    for item in items:
        raw = item.topic_name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_ix.pack(item.partition_index))


def _read_describe_topic_partitions_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeTopicPartitionsResponse], int]:
    items: list[DescribeTopicPartitionsResponse] = []
    for _ in range(number):
        item = new(DescribeTopicPartitionsResponse)
        item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
        position += 5
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 26:
            raise bad_length("DescribeTopicPartitionsResponse.topics", count, end - position)
        item.topics, position = _read_describe_topic_partitions_response_topic(
            buffer, position, end, version, count,
        )
        (marker,) = _b.unpack_from(buffer, position)
        position += 1
        if marker == -1:
            item.next_cursor = None
        elif marker == 1:
            (item.next_cursor,), position = _read_response_cursor(buffer, position, end, version, 1)
        else:
            raise bad_marker("DescribeTopicPartitionsResponse.next_cursor", marker)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeTopicPartitionsResponse")
        items.append(item)
    return items, position


def _write_describe_topic_partitions_response(
    out: list[Buffer], items: Sequence[DescribeTopicPartitionsResponse], version: int,
) -> None:
    for item in items:
        out.append(_i.pack(item.throttle_time_ms))
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_describe_topic_partitions_response_topic(out, item.topics, version)
        if item.next_cursor is None:
            out.append(b"\xff")
        else:
            out.append(b"\x01")
            _write_response_cursor(out, (item.next_cursor,), version)
        out.append(b"\0")
