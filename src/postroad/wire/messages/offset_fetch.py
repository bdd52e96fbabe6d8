# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""OffsetFetch (9), versions 1 to 10."""

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
    must_not_be_null,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 9
NAME: Final = "OffsetFetch"
MIN_VERSION: Final = 1
MAX_VERSION: Final = 10
FLEXIBLE_FROM: Final = 6

new = object.__new__


class OffsetFetchRequestTopics(Message):
    __slots__ = ("name", "topic_id", "partition_indexes")
    name: str  # v8–v9
    topic_id: bytes  # v10+
    partition_indexes: list[int]

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_indexes: list[int] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_indexes = [] if partition_indexes is None else partition_indexes


class OffsetFetchRequestGroup(Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "topics")
    group_id: str
    member_id: str | None  # v9+
    member_epoch: int  # v9+
    topics: list[OffsetFetchRequestTopics] | None

    def __init__(
        self,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics = topics


class OffsetFetchRequestTopic(Message):
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


class OffsetFetchRequest(Message):
    __slots__ = ("group_id", "groups", "topics", "require_stable")
    group_id: str  # v1–v7
    groups: list[OffsetFetchRequestGroup]  # v8+
    topics: list[OffsetFetchRequestTopic] | None  # v1–v7, null in v2–v7
    require_stable: bool  # v7+

    def __init__(
        self,
        group_id: str = "",
        groups: list[OffsetFetchRequestGroup] | None = None,
        topics: list[OffsetFetchRequestTopic] | None = None,
        require_stable: bool = False,
    ) -> None:
        self.group_id = group_id
        self.groups = [] if groups is None else groups
        self.topics = topics
        self.require_stable = require_stable


class OffsetFetchResponsePartition(Message):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int  # v5–v7
    metadata: str | None
    error_code: int

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = None,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopic(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[OffsetFetchResponsePartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class OffsetFetchResponsePartitions(Message):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = None,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopics(Message):
    __slots__ = ("name", "topic_id", "partitions")
    name: str  # v8–v9
    topic_id: bytes  # v10+
    partitions: list[OffsetFetchResponsePartitions]

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetFetchResponsePartitions] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class OffsetFetchResponseGroup(Message):
    __slots__ = ("group_id", "topics", "error_code")
    group_id: str
    topics: list[OffsetFetchResponseTopics]
    error_code: int

    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetFetchResponseTopics] | None = None,
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is None else topics
        self.error_code = error_code


class OffsetFetchResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "groups", "error_code")
    throttle_time_ms: int  # v3+
    topics: list[OffsetFetchResponseTopic]  # v1–v7
    groups: list[OffsetFetchResponseGroup]  # v8+
    error_code: int  # v2–v7

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponseTopic] | None = None,
        groups: list[OffsetFetchResponseGroup] | None = None,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics
        self.groups = [] if groups is None else groups
        self.error_code = error_code


def decode_request(body: Buffer, version: int) -> OffsetFetchRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_offset_fetch_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("OffsetFetch request", version, error) from None
    return items[0]


