# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""Produce (0), versions 3 to 13."""

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
    bad_tag_size,
    does_not_fit,
    long_uvarint,
    malformed,
    read_tag,
    skip_tags,
    tagged_field,
    unsupported,
    uvarint,
)

KEY: Final = 0
NAME: Final = "Produce"
MIN_VERSION: Final = 3
MAX_VERSION: Final = 13
FLEXIBLE_FROM: Final = 9

new = object.__new__


class PartitionProduceData(Message):
    __slots__ = ("index", "records")
    index: int
    records: Buffer | None

    def __init__(
        self,
        index: int = 0,
        records: Buffer | None = None,
    ) -> None:
        self.index = index
        self.records = records


class TopicProduceData(Message):
    __slots__ = ("name", "topic_id", "partition_data")
    name: str  # v3–v12
    topic_id: bytes  # v13+
    partition_data: list[PartitionProduceData]

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_data: list[PartitionProduceData] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data = [] if partition_data is None else partition_data


class ProduceRequest(Message):
    __slots__ = ("transactional_id", "acks", "timeout_ms", "topic_data")
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topic_data: list[TopicProduceData]

    def __init__(
        self,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data = [] if topic_data is None else topic_data


class BatchIndexAndErrorMessage(Message):
    __slots__ = ("batch_index", "batch_index_error_message")
    batch_index: int
    batch_index_error_message: str | None

    def __init__(
        self,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
    ) -> None:
        self.batch_index = batch_index
        self.batch_index_error_message = batch_index_error_message


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_id", "leader_epoch")
    leader_id: int
    leader_epoch: int

    def __init__(
        self,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class PartitionProduceResponse(Message):
    __slots__ = (
        "index", "error_code", "base_offset", "log_append_time_ms", "log_start_offset", "record_errors",
        "error_message", "current_leader",
    )
    index: int
    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int  # v5+
    record_errors: list[BatchIndexAndErrorMessage]  # v8+
    error_message: str | None  # v8+
    current_leader: LeaderIdAndEpoch | None  # v10+, tag 0

    def __init__(
        self,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: list[BatchIndexAndErrorMessage] | None = None,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = [] if record_errors is None else record_errors
        self.error_message = error_message
        self.current_leader = current_leader


class TopicProduceResponse(Message):
    __slots__ = ("name", "topic_id", "partition_responses")
    name: str  # v3–v12
    topic_id: bytes  # v13+
    partition_responses: list[PartitionProduceResponse]

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_responses: list[PartitionProduceResponse] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_responses = [] if partition_responses is None else partition_responses


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


class ProduceResponse(Message):
    __slots__ = ("responses", "throttle_time_ms", "node_endpoints")
    responses: list[TopicProduceResponse]
    throttle_time_ms: int
    node_endpoints: list[NodeEndpoint]  # v10+, tag 0

    def __init__(
        self,
        responses: list[TopicProduceResponse] | None = None,
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] | None = None,
    ) -> None:
        self.responses = [] if responses is None else responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints = [] if node_endpoints is None else node_endpoints


def decode_request(body: Buffer, version: int) -> ProduceRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = memoryview(body).cast("B")
    try:
        items, _ = _read_produce_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("Produce request", version, error) from None
    return items[0]


def encode_request(request: ProduceRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_produce_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("Produce request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> ProduceResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_produce_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("Produce response", version, error) from None
    return items[0]


def encode_response(response: ProduceResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_produce_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("Produce response", version, error) from error
    return b"".join(out)


_16sB = Struct(">16sB")
_h = Struct(">h")
_hi = Struct(">hi")
_hiB = Struct(">hiB")
_hii = Struct(">hii")
_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ihqq = Struct(">ihqq")
_ihqqq = Struct(">ihqqq")
_ihqqqB = Struct(">ihqqqB")
_ihqqqi = Struct(">ihqqqi")
_ii = Struct(">ii")
_iiB = Struct(">iiB")
_iix = Struct(">iix")


def _read_partition_produce_data(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[PartitionProduceData], int]:
    items: list[PartitionProduceData] = []
    if version >= 9:
        for _ in range(number):
            item = new(PartitionProduceData)
            item.index, length = _iB.unpack_from(buffer, position)
            position += 5
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.records = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("PartitionProduceData.records", length, end - position)
                item.records = buffer[position:stop]
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "PartitionProduceData")
            items.append(item)
    else:
        for _ in range(number):
            item = new(PartitionProduceData)
            item.index, length = _ii.unpack_from(buffer, position)
            position += 8
            if length == -1:
                item.records = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("PartitionProduceData.records", length, end - position)
                item.records = buffer[position:stop]
                position = stop
            items.append(item)
    return items, position


def _write_partition_produce_data(
    out: list[Buffer], items: Sequence[PartitionProduceData], version: int,
) -> None:
    if version >= 9:
        for item in items:
            out.append(_i.pack(item.index))
            if item.records is None:
                out.append(b"\0")
            else:
                records = item.records
                length = len(records) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(records)
            out.append(b"\0")
    else:
        for item in items:
            records = b"" if item.records is None else item.records
            out.append(_ii.pack(item.index, -1 if item.records is None else len(records)))
            out.append(records)


def _read_topic_produce_data(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[TopicProduceData], int]:
    items: list[TopicProduceData] = []
    if version >= 9:
        for _ in range(number):
            item = new(TopicProduceData)
            if version <= 12:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("TopicProduceData.name", length, end - position)
                item.name = str(buffer[position:stop], "utf-8")
                position = stop
            else:
                item.name = ""
            if version >= 13:
                item.topic_id, count = _16sB.unpack_from(buffer, position)
                position += 17
            else:
                count = buffer[position]
                position += 1
                item.topic_id = ZERO_UUID
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 6:
                raise bad_length("TopicProduceData.partition_data", count, end - position)
            item.partition_data, position = _read_partition_produce_data(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "TopicProduceData")
            items.append(item)
    else:
        for _ in range(number):
            item = new(TopicProduceData)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("TopicProduceData.name", length, end - position)
            item.name = str(buffer[position:stop], "utf-8")
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 8:
                raise bad_length("TopicProduceData.partition_data", count, end - position)
            item.partition_data, position = _read_partition_produce_data(
                buffer, position, end, version, count,
            )
            item.topic_id = ZERO_UUID
            items.append(item)
    return items, position


def _write_topic_produce_data(out: list[Buffer], items: Sequence[TopicProduceData], version: int) -> None:
    if version >= 9:
        for item in items:
            if version <= 12:
                raw = item.name.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if version >= 13:
                out.append(item.topic_id)
            length = len(item.partition_data) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partition_data:
                _write_partition_produce_data(out, item.partition_data, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partition_data)))
            if item.partition_data:
                _write_partition_produce_data(out, item.partition_data, version)


def _read_produce_request(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[ProduceRequest], int]:
    items: list[ProduceRequest] = []
    if version >= 9:
        for _ in range(number):
            item = new(ProduceRequest)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.transactional_id = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("ProduceRequest.transactional_id", length, end - position)
                item.transactional_id = str(buffer[position:stop], "utf-8")
                position = stop
            item.acks, item.timeout_ms, count = _hiB.unpack_from(buffer, position)
            position += 7
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("ProduceRequest.topic_data", count, end - position)
            item.topic_data, position = _read_topic_produce_data(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "ProduceRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ProduceRequest)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            if length == -1:
                item.transactional_id = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("ProduceRequest.transactional_id", length, end - position)
                item.transactional_id = str(buffer[position:stop], "utf-8")
                position = stop
            item.acks, item.timeout_ms, count = _hii.unpack_from(buffer, position)
            position += 10
            if count < 0 or count > (end - position) // 6:
                raise bad_length("ProduceRequest.topic_data", count, end - position)
            item.topic_data, position = _read_topic_produce_data(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_produce_request(out: list[Buffer], items: Sequence[ProduceRequest], version: int) -> None:
    if version >= 9:
        for item in items:
            if item.transactional_id is None:
                out.append(b"\0")
            else:
                raw = item.transactional_id.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(_hi.pack(item.acks, item.timeout_ms))
            length = len(item.topic_data) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topic_data:
                _write_topic_produce_data(out, item.topic_data, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = b"" if item.transactional_id is None else item.transactional_id.encode()
            out.append(_h.pack(-1 if item.transactional_id is None else len(raw)))
            out.append(raw)
            out.append(_hii.pack(item.acks, item.timeout_ms, len(item.topic_data)))
            if item.topic_data:
                _write_topic_produce_data(out, item.topic_data, version)


def _read_batch_index_and_error_message(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[BatchIndexAndErrorMessage], int]:
    items: list[BatchIndexAndErrorMessage] = []
    if version >= 9:
        for _ in range(number):
            item = new(BatchIndexAndErrorMessage)
            item.batch_index, length = _iB.unpack_from(buffer, position)
            position += 5
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.batch_index_error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length(
                        "BatchIndexAndErrorMessage.batch_index_error_message", length, end - position,
                    )
                item.batch_index_error_message = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "BatchIndexAndErrorMessage")
            items.append(item)
    else:
        for _ in range(number):
            item = new(BatchIndexAndErrorMessage)
            item.batch_index, length = _ih.unpack_from(buffer, position)
            position += 6
            if length == -1:
                item.batch_index_error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length(
                        "BatchIndexAndErrorMessage.batch_index_error_message", length, end - position,
                    )
                item.batch_index_error_message = buffer[position:stop].decode()
                position = stop
            items.append(item)
    return items, position


def _write_batch_index_and_error_message(
    out: list[Buffer], items: Sequence[BatchIndexAndErrorMessage], version: int,
) -> None:
    if version >= 9:
        for item in items:
            out.append(_i.pack(item.batch_index))
            if item.batch_index_error_message is None:
                out.append(b"\0")
            else:
                raw = item.batch_index_error_message.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = b"" if item.batch_index_error_message is None else item.batch_index_error_message.encode()
            out.append(_ih.pack(item.batch_index, -1 if item.batch_index_error_message is None else len(raw)))
            out.append(raw)


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


def _read_partition_produce_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[PartitionProduceResponse], int]:
    items: list[PartitionProduceResponse] = []
    if version >= 9:
        for _ in range(number):
            item = new(PartitionProduceResponse)
            (
                item.index, item.error_code, item.base_offset, item.log_append_time_ms, item.log_start_offset,
                count,
            ) = _ihqqqB.unpack_from(buffer, position)
            position += 31
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 6:
                raise bad_length("PartitionProduceResponse.record_errors", count, end - position)
            item.record_errors, position = _read_batch_index_and_error_message(
                buffer, position, end, version, count,
            )
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("PartitionProduceResponse.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            item.current_leader = None
            if tags:
                if tags > 127:
                    tags, position = long_uvarint(buffer, position, tags)
                tag = -1
                for _ in range(tags):
                    tag, position, stop_tag = read_tag(buffer, position, end, tag, "PartitionProduceResponse")
                    if tag == 0 and version >= 10:
                        (
                            item.current_leader, ), position = _read_leader_id_and_epoch(buffer, position,
                            end, version, 1,
                        )
                    else:
                        position = stop_tag
                    if position != stop_tag:
                        raise bad_tag_size("PartitionProduceResponse", tag)
            items.append(item)
    else:
        for _ in range(number):
            item = new(PartitionProduceResponse)
            if version >= 8:
                (
                    item.index, item.error_code, item.base_offset, item.log_append_time_ms,
                    item.log_start_offset, count,
                ) = _ihqqqi.unpack_from(buffer, position)
                position += 34
            elif version >= 5:
                (
                    item.index, item.error_code, item.base_offset, item.log_append_time_ms,
                    item.log_start_offset,
                ) = _ihqqq.unpack_from(buffer, position)
                position += 30
            else:
                (
                    item.index, item.error_code, item.base_offset, item.log_append_time_ms,
                ) = _ihqq.unpack_from(buffer, position)
                position += 22
                item.log_start_offset = -1
            if version >= 8:
                if count < 0 or count > (end - position) // 6:
                    raise bad_length("PartitionProduceResponse.record_errors", count, end - position)
                item.record_errors, position = _read_batch_index_and_error_message(
                    buffer, position, end, version, count,
                )
            else:
                item.record_errors = []
            if version >= 8:
                (length,) = _h.unpack_from(buffer, position)
                position += 2
                if length == -1:
                    item.error_message = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("PartitionProduceResponse.error_message", length, end - position)
                    item.error_message = buffer[position:stop].decode()
                    position = stop
            else:
                item.error_message = None
            item.current_leader = None
            items.append(item)
    return items, position


def _write_partition_produce_response(
    out: list[Buffer], items: Sequence[PartitionProduceResponse], version: int,
) -> None:
    if version >= 9:
        for item in items:
            out.append(
                _ihqqq.pack(
                    item.index, item.error_code, item.base_offset, item.log_append_time_ms,
                    item.log_start_offset,
                )
            )
            length = len(item.record_errors) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.record_errors:
                _write_batch_index_and_error_message(out, item.record_errors, version)
            if item.error_message is None:
                out.append(b"\0")
            else:
                raw = item.error_message.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            tagged: list[Buffer] = []
            value: list[Buffer]
            if (
                version >= 10
                and item.current_leader is not None
                and item.current_leader != LeaderIdAndEpoch()
            ):
                value = []
                _write_leader_id_and_epoch(value, (item.current_leader,), version)
                tagged.append(tagged_field(0, value))
            out.append(SHORT_UVARINTS[len(tagged)])
            out += tagged
    else:
        for item in items:
            if version >= 5:
                out.append(
                    _ihqqq.pack(
                        item.index, item.error_code, item.base_offset, item.log_append_time_ms,
                        item.log_start_offset,
                    )
                )
            else:
                out.append(_ihqq.pack(item.index, item.error_code, item.base_offset, item.log_append_time_ms))
            if version >= 8:
                out.append(_i.pack(len(item.record_errors)))
                if item.record_errors:
                    _write_batch_index_and_error_message(out, item.record_errors, version)
            if version >= 8:
                raw = b"" if item.error_message is None else item.error_message.encode()
                out.append(_h.pack(-1 if item.error_message is None else len(raw)))
                out.append(raw)


def _read_topic_produce_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TopicProduceResponse], int]:
    items: list[TopicProduceResponse] = []
    if version >= 9:
        for _ in range(number):
            item = new(TopicProduceResponse)
            if version <= 12:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("TopicProduceResponse.name", length, end - position)
                item.name = buffer[position:stop].decode()
                position = stop
            else:
                item.name = ""
            if version >= 13:
                item.topic_id, count = _16sB.unpack_from(buffer, position)
                position += 17
            else:
                count = buffer[position]
                position += 1
                item.topic_id = ZERO_UUID
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 33:
                raise bad_length("TopicProduceResponse.partition_responses", count, end - position)
            item.partition_responses, position = _read_partition_produce_response(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "TopicProduceResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(TopicProduceResponse)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("TopicProduceResponse.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 22:
                raise bad_length("TopicProduceResponse.partition_responses", count, end - position)
            item.partition_responses, position = _read_partition_produce_response(
                buffer, position, end, version, count,
            )
            item.topic_id = ZERO_UUID
            items.append(item)
    return items, position


def _write_topic_produce_response(
    out: list[Buffer], items: Sequence[TopicProduceResponse], version: int,
) -> None:
    if version >= 9:
        for item in items:
            if version <= 12:
                raw = item.name.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if version >= 13:
                out.append(item.topic_id)
            length = len(item.partition_responses) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partition_responses:
                _write_partition_produce_response(out, item.partition_responses, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partition_responses)))
            if item.partition_responses:
                _write_partition_produce_response(out, item.partition_responses, version)


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


def _read_produce_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ProduceResponse], int]:
    items: list[ProduceResponse] = []
    if version >= 9:
        for _ in range(number):
            item = new(ProduceResponse)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("ProduceResponse.responses", count, end - position)
            item.responses, position = _read_topic_produce_response(buffer, position, end, version, count)
            item.throttle_time_ms, tags = _iB.unpack_from(buffer, position)
            position += 5
            item.node_endpoints = []
            if tags:
                if tags > 127:
                    tags, position = long_uvarint(buffer, position, tags)
                tag = -1
                for _ in range(tags):
                    tag, position, stop_tag = read_tag(buffer, position, end, tag, "ProduceResponse")
                    if tag == 0 and version >= 10:
                        count = buffer[position]
                        position += 1
                        if count > 127:
                            count, position = long_uvarint(buffer, position, count)
                        count -= 1
                        if count < 0 or count > (end - position) // 11:
                            raise bad_length("ProduceResponse.node_endpoints", count, end - position)
                        item.node_endpoints, position = _read_node_endpoint(
                            buffer, position, end, version, count,
                        )
                    else:
                        position = stop_tag
                    if position != stop_tag:
                        raise bad_tag_size("ProduceResponse", tag)
            items.append(item)
    else:
        for _ in range(number):
            item = new(ProduceResponse)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 6:
                raise bad_length("ProduceResponse.responses", count, end - position)
            item.responses, position = _read_topic_produce_response(buffer, position, end, version, count)
            (item.throttle_time_ms,) = _i.unpack_from(buffer, position)
            position += 4
            item.node_endpoints = []
            items.append(item)
    return items, position


def _write_produce_response(out: list[Buffer], items: Sequence[ProduceResponse], version: int) -> None:
    if version >= 9:
        for item in items:
            length = len(item.responses) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.responses:
                _write_topic_produce_response(out, item.responses, version)
            out.append(_i.pack(item.throttle_time_ms))
            tagged: list[Buffer] = []
            value: list[Buffer]
            if version >= 10 and item.node_endpoints:
                value = []
                length = len(item.node_endpoints) + 1
                value.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.node_endpoints:
                    _write_node_endpoint(value, item.node_endpoints, version)
                tagged.append(tagged_field(0, value))
            out.append(SHORT_UVARINTS[len(tagged)])
            out += tagged
    else:
        for item in items:
            out.append(_i.pack(len(item.responses)))
            if item.responses:
                _write_topic_produce_response(out, item.responses, version)
            out.append(_i.pack(item.throttle_time_ms))
