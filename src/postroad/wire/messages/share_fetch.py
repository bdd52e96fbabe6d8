# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""ShareFetch (78), versions 1 to 2."""

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
    does_not_fit,
    long_uvarint,
    malformed,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 78
NAME: Final = "ShareFetch"
MIN_VERSION: Final = 1
MAX_VERSION: Final = 2
FLEXIBLE_FROM: Final = 1

new = object.__new__


class AcknowledgementBatch(Message):
    __slots__ = ("first_offset", "last_offset", "acknowledge_types")
    first_offset: int
    last_offset: int
    acknowledge_types: list[int]

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        acknowledge_types: list[int] | None = None,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.acknowledge_types = [] if acknowledge_types is None else acknowledge_types


class FetchPartition(Message):
    __slots__ = ("partition_index", "acknowledgement_batches")
    partition_index: int
    acknowledgement_batches: list[AcknowledgementBatch]

    def __init__(
        self,
        partition_index: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.acknowledgement_batches = [] if acknowledgement_batches is None else acknowledgement_batches


class FetchTopic(Message):
    __slots__ = ("topic_id", "partitions")
    topic_id: bytes
    partitions: list[FetchPartition]

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[FetchPartition] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class ForgottenTopic(Message):
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


class ShareFetchRequest(Message):
    __slots__ = (
        "group_id", "member_id", "share_session_epoch", "max_wait_ms", "min_bytes", "max_bytes",
        "max_records", "batch_size", "share_acquire_mode", "is_renew_ack", "topics", "forgotten_topics_data",
    )
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    share_acquire_mode: int  # v2+
    is_renew_ack: bool  # v2+
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic]

    def __init__(
        self,
        group_id: str | None = None,
        member_id: str | None = None,
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,
        is_renew_ack: bool = False,
        topics: list[FetchTopic] | None = None,
        forgotten_topics_data: list[ForgottenTopic] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.max_records = max_records
        self.batch_size = batch_size
        self.share_acquire_mode = share_acquire_mode
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is None else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is None else forgotten_topics_data


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_id", "leader_epoch")
    leader_id: int
    leader_epoch: int

    def __init__(
        self,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class AcquiredRecords(Message):
    __slots__ = ("first_offset", "last_offset", "delivery_count")
    first_offset: int
    last_offset: int
    delivery_count: int

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_count = delivery_count


class PartitionData(Message):
    __slots__ = (
        "partition_index", "error_code", "error_message", "acknowledge_error_code",
        "acknowledge_error_message", "current_leader", "records", "acquired_records",
    )
    partition_index: int
    error_code: int
    error_message: str | None
    acknowledge_error_code: int
    acknowledge_error_message: str | None
    current_leader: LeaderIdAndEpoch
    records: Buffer
    acquired_records: list[AcquiredRecords]

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acknowledge_error_code: int = 0,
        acknowledge_error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        records: Buffer = b"",
        acquired_records: list[AcquiredRecords] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.acknowledge_error_code = acknowledge_error_code
        self.acknowledge_error_message = acknowledge_error_message
        self.current_leader = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.records = records
        self.acquired_records = [] if acquired_records is None else acquired_records


class ShareFetchableTopicResponse(Message):
    __slots__ = ("topic_id", "partitions")
    topic_id: bytes
    partitions: list[PartitionData]

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class NodeEndpoint(Message):
    __slots__ = ("node_id", "host", "port", "rack")
    node_id: int
    host: str
    port: int
    rack: str | None

    def __init__(
        self,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class ShareFetchResponse(Message):
    __slots__ = (
        "throttle_time_ms", "error_code", "error_message", "acquisition_lock_timeout_ms", "responses",
        "node_endpoints",
    )
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareFetchableTopicResponse]
    node_endpoints: list[NodeEndpoint]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareFetchableTopicResponse] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is None else responses
        self.node_endpoints = [] if node_endpoints is None else node_endpoints


def decode_request(body: Buffer, version: int) -> ShareFetchRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_share_fetch_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ShareFetch request", version, error) from None
    return items[0]


def encode_request(request: ShareFetchRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_share_fetch_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("ShareFetch request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> ShareFetchResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = memoryview(body).cast("B")
    try:
        items, _ = _read_share_fetch_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ShareFetch response", version, error) from None
    return items[0]


def encode_response(response: ShareFetchResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_share_fetch_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("ShareFetch response", version, error) from error
    return b"".join(out)


_16sB = Struct(">16sB")
_h = Struct(">h")
_hB = Struct(">hB")
_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_iiB = Struct(">iiB")
_iiiiii = Struct(">iiiiii")
_iiiiiiB = Struct(">iiiiiiB")
_iiiiiibZ = Struct(">iiiiiib?")
_iiiiiibBB = Struct(">iiiiiibBB")
_iix = Struct(">iix")
_qq = Struct(">qq")
_qqB = Struct(">qqB")
_qqhB = Struct(">qqhB")
_qqhx = Struct(">qqhx")


def _read_acknowledgement_batch(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AcknowledgementBatch], int]:
    items: list[AcknowledgementBatch] = []
    for _ in range(number):
        item = new(AcknowledgementBatch)
        item.first_offset, item.last_offset, count = _qqB.unpack_from(buffer, position)
        position += 17
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > end - position:
            raise bad_length("AcknowledgementBatch.acknowledge_types", count, end - position)
        numbers = Struct(f">{count}b")
        item.acknowledge_types = [*numbers.unpack_from(buffer, position)]
        position += count
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "AcknowledgementBatch")
        items.append(item)
    return items, position


def _write_acknowledgement_batch(
    out: list[Buffer], items: Sequence[AcknowledgementBatch], version: int,
) -> None:
    for item in items:
        out.append(_qq.pack(item.first_offset, item.last_offset))
        length = len(item.acknowledge_types) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.acknowledge_types:
            count = len(item.acknowledge_types)
            numbers = Struct(f">{count}b")
            out.append(numbers.pack(*item.acknowledge_types))
        out.append(b"\0")


def _read_fetch_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[FetchPartition], int]:
    items: list[FetchPartition] = []
    for _ in range(number):
        item = new(FetchPartition)
        item.partition_index, count = _iB.unpack_from(buffer, position)
        position += 5
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 18:
            raise bad_length("FetchPartition.acknowledgement_batches", count, end - position)
        item.acknowledgement_batches, position = _read_acknowledgement_batch(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "FetchPartition")
        items.append(item)
    return items, position


def _write_fetch_partition(out: list[Buffer], items: Sequence[FetchPartition], version: int) -> None:
    for item in items:
        out.append(_i.pack(item.partition_index))
        length = len(item.acknowledgement_batches) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.acknowledgement_batches:
            _write_acknowledgement_batch(out, item.acknowledgement_batches, version)
        out.append(b"\0")


def _read_fetch_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[FetchTopic], int]:
    items: list[FetchTopic] = []
    for _ in range(number):
        item = new(FetchTopic)
        item.topic_id, count = _16sB.unpack_from(buffer, position)
        position += 17
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 6:
            raise bad_length("FetchTopic.partitions", count, end - position)
        item.partitions, position = _read_fetch_partition(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "FetchTopic")
        items.append(item)
    return items, position