def encode_request(request: OffsetFetchRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_offset_fetch_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("OffsetFetch request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> OffsetFetchResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_offset_fetch_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("OffsetFetch response", version, error) from None
    return items[0]


def encode_response(response: OffsetFetchResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_offset_fetch_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("OffsetFetch response", version, error) from error
    return b"".join(out)


_16sB = Struct(">16sB")
_Zx = Struct(">?x")
_BB = Struct(">BB")
_h = Struct(">h")
_hB = Struct(">hB")
_hx = Struct(">hx")
_i = Struct(">i")
_iB = Struct(">iB")
_ii = Struct(">ii")
_iqh = Struct(">iqh")
_iqi = Struct(">iqi")
_iqiB = Struct(">iqiB")
_iqih = Struct(">iqih")


def _read_offset_fetch_request_topics(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetFetchRequestTopics], int]:
    items: list[OffsetFetchRequestTopics] = []
    for _ in range(number):
        item = new(OffsetFetchRequestTopics)
        if version <= 9:
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetFetchRequestTopics.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
        else:
            item.name = ""
        if version >= 10:
            item.topic_id, count = _16sB.unpack_from(buffer, position)
            position += 17
        else:
            count = buffer[position]
            position += 1
            item.topic_id = ZERO_UUID
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("OffsetFetchRequestTopics.partition_indexes", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.partition_indexes = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "OffsetFetchRequestTopics")
        items.append(item)
    return items, position


def _write_offset_fetch_request_topics(
    out: list[Buffer], items: Sequence[OffsetFetchRequestTopics], version: int,
) -> None:
    for item in items:
        if version <= 9:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        if version >= 10:
            out.append(item.topic_id)
        length = len(item.partition_indexes) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partition_indexes:
            count = len(item.partition_indexes)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.partition_indexes))
        out.append(b"\0")


def _read_offset_fetch_request_group(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetFetchRequestGroup], int]:
    items: list[OffsetFetchRequestGroup] = []
    for _ in range(number):
        item = new(OffsetFetchRequestGroup)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("OffsetFetchRequestGroup.group_id", length, end - position)
        item.group_id = buffer[position:stop].decode()
        position = stop
        if version >= 9:
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
                    raise bad_length("OffsetFetchRequestGroup.member_id", length, end - position)
                item.member_id = buffer[position:stop].decode()
                position = stop
        else:
            item.member_id = None
        if version >= 9:
            item.member_epoch, count = _iB.unpack_from(buffer, position)
            position += 5
        else:
            count = buffer[position]
            position += 1
            item.member_epoch = -1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count == -1:
            item.topics = None
        else:
            if count < 0 or count > (end - position) // 3:
                raise bad_length("OffsetFetchRequestGroup.topics", count, end - position)
            item.topics, position = _read_offset_fetch_request_topics(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "OffsetFetchRequestGroup")
        items.append(item)
    return items, position


def _write_offset_fetch_request_group(
    out: list[Buffer], items: Sequence[OffsetFetchRequestGroup], version: int,
) -> None:
    for item in items:
        raw = item.group_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        if version >= 9:
            if item.member_id is None:
                out.append(b"\0")
            else:
                raw = item.member_id.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
        if version >= 9:
            out.append(_i.pack(item.member_epoch))
        if item.topics is None:
            out.append(b"\0")
        else:
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_offset_fetch_request_topics(out, item.topics, version)
        out.append(b"\0")


def _read_offset_fetch_request_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetFetchRequestTopic], int]:
    items: list[OffsetFetchRequestTopic] = []
    if version >= 6:
        for _ in range(number):
            item = new(OffsetFetchRequestTopic)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetFetchRequestTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("OffsetFetchRequestTopic.partition_indexes", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.partition_indexes = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetFetchRequestTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetFetchRequestTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetFetchRequestTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 4:
                raise bad_length("OffsetFetchRequestTopic.partition_indexes", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.partition_indexes = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            items.append(item)
    return items, position


def _write_offset_fetch_request_topic(
    out: list[Buffer], items: Sequence[OffsetFetchRequestTopic], version: int,
) -> None:
    if version >= 6:
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
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partition_indexes)))
            if item.partition_indexes:
                count = len(item.partition_indexes)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                out.append(numbers.pack(*item.partition_indexes))


