# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""ShareAcknowledge (79), versions 1 to 2."""

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
    bad_bool,
    bad_length,
    does_not_fit,
    long_uvarint,
    malformed,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 79
NAME: Final = "ShareAcknowledge"
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


class AcknowledgePartition(Message):
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


class AcknowledgeTopic(Message):
    __slots__ = ("topic_id", "partitions")
    topic_id: bytes
    partitions: list[AcknowledgePartition]

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[AcknowledgePartition] | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class ShareAcknowledgeRequest(Message):
    __slots__ = ("group_id", "member_id", "share_session_epoch", "is_renew_ack", "topics")
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool  # v2+
    topics: list[AcknowledgeTopic]

    def __init__(
        self,
        group_id: str | None = None,
        member_id: str | None = None,
        share_session_epoch: int = 0,
        is_renew_ack: bool = False,
        topics: list[AcknowledgeTopic] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is None else topics


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


class PartitionData(Message):
    __slots__ = ("partition_index", "error_code", "error_message", "current_leader")
    partition_index: int
    error_code: int
    error_message: str | None
    current_leader: LeaderIdAndEpoch

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.current_leader = LeaderIdAndEpoch() if current_leader is None else current_leader


class ShareAcknowledgeTopicResponse(Message):
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


class ShareAcknowledgeResponse(Message):
    __slots__ = (
        "throttle_time_ms", "error_code", "error_message", "acquisition_lock_timeout_ms", "responses",
        "node_endpoints",
    )
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int  # v2+
    responses: list[ShareAcknowledgeTopicResponse]
    node_endpoints: list[NodeEndpoint]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareAcknowledgeTopicResponse] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is None else responses
        self.node_endpoints = [] if node_endpoints is None else node_endpoints


def decode_request(body: Buffer, version: int) -> ShareAcknowledgeRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_share_acknowledge_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ShareAcknowledge request", version, error) from None
    return items[0]


def encode_request(request: ShareAcknowledgeRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_share_acknowledge_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("ShareAcknowledge request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> ShareAcknowledgeResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_share_acknowledge_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ShareAcknowledge response", version, error) from None
    return items[0]


def encode_response(response: ShareAcknowledgeResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_share_acknowledge_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("ShareAcknowledge response", version, error) from error
    return b"".join(out)


_16sB = Struct(">16sB")
_i = Struct(">i")
_iZ = Struct(">i?")
_iB = Struct(">iB")
_iBB = Struct(">iBB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_iiB = Struct(">iiB")
_iix = Struct(">iix")
_qq = Struct(">qq")
_qqB = Struct(">qqB")


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


def _read_acknowledge_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AcknowledgePartition], int]:
    items: list[AcknowledgePartition] = []
    for _ in range(number):
        item = new(AcknowledgePartition)
        item.partition_index, count = _iB.unpack_from(buffer, position)
        position += 5
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 18:
            raise bad_length("AcknowledgePartition.acknowledgement_batches", count, end - position)
        item.acknowledgement_batches, position = _read_acknowledgement_batch(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "AcknowledgePartition")
        items.append(item)
    return items, position


def _write_acknowledge_partition(
    out: list[Buffer], items: Sequence[AcknowledgePartition], version: int,
) -> None:
    for item in items:
        out.append(_i.pack(item.partition_index))
        length = len(item.acknowledgement_batches) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.acknowledgement_batches:
            _write_acknowledgement_batch(out, item.acknowledgement_batches, version)
        out.append(b"\0")


def _read_acknowledge_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AcknowledgeTopic], int]:
    items: list[AcknowledgeTopic] = []
    for _ in range(number):
        item = new(AcknowledgeTopic)
        item.topic_id, count = _16sB.unpack_from(buffer, position)
        position += 17
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 6:
            raise bad_length("AcknowledgeTopic.partitions", count, end - position)
        item.partitions, position = _read_acknowledge_partition(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "AcknowledgeTopic")
        items.append(item)
    return items, position


def _write_acknowledge_topic(out: list[Buffer], items: Sequence[AcknowledgeTopic], version: int) -> None:
    for item in items:
        out.append(item.topic_id)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            _write_acknowledge_partition(out, item.partitions, version)
        out.append(b"\0")