def _write_fetch_topic(out: list[Buffer], items: Sequence[FetchTopic], version: int) -> None:
    for item in items:
        out.append(item.topic_id)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            _write_fetch_partition(out, item.partitions, version)
        out.append(b"\0")


def _read_forgotten_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ForgottenTopic], int]:
    items: list[ForgottenTopic] = []
    for _ in range(number):
        item = new(ForgottenTopic)
        item.topic_id, count = _16sB.unpack_from(buffer, position)
        position += 17
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("ForgottenTopic.partitions", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.partitions = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ForgottenTopic")
        items.append(item)
    return items, position


def _write_forgotten_topic(out: list[Buffer], items: Sequence[ForgottenTopic], version: int) -> None:
    for item in items:
        out.append(item.topic_id)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            count = len(item.partitions)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.partitions))
        out.append(b"\0")


def _read_share_fetch_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ShareFetchRequest], int]:
    items: list[ShareFetchRequest] = []
    for _ in range(number):
        item = new(ShareFetchRequest)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.group_id = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ShareFetchRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
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
                raise bad_length("ShareFetchRequest.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
        if version >= 2:
            (
                item.share_session_epoch, item.max_wait_ms, item.min_bytes, item.max_bytes, item.max_records,
                item.batch_size, item.share_acquire_mode, is_renew_ack, count,
            ) = _iiiiiibBB.unpack_from(buffer, position)
            position += 27
            if is_renew_ack > 1:
                raise bad_bool("ShareFetchRequest.is_renew_ack", is_renew_ack)
            item.is_renew_ack = is_renew_ack == 1
        else:
            (
                item.share_session_epoch, item.max_wait_ms, item.min_bytes, item.max_bytes, item.max_records,
                item.batch_size, count,
            ) = _iiiiiiB.unpack_from(buffer, position)
            position += 25
            item.share_acquire_mode = 0
            item.is_renew_ack = False
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 18:
            raise bad_length("ShareFetchRequest.topics", count, end - position)
        item.topics, position = _read_fetch_topic(buffer, position, end, version, count)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 18:
            raise bad_length("ShareFetchRequest.forgotten_topics_data", count, end - position)
        item.forgotten_topics_data, position = _read_forgotten_topic(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ShareFetchRequest")
        items.append(item)
    return items, position


def _write_share_fetch_request(out: list[Buffer], items: Sequence[ShareFetchRequest], version: int) -> None:
    for item in items:
        if item.group_id is None:
            out.append(b"\0")
        else:
            raw = item.group_id.encode()
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
        if version >= 2:
            out.append(
                _iiiiiibZ.pack(
                    item.share_session_epoch, item.max_wait_ms, item.min_bytes, item.max_bytes,
                    item.max_records, item.batch_size, item.share_acquire_mode, item.is_renew_ack,
                )
            )
        else:
            out.append(
                _iiiiii.pack(
                    item.share_session_epoch, item.max_wait_ms, item.min_bytes, item.max_bytes,
                    item.max_records, item.batch_size,
                )
            )
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_fetch_topic(out, item.topics, version)
        length = len(item.forgotten_topics_data) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.forgotten_topics_data:
            _write_forgotten_topic(out, item.forgotten_topics_data, version)
        out.append(b"\0")


def _read_leader_id_and_epoch(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[LeaderIdAndEpoch], int]:
    items: list[LeaderIdAndEpoch] = []
    for _ in range(number):
        item = new(LeaderIdAndEpoch)
        item.leader_id, item.leader_epoch, tags = _iiB.unpack_from(buffer, position)
        position += 9
        if tags:
            position = skip_tags(buffer, position, end, tags, "LeaderIdAndEpoch")
        items.append(item)
    return items, position


def _write_leader_id_and_epoch(out: list[Buffer], items: Sequence[LeaderIdAndEpoch], version: int) -> None:
    for item in items:
        out.append(_iix.pack(item.leader_id, item.leader_epoch))


def _read_acquired_records(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[AcquiredRecords], int]:
    items: list[AcquiredRecords] = []
    for _ in range(number):
        item = new(AcquiredRecords)
        item.first_offset, item.last_offset, item.delivery_count, tags = _qqhB.unpack_from(buffer, position)
        position += 19
        if tags:
            position = skip_tags(buffer, position, end, tags, "AcquiredRecords")
        items.append(item)
    return items, position


def _write_acquired_records(out: list[Buffer], items: Sequence[AcquiredRecords], version: int) -> None:
    for item in items:
        out.append(_qqhx.pack(item.first_offset, item.last_offset, item.delivery_count))


def _read_partition_data(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[PartitionData], int]:
    items: list[PartitionData] = []
    for _ in range(number):
        item = new(PartitionData)
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
                raise bad_length("PartitionData.error_message", length, end - position)
            item.error_message = str(buffer[position:stop], "utf-8")
            position = stop
        item.acknowledge_error_code, length = _hB.unpack_from(buffer, position)
        position += 3
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.acknowledge_error_message = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("PartitionData.acknowledge_error_message", length, end - position)
            item.acknowledge_error_message = str(buffer[position:stop], "utf-8")
            position = stop
        (item.current_leader,), position = _read_leader_id_and_epoch(buffer, position, end, version, 1)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("PartitionData.records", length, end - position)
        item.records = buffer[position:stop]
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 19:
            raise bad_length("PartitionData.acquired_records", count, end - position)
        item.acquired_records, position = _read_acquired_records(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "PartitionData")
        items.append(item)
    return items, position


def _write_partition_data(out: list[Buffer], items: Sequence[PartitionData], version: int) -> None:
    for item in items:
        out.append(_ih.pack(item.partition_index, item.error_code))
        if item.error_message is None:
            out.append(b"\0")
        else:
            raw = item.error_message.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(_h.pack(item.acknowledge_error_code))
        if item.acknowledge_error_message is None:
            out.append(b"\0")
        else:
            raw = item.acknowledge_error_message.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        _write_leader_id_and_epoch(out, (item.current_leader,), version)
        records = item.records
        length = len(records) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(records)
        length = len(item.acquired_records) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.acquired_records:
            _write_acquired_records(out, item.acquired_records, version)
        out.append(b"\0")


def _read_share_fetchable_topic_response(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[ShareFetchableTopicResponse], int]:
    items: list[ShareFetchableTopicResponse] = []
    for _ in range(number):
        item = new(ShareFetchableTopicResponse)
        item.topic_id, count = _16sB.unpack_from(buffer, position)
        position += 17
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 22:
            raise bad_length("ShareFetchableTopicResponse.partitions", count, end - position)
        item.partitions, position = _read_partition_data(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ShareFetchableTopicResponse")
        items.append(item)
    return items, position


def _write_share_fetchable_topic_response(
    out: list[Buffer], items: Sequence[ShareFetchableTopicResponse], version: int,
) -> None:
    for item in items:
        out.append(item.topic_id)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            _write_partition_data(out, item.partitions, version)
        out.append(b"\0")


def _read_node_endpoint(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[NodeEndpoint], int]:
    items: list[NodeEndpoint] = []
    for _ in range(number):
        item = new(NodeEndpoint)
        item.node_id, length = _iB.unpack_from(buffer, position)
        position += 5
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("NodeEndpoint.host", length, end - position)
        item.host = str(buffer[position:stop], "utf-8")
        position = stop
        item.port, length = _iB.unpack_from(buffer, position)
        position += 5
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.rack = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("NodeEndpoint.rack", length, end - position)
            item.rack = str(buffer[position:stop], "utf-8")
            position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "NodeEndpoint")
        items.append(item)
    return items, position


def _write_node_endpoint(out: list[Buffer], items: Sequence[NodeEndpoint], version: int) -> None:
    for item in items:
        out.append(_i.pack(item.node_id))
        raw = item.host.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_i.pack(item.port))
        if item.rack is None:
            out.append(b"\0")
        else:
            raw = item.rack.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(b"\0")


def _read_share_fetch_response(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[ShareFetchResponse], int]:
    items: list[ShareFetchResponse] = []
    for _ in range(number):
        item = new(ShareFetchResponse)
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
                raise bad_length("ShareFetchResponse.error_message", length, end - position)
            item.error_message = str(buffer[position:stop], "utf-8")
            position = stop
        item.acquisition_lock_timeout_ms, count = _iB.unpack_from(buffer, position)
        position += 5
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 18:
            raise bad_length("ShareFetchResponse.responses", count, end - position)
        item.responses, position = _read_share_fetchable_topic_response(buffer, position, end, version, count)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 11:
            raise bad_length("ShareFetchResponse.node_endpoints", count, end - position)
        item.node_endpoints, position = _read_node_endpoint(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ShareFetchResponse")
        items.append(item)
    return items, position


def _write_share_fetch_response(out: list[Buffer], items: Sequence[ShareFetchResponse], version: int) -> None:
    for item in items:
        out.append(_ih.pack(item.throttle_time_ms, item.error_code))
        if item.error_message is None:
            out.append(b"\0")
        else:
            raw = item.error_message.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(_i.pack(item.acquisition_lock_timeout_ms))
        length = len(item.responses) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.responses:
            _write_share_fetchable_topic_response(out, item.responses, version)
        length = len(item.node_endpoints) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.node_endpoints:
            _write_node_endpoint(out, item.node_endpoints, version)
        out.append(b"\0")