def _read_offset_fetch_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetFetchRequest], int]:
    items: list[OffsetFetchRequest] = []
    if version >= 6:
        for _ in range(number):
            item = new(OffsetFetchRequest)
            if version <= 7:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("OffsetFetchRequest.group_id", length, end - position)
                item.group_id = buffer[position:stop].decode()
                position = stop
            else:
                item.group_id = ""
            if version >= 8:
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_uvarint(buffer, position, count)
                count -= 1
                if count < 0 or count > (end - position) // 3:
                    raise bad_length("OffsetFetchRequest.groups", count, end - position)
                item.groups, position = _read_offset_fetch_request_group(
                    buffer, position, end, version, count,
                )
            else:
                item.groups = []
            if version <= 7:
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_uvarint(buffer, position, count)
                count -= 1
                if count == -1:
                    item.topics = None
                else:
                    if count < 0 or count > (end - position) // 3:
                        raise bad_length("OffsetFetchRequest.topics", count, end - position)
                    item.topics, position = _read_offset_fetch_request_topic(
                        buffer, position, end, version, count,
                    )
            else:
                item.topics = None
            if version >= 7:
                require_stable, tags = _BB.unpack_from(buffer, position)
                position += 2
                if require_stable > 1:
                    raise bad_bool("OffsetFetchRequest.require_stable", require_stable)
                item.require_stable = require_stable == 1
            else:
                tags = buffer[position]
                position += 1
                item.require_stable = False
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetFetchRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetFetchRequest)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetFetchRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count == -1 and version >= 2:
                item.topics = None
            else:
                if count < 0 or count > (end - position) // 6:
                    raise bad_length("OffsetFetchRequest.topics", count, end - position)
                item.topics, position = _read_offset_fetch_request_topic(
                    buffer, position, end, version, count,
                )
            item.groups = []
            item.require_stable = False
            items.append(item)
    return items, position


def _write_offset_fetch_request(out: list[Buffer], items: Sequence[OffsetFetchRequest], version: int) -> None:
    if version >= 6:
        for item in items:
            if version <= 7:
                raw = item.group_id.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if version >= 8:
                length = len(item.groups) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.groups:
                    _write_offset_fetch_request_group(out, item.groups, version)
            if version <= 7:
                if item.topics is None:
                    out.append(b"\0")
                else:
                    length = len(item.topics) + 1
                    out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                    if item.topics:
                        _write_offset_fetch_request_topic(out, item.topics, version)
            if version >= 7:
                out.append(_Zx.pack(item.require_stable))
            else:
                out.append(b"\0")
    else:
        for item in items:
            raw = item.group_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            if item.topics is None and version <= 1:
                raise must_not_be_null("OffsetFetchRequest.topics", version)
            out.append(_i.pack(-1 if item.topics is None else len(item.topics)))
            if item.topics:
                _write_offset_fetch_request_topic(out, item.topics, version)


def _read_offset_fetch_response_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetFetchResponsePartition], int]:
    items: list[OffsetFetchResponsePartition] = []
    if version >= 6:
        for _ in range(number):
            item = new(OffsetFetchResponsePartition)
            (
                item.partition_index, item.committed_offset, item.committed_leader_epoch, length,
            ) = _iqiB.unpack_from(buffer, position)
            position += 17
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.metadata = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("OffsetFetchResponsePartition.metadata", length, end - position)
                item.metadata = buffer[position:stop].decode()
                position = stop
            item.error_code, tags = _hB.unpack_from(buffer, position)
            position += 3
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetFetchResponsePartition")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetFetchResponsePartition)
            if version >= 5:
                (
                    item.partition_index, item.committed_offset, item.committed_leader_epoch, length,
                ) = _iqih.unpack_from(buffer, position)
                position += 18
            else:
                item.partition_index, item.committed_offset, length = _iqh.unpack_from(buffer, position)
                position += 14
                item.committed_leader_epoch = -1
            if length == -1:
                item.metadata = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("OffsetFetchResponsePartition.metadata", length, end - position)
                item.metadata = buffer[position:stop].decode()
                position = stop
            (item.error_code,) = _h.unpack_from(buffer, position)
            position += 2
            items.append(item)
    return items, position


