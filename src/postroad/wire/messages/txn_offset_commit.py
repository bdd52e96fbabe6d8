# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""TxnOffsetCommit (28), versions 0 to 5."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final

from postroad.wire.primitives import (
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

KEY: Final = 28
NAME: Final = "TxnOffsetCommit"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 5
FLEXIBLE_FROM: Final = 3

new = object.__new__


class TxnOffsetCommitRequestPartition(Message):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int  # v2+
    committed_metadata: str | None

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class TxnOffsetCommitRequestTopic(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[TxnOffsetCommitRequestPartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[TxnOffsetCommitRequestPartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class TxnOffsetCommitRequest(Message):
    __slots__ = (
        "transactional_id", "group_id", "producer_id", "producer_epoch", "generation_id", "member_id",
        "group_instance_id", "topics",
    )
    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int  # v3+
    member_id: str  # v3+
    group_instance_id: str | None  # v3+
    topics: list[TxnOffsetCommitRequestTopic]

    def __init__(
        self,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequestTopic] | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics = [] if topics is None else topics


class TxnOffsetCommitResponsePartition(Message):
    __slots__ = ("partition_index", "error_code")
    partition_index: int
    error_code: int

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class TxnOffsetCommitResponseTopic(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[TxnOffsetCommitResponsePartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[TxnOffsetCommitResponsePartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class TxnOffsetCommitResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")
    throttle_time_ms: int
    topics: list[TxnOffsetCommitResponseTopic]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponseTopic] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics


def decode_request(body: Buffer, version: int) -> TxnOffsetCommitRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_txn_offset_commit_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("TxnOffsetCommit request", version, error) from None
    return items[0]


def encode_request(request: TxnOffsetCommitRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_txn_offset_commit_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("TxnOffsetCommit request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> TxnOffsetCommitResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_txn_offset_commit_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("TxnOffsetCommit response", version, error) from None
    return items[0]


def encode_response(response: TxnOffsetCommitResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_txn_offset_commit_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("TxnOffsetCommit response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ihx = Struct(">ihx")
_ii = Struct(">ii")
_iqh = Struct(">iqh")
_iqi = Struct(">iqi")
_iqiB = Struct(">iqiB")
_iqih = Struct(">iqih")
_qhi = Struct(">qhi")
_qhiB = Struct(">qhiB")


def _read_txn_offset_commit_request_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TxnOffsetCommitRequestPartition], int]:
    items: list[TxnOffsetCommitRequestPartition] = []
    if version >= 3:
        for _ in range(number):
            item = new(TxnOffsetCommitRequestPartition)
            (
                item.partition_index, item.committed_offset, item.committed_leader_epoch, length,
            ) = _iqiB.unpack_from(buffer, position)
            position += 17
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.committed_metadata = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length(
                        "TxnOffsetCommitRequestPartition.committed_metadata", length, end - position,
                    )
                item.committed_metadata = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "TxnOffsetCommitRequestPartition")
            items.append(item)
    else:
        for _ in range(number):
            item = new(TxnOffsetCommitRequestPartition)
            if version >= 2:
                (
                    item.partition_index, item.committed_offset, item.committed_leader_epoch, length,
                ) = _iqih.unpack_from(buffer, position)
                position += 18
            else:
                item.partition_index, item.committed_offset, length = _iqh.unpack_from(buffer, position)
                position += 14
                item.committed_leader_epoch = -1
            if length == -1:
                item.committed_metadata = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length(
                        "TxnOffsetCommitRequestPartition.committed_metadata", length, end - position,
                    )
                item.committed_metadata = buffer[position:stop].decode()
                position = stop
            items.append(item)
    return items, position


def _write_txn_offset_commit_request_partition(
    out: list[Buffer], items: Sequence[TxnOffsetCommitRequestPartition], version: int,
) -> None:
    if version >= 3:
        for item in items:
            out.append(_iqi.pack(item.partition_index, item.committed_offset, item.committed_leader_epoch))
            if item.committed_metadata is None:
                out.append(b"\0")
            else:
                raw = item.committed_metadata.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = b"" if item.committed_metadata is None else item.committed_metadata.encode()
            if version >= 2:
                out.append(
                    _iqih.pack(
                        item.partition_index, item.committed_offset, item.committed_leader_epoch,
                        -1 if item.committed_metadata is None else len(raw),
                    )
                )
            else:
                out.append(
                    _iqh.pack(
                        item.partition_index, item.committed_offset,
                        -1 if item.committed_metadata is None else len(raw),
                    )
                )
            out.append(raw)


def _read_txn_offset_commit_request_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TxnOffsetCommitRequestTopic], int]:
    items: list[TxnOffsetCommitRequestTopic] = []
    if version >= 3:
        for _ in range(number):
            item = new(TxnOffsetCommitRequestTopic)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("TxnOffsetCommitRequestTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 18:
                raise bad_length("TxnOffsetCommitRequestTopic.partitions", count, end - position)
            item.partitions, position = _read_txn_offset_commit_request_partition(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "TxnOffsetCommitRequestTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(TxnOffsetCommitRequestTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("TxnOffsetCommitRequestTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 14:
                raise bad_length("TxnOffsetCommitRequestTopic.partitions", count, end - position)
            item.partitions, position = _read_txn_offset_commit_request_partition(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_txn_offset_commit_request_topic(
    out: list[Buffer], items: Sequence[TxnOffsetCommitRequestTopic], version: int,
) -> None:
    if version >= 3:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                _write_txn_offset_commit_request_partition(out, item.partitions, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                _write_txn_offset_commit_request_partition(out, item.partitions, version)


def _read_txn_offset_commit_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TxnOffsetCommitRequest], int]:
    items: list[TxnOffsetCommitRequest] = []
    if version >= 3:
        for _ in range(number):
            item = new(TxnOffsetCommitRequest)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("TxnOffsetCommitRequest.transactional_id", length, end - position)
            item.transactional_id = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("TxnOffsetCommitRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            (
                item.producer_id, item.producer_epoch, item.generation_id, length,
            ) = _qhiB.unpack_from(buffer, position)
            position += 15
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("TxnOffsetCommitRequest.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.group_instance_id = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("TxnOffsetCommitRequest.group_instance_id", length, end - position)
                item.group_instance_id = buffer[position:stop].decode()
                position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("TxnOffsetCommitRequest.topics", count, end - position)
            item.topics, position = _read_txn_offset_commit_request_topic(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "TxnOffsetCommitRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(TxnOffsetCommitRequest)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("TxnOffsetCommitRequest.transactional_id", length, end - position)
            item.transactional_id = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("TxnOffsetCommitRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            item.producer_id, item.producer_epoch, count = _qhi.unpack_from(buffer, position)
            position += 14
            if count < 0 or count > (end - position) // 6:
                raise bad_length("TxnOffsetCommitRequest.topics", count, end - position)
            item.topics, position = _read_txn_offset_commit_request_topic(
                buffer, position, end, version, count,
            )
            item.generation_id = -1
            item.member_id = ""
            item.group_instance_id = None
            items.append(item)
    return items, position


def _write_txn_offset_commit_request(
    out: list[Buffer], items: Sequence[TxnOffsetCommitRequest], version: int,
) -> None:
    if version >= 3:
        for item in items:
            raw = item.transactional_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            raw = item.group_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_qhi.pack(item.producer_id, item.producer_epoch, item.generation_id))
            raw = item.member_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            if item.group_instance_id is None:
                out.append(b"\0")
            else:
                raw = item.group_instance_id.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_txn_offset_commit_request_topic(out, item.topics, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.transactional_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = item.group_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_qhi.pack(item.producer_id, item.producer_epoch, len(item.topics)))
            if item.topics:
                _write_txn_offset_commit_request_topic(out, item.topics, version)


def _read_txn_offset_commit_response_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TxnOffsetCommitResponsePartition], int]:
    items: list[TxnOffsetCommitResponsePartition] = []
    if version >= 3:
        for _ in range(number):
            item = new(TxnOffsetCommitResponsePartition)
            item.partition_index, item.error_code, tags = _ihB.unpack_from(buffer, position)
            position += 7
            if tags:
                position = skip_tags(buffer, position, end, tags, "TxnOffsetCommitResponsePartition")
            items.append(item)
    else:
        for _ in range(number):
            item = new(TxnOffsetCommitResponsePartition)
            item.partition_index, item.error_code = _ih.unpack_from(buffer, position)
            position += 6
            items.append(item)
    return items, position


def _write_txn_offset_commit_response_partition(
    out: list[Buffer], items: Sequence[TxnOffsetCommitResponsePartition], version: int,
) -> None:
    if version >= 3:
        for item in items:
            out.append(_ihx.pack(item.partition_index, item.error_code))
    else:
        for item in items:
            out.append(_ih.pack(item.partition_index, item.error_code))


def _read_txn_offset_commit_response_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TxnOffsetCommitResponseTopic], int]:
    items: list[TxnOffsetCommitResponseTopic] = []
    if version >= 3:
        for _ in range(number):
            item = new(TxnOffsetCommitResponseTopic)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("TxnOffsetCommitResponseTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 7:
                raise bad_length("TxnOffsetCommitResponseTopic.partitions", count, end - position)
            item.partitions, position = _read_txn_offset_commit_response_partition(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "TxnOffsetCommitResponseTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(TxnOffsetCommitResponseTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("TxnOffsetCommitResponseTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 6:
                raise bad_length("TxnOffsetCommitResponseTopic.partitions", count, end - position)
            item.partitions, position = _read_txn_offset_commit_response_partition(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_txn_offset_commit_response_topic(
    out: list[Buffer], items: Sequence[TxnOffsetCommitResponseTopic], version: int,
) -> None:
    if version >= 3:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                _write_txn_offset_commit_response_partition(out, item.partitions, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                _write_txn_offset_commit_response_partition(out, item.partitions, version)


def _read_txn_offset_commit_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TxnOffsetCommitResponse], int]:
    items: list[TxnOffsetCommitResponse] = []
    if version >= 3:
        for _ in range(number):
            item = new(TxnOffsetCommitResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("TxnOffsetCommitResponse.topics", count, end - position)
            item.topics, position = _read_txn_offset_commit_response_topic(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "TxnOffsetCommitResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(TxnOffsetCommitResponse)
            item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
            position += 8
            if count < 0 or count > (end - position) // 6:
                raise bad_length("TxnOffsetCommitResponse.topics", count, end - position)
            item.topics, position = _read_txn_offset_commit_response_topic(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_txn_offset_commit_response(
    out: list[Buffer], items: Sequence[TxnOffsetCommitResponse], version: int,
) -> None:
    if version >= 3:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_txn_offset_commit_response_topic(out, item.topics, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_ii.pack(item.throttle_time_ms, len(item.topics)))
            if item.topics:
                _write_txn_offset_commit_response_topic(out, item.topics, version)