def _read_share_acknowledge_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ShareAcknowledgeRequest], int]:
    items: list[ShareAcknowledgeRequest] = []
    for _ in range(number):
        item = new(ShareAcknowledgeRequest)
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
                raise bad_length("ShareAcknowledgeRequest.group_id", length, end - position)
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
                raise bad_length("ShareAcknowledgeRequest.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
        if version >= 2:
            item.share_session_epoch, is_renew_ack, count = _iBB.unpack_from(buffer, position)
            position += 6
            if is_renew_ack > 1:
                raise bad_bool("ShareAcknowledgeRequest.is_renew_ack", is_renew_ack)
            item.is_renew_ack = is_renew_ack == 1
        else:
            item.share_session_epoch, count = _iB.unpack_from(buffer, position)
            position += 5
            item.is_renew_ack = False
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 18:
            raise bad_length("ShareAcknowledgeRequest.topics", count, end - position)
        item.topics, position = _read_acknowledge_topic(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ShareAcknowledgeRequest")
        items.append(item)
    return items, position


def _write_share_acknowledge_request(
    out: list[Buffer], items: Sequence[ShareAcknowledgeRequest], version: int,
) -> None:
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
            out.append(_iZ.pack(item.share_session_epoch, item.is_renew_ack))
        else:
            out.append(_i.pack(item.share_session_epoch))
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_acknowledge_topic(out, item.topics, version)
        out.append(b"\0")


def _read_leader_id_and_epoch(
    buffer: bytes, position: int, end: int, version: int, number: int
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


def _read_partition_data(
    buffer: bytes, position: int, end: int, version: int, number: int
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
            item.error_message = buffer[position:stop].decode()
            position = stop
        (item.current_leader,), position = _read_leader_id_and_epoch(buffer, position, end, version, 1)
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
        _write_leader_id_and_epoch(out, (item.current_leader,), version)
        out.append(b"\0")


def _read_share_acknowledge_topic_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ShareAcknowledgeTopicResponse], int]:
    items: list[ShareAcknowledgeTopicResponse] = []
    for _ in range(number):
        item = new(ShareAcknowledgeTopicResponse)
        item.topic_id, count = _16sB.unpack_from(buffer, position)
        position += 17
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 17:
            raise bad_length("ShareAcknowledgeTopicResponse.partitions", count, end - position)
        item.partitions, position = _read_partition_data(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ShareAcknowledgeTopicResponse")
        items.append(item)
    return items, position


def _write_share_acknowledge_topic_response(
    out: list[Buffer], items: Sequence[ShareAcknowledgeTopicResponse], version: int,
) -> None:
    for item in items:
        out.append(item.topic_id)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            _write_partition_data(out, item.partitions, version)
        out.append(b"\0")


def _read_node_endpoint(
    buffer: bytes, position: int, end: int, version: int, number: int
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
        item.host = buffer[position:stop].decode()
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
            item.rack = buffer[position:stop].decode()
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


def _read_share_acknowledge_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ShareAcknowledgeResponse], int]:
    items: list[ShareAcknowledgeResponse] = []
    for _ in range(number):
        item = new(ShareAcknowledgeResponse)
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
                raise bad_length("ShareAcknowledgeResponse.error_message", length, end - position)
            item.error_message = buffer[position:stop].decode()
            position = stop
        if version >= 2:
            item.acquisition_lock_timeout_ms, count = _iB.unpack_from(buffer, position)
            position += 5
        else:
            count = buffer[position]
            position += 1
            item.acquisition_lock_timeout_ms = 0
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 18:
            raise bad_length("ShareAcknowledgeResponse.responses", count, end - position)
        item.responses, position = _read_share_acknowledge_topic_response(
            buffer, position, end, version, count,
        )
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 11:
            raise bad_length("ShareAcknowledgeResponse.node_endpoints", count, end - position)
        item.node_endpoints, position = _read_node_endpoint(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ShareAcknowledgeResponse")
        items.append(item)
    return items, position


def _write_share_acknowledge_response(
    out: list[Buffer], items: Sequence[ShareAcknowledgeResponse], version: int,
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
        if version >= 2:
            out.append(_i.pack(item.acquisition_lock_timeout_ms))
        length = len(item.responses) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.responses:
            _write_share_acknowledge_topic_response(out, item.responses, version)
        length = len(item.node_endpoints) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.node_endpoints:
            _write_node_endpoint(out, item.node_endpoints, version)
        out.append(b"\0")