def _write_offset_fetch_response_partition(
    out: list[Buffer], items: Sequence[OffsetFetchResponsePartition], version: int,
) -> None:
    if version >= 6:
        for item in items:
            out.append(_iqi.pack(item.partition_index, item.committed_offset, item.committed_leader_epoch))
            if item.metadata is None:
                out.append(b"\0")
            else:
                raw = item.metadata.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(_hx.pack(item.error_code))
    else:
        for item in items:
            raw = b"" if item.metadata is None else item.metadata.encode()
            if version >= 5:
                out.append(
                    _iqih.pack(
                        item.partition_index, item.committed_offset, item.committed_leader_epoch,
                        -1 if item.metadata is None else len(raw),
                    )
                )
            else:
                out.append(
                    _iqh.pack(
                        item.partition_index, item.committed_offset,
                        -1 if item.metadata is None else len(raw),
                    )
                )
            out.append(raw)
            out.append(_h.pack(item.error_code))


def _read_offset_fetch_response_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetFetchResponseTopic], int]:
    items: list[OffsetFetchResponseTopic] = []
    if version >= 6:
        for _ in range(number):
            item = new(OffsetFetchResponseTopic)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetFetchResponseTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 20:
                raise bad_length("OffsetFetchResponseTopic.partitions", count, end - position)
            item.partitions, position = _read_offset_fetch_response_partition(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetFetchResponseTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetFetchResponseTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetFetchResponseTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 16:
                raise bad_length("OffsetFetchResponseTopic.partitions", count, end - position)
            item.partitions, position = _read_offset_fetch_response_partition(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_offset_fetch_response_topic(
    out: list[Buffer], items: Sequence[OffsetFetchResponseTopic], version: int,
) -> None:
    if version >= 6:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                _write_offset_fetch_response_partition(out, item.partitions, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                _write_offset_fetch_response_partition(out, item.partitions, version)


def _read_offset_fetch_response_partitions(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetFetchResponsePartitions], int]:
    items: list[OffsetFetchResponsePartitions] = []
    for _ in range(number):
        item = new(OffsetFetchResponsePartitions)
        (
            item.partition_index, item.committed_offset, item.committed_leader_epoch, length,
        ) = _iqiB.unpack_from(buffer, position)
        position += 17
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.metadata = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetFetchResponsePartitions.metadata", length, end - position)
            item.metadata = buffer[position:stop].decode()
            position = stop
        item.error_code, tags = _hB.unpack_from(buffer, position)
        position += 3
        if tags:
            position = skip_tags(buffer, position, end, tags, "OffsetFetchResponsePartitions")
        items.append(item)
    return items, position


def _write_offset_fetch_response_partitions(
    out: list[Buffer], items: Sequence[OffsetFetchResponsePartitions], version: int,
) -> None:
    for item in items:
        out.append(_iqi.pack(item.partition_index, item.committed_offset, item.committed_leader_epoch))
        if item.metadata is None:
            out.append(b"\0")
        else:
            raw = item.metadata.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(_hx.pack(item.error_code))


def _read_offset_fetch_response_topics(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetFetchResponseTopics], int]:
    items: list[OffsetFetchResponseTopics] = []
    for _ in range(number):
        item = new(OffsetFetchResponseTopics)
        if version <= 9:
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("OffsetFetchResponseTopics.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
        else:
            item.name = ""
        if version >= 10:
            item.topic_id, count = _16sB.unpack_from(buffer, position)
            position += 17
        else:
            count = buffer[position]
            position += 1
            item.topic_id = ZERO_UUID
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 20:
            raise bad_length("OffsetFetchResponseTopics.partitions", count, end - position)
        item.partitions, position = _read_offset_fetch_response_partitions(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "OffsetFetchResponseTopics")
        items.append(item)
    return items, position


def _write_offset_fetch_response_topics(
    out: list[Buffer], items: Sequence[OffsetFetchResponseTopics], version: int,
) -> None:
    for item in items:
        if version <= 9:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        if version >= 10:
            out.append(item.topic_id)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            _write_offset_fetch_response_partitions(out, item.partitions, version)
        out.append(b"\0")


def _read_offset_fetch_response_group(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetFetchResponseGroup], int]:
    items: list[OffsetFetchResponseGroup] = []
    for _ in range(number):
        item = new(OffsetFetchResponseGroup)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("OffsetFetchResponseGroup.group_id", length, end - position)
        item.group_id = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 3:
            raise bad_length("OffsetFetchResponseGroup.topics", count, end - position)
        item.topics, position = _read_offset_fetch_response_topics(buffer, position, end, version, count)
        item.error_code, tags = _hB.unpack_from(buffer, position)
        position += 3
        if tags:
            position = skip_tags(buffer, position, end, tags, "OffsetFetchResponseGroup")
        items.append(item)
    return items, position


def _write_offset_fetch_response_group(
    out: list[Buffer], items: Sequence[OffsetFetchResponseGroup], version: int,
) -> None:
    for item in items:
        raw = item.group_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_offset_fetch_response_topics(out, item.topics, version)
        out.append(_hx.pack(item.error_code))


def _read_offset_fetch_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[OffsetFetchResponse], int]:
    items: list[OffsetFetchResponse] = []
    if version >= 6:
        for _ in range(number):
            item = new(OffsetFetchResponse)
            if version >= 8:
                (item.throttle_time_ms,) = _i.unpack_from(buffer, position)
                position += 4
            else:
                item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
                position += 5
            if version <= 7:
                if count > 127:
                    count, position = long_uvarint(buffer, position, count)
                count -= 1
                if count < 0 or count > (end - position) // 3:
                    raise bad_length("OffsetFetchResponse.topics", count, end - position)
                item.topics, position = _read_offset_fetch_response_topic(
                    buffer, position, end, version, count,
                )
            else:
                item.topics = []
            if version >= 8:
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_uvarint(buffer, position, count)
                count -= 1
                if count < 0 or count > (end - position) // 5:
                    raise bad_length("OffsetFetchResponse.groups", count, end - position)
                item.groups, position = _read_offset_fetch_response_group(
                    buffer, position, end, version, count,
                )
            else:
                item.groups = []
            if version >= 8:
                tags = buffer[position]
                position += 1
                item.error_code = 0
            else:
                item.error_code, tags = _hB.unpack_from(buffer, position)
                position += 3
            if tags:
                position = skip_tags(buffer, position, end, tags, "OffsetFetchResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(OffsetFetchResponse)
            if version >= 3:
                item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
                position += 8
            else:
                (count,) = _i.unpack_from(buffer, position)
                position += 4
                item.throttle_time_ms = 0
            if count < 0 or count > (end - position) // 6:
                raise bad_length("OffsetFetchResponse.topics", count, end - position)
            item.topics, position = _read_offset_fetch_response_topic(buffer, position, end, version, count)
            if version >= 2:
                (item.error_code,) = _h.unpack_from(buffer, position)
                position += 2
            else:
                item.error_code = 0
            item.groups = []
            items.append(item)
    return items, position


def _write_offset_fetch_response(
    out: list[Buffer], items: Sequence[OffsetFetchResponse], version: int,
) -> None:
    if version >= 6:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            if version <= 7:
                length = len(item.topics) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.topics:
                    _write_offset_fetch_response_topic(out, item.topics, version)
            if version >= 8:
                length = len(item.groups) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.groups:
                    _write_offset_fetch_response_group(out, item.groups, version)
            if version >= 8:
                out.append(b"\0")
            else:
                out.append(_hx.pack(item.error_code))
    else:
        for item in items:
            if version >= 3:
                out.append(_ii.pack(item.throttle_time_ms, len(item.topics)))
            else:
                out.append(_i.pack(len(item.topics)))
            if item.topics:
                _write_offset_fetch_response_topic(out, item.topics, version)
            if version >= 2:
                out.append(_h.pack(item.error_code))
