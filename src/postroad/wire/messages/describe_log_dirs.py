# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DescribeLogDirs (35), versions 1 to 5."""

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

KEY: Final = 35
NAME: Final = "DescribeLogDirs"
MIN_VERSION: Final = 1
MAX_VERSION: Final = 5
FLEXIBLE_FROM: Final = 2

new = object.__new__


class DescribableLogDirTopic(Message):
    __slots__ = ("topic", "partitions")
    topic: str
    partitions: list[int]

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions


class DescribeLogDirsRequest(Message):
    __slots__ = ("topics",)
    topics: list[DescribableLogDirTopic] | None

    def __init__(
        self,
        topics: list[DescribableLogDirTopic] | None = None,
    ) -> None:
        self.topics = topics


class DescribeLogDirsPartition(Message):
    __slots__ = ("partition_index", "partition_size", "offset_lag", "is_future_key")
    partition_index: int
    partition_size: int
    offset_lag: int
    is_future_key: bool

    def __init__(
        self,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.partition_size = partition_size
        self.offset_lag = offset_lag
        self.is_future_key = is_future_key


class DescribeLogDirsTopic(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[DescribeLogDirsPartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class DescribeLogDirsResult(Message):
    __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes", "is_cordoned")
    error_code: int
    log_dir: str
    topics: list[DescribeLogDirsTopic]
    total_bytes: int  # v4+
    usable_bytes: int  # v4+
    is_cordoned: bool  # v5+

    def __init__(
        self,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] | None = None,
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
    ) -> None:
        self.error_code = error_code
        self.log_dir = log_dir
        self.topics = [] if topics is None else topics
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes
        self.is_cordoned = is_cordoned


class DescribeLogDirsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "results")
    throttle_time_ms: int
    error_code: int  # v3+
    results: list[DescribeLogDirsResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = [] if results is None else results


def decode_request(body: Buffer, version: int) -> DescribeLogDirsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_log_dirs_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeLogDirs request", version, error) from None
    return items[0]


def encode_request(request: DescribeLogDirsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_log_dirs_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DescribeLogDirs request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DescribeLogDirsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_log_dirs_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeLogDirs response", version, error) from None
    return items[0]


def encode_response(response: DescribeLogDirsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_log_dirs_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DescribeLogDirs response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_hB = Struct(">hB")
_hh = Struct(">hh")
_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ii = Struct(">ii")
_iqqZ = Struct(">iqq?")
_iqqZx = Struct(">iqq?x")
_iqqB = Struct(">iqqB")
_iqqBB = Struct(">iqqBB")
_qqZx = Struct(">qq?x")
_qqB = Struct(">qqB")
_qqBB = Struct(">qqBB")
_qqx = Struct(">qqx")


def _read_describable_log_dir_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribableLogDirTopic], int]:
    items: list[DescribableLogDirTopic] = []
    if version >= 2:
        for _ in range(number):
            item = new(DescribableLogDirTopic)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribableLogDirTopic.topic", length, end - position)
            item.topic = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("DescribableLogDirTopic.partitions", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.partitions = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribableLogDirTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribableLogDirTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribableLogDirTopic.topic", length, end - position)
            item.topic = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 4:
                raise bad_length("DescribableLogDirTopic.partitions", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.partitions = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            items.append(item)
    return items, position


def _write_describable_log_dir_topic(
    out: list[Buffer], items: Sequence[DescribableLogDirTopic], version: int,
) -> None:
    if version >= 2:
        for item in items:
            raw = item.topic.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                count = len(item.partitions)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                out.append(numbers.pack(*item.partitions))
            out.append(b"\0")
    else:
        for item in items:
            raw = item.topic.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                count = len(item.partitions)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                out.append(numbers.pack(*item.partitions))


def _read_describe_log_dirs_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeLogDirsRequest], int]:
    items: list[DescribeLogDirsRequest] = []
    if version >= 2:
        for _ in range(number):
            item = new(DescribeLogDirsRequest)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count == -1:
                item.topics = None
            else:
                if count < 0 or count > (end - position) // 3:
                    raise bad_length("DescribeLogDirsRequest.topics", count, end - position)
                item.topics, position = _read_describable_log_dir_topic(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeLogDirsRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeLogDirsRequest)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count == -1:
                item.topics = None
            else:
                if count < 0 or count > (end - position) // 6:
                    raise bad_length("DescribeLogDirsRequest.topics", count, end - position)
                item.topics, position = _read_describable_log_dir_topic(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_describe_log_dirs_request(
    out: list[Buffer], items: Sequence[DescribeLogDirsRequest], version: int,
) -> None:
    if version >= 2:
        for item in items:
            if item.topics is None:
                out.append(b"\0")
            else:
                length = len(item.topics) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.topics:
                    _write_describable_log_dir_topic(out, item.topics, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_i.pack(-1 if item.topics is None else len(item.topics)))
            if item.topics:
                _write_describable_log_dir_topic(out, item.topics, version)


def _read_describe_log_dirs_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeLogDirsPartition], int]:
    items: list[DescribeLogDirsPartition] = []
    if version >= 2:
        for _ in range(number):
            item = new(DescribeLogDirsPartition)
            (
                item.partition_index, item.partition_size, item.offset_lag, is_future_key, tags,
            ) = _iqqBB.unpack_from(buffer, position)
            position += 22
            if is_future_key > 1:
                raise bad_bool("DescribeLogDirsPartition.is_future_key", is_future_key)
            item.is_future_key = is_future_key == 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeLogDirsPartition")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeLogDirsPartition)
            (
                item.partition_index, item.partition_size, item.offset_lag, is_future_key,
            ) = _iqqB.unpack_from(buffer, position)
            position += 21
            if is_future_key > 1:
                raise bad_bool("DescribeLogDirsPartition.is_future_key", is_future_key)
            item.is_future_key = is_future_key == 1
            items.append(item)
    return items, position


def _write_describe_log_dirs_partition(
    out: list[Buffer], items: Sequence[DescribeLogDirsPartition], version: int,
) -> None:
    if version >= 2:
        for item in items:
            out.append(
                _iqqZx.pack(item.partition_index, item.partition_size, item.offset_lag, item.is_future_key)
            )
    else:
        for item in items:
            out.append(
                _iqqZ.pack(item.partition_index, item.partition_size, item.offset_lag, item.is_future_key)
            )


def _read_describe_log_dirs_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeLogDirsTopic], int]:
    items: list[DescribeLogDirsTopic] = []
    if version >= 2:
        for _ in range(number):
            item = new(DescribeLogDirsTopic)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeLogDirsTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 22:
                raise bad_length("DescribeLogDirsTopic.partitions", count, end - position)
            item.partitions, position = _read_describe_log_dirs_partition(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeLogDirsTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeLogDirsTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeLogDirsTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 21:
                raise bad_length("DescribeLogDirsTopic.partitions", count, end - position)
            item.partitions, position = _read_describe_log_dirs_partition(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_describe_log_dirs_topic(
    out: list[Buffer], items: Sequence[DescribeLogDirsTopic], version: int,
) -> None:
    if version >= 2:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                _write_describe_log_dirs_partition(out, item.partitions, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                _write_describe_log_dirs_partition(out, item.partitions, version)


def _read_describe_log_dirs_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeLogDirsResult], int]:
    items: list[DescribeLogDirsResult] = []
    if version >= 2:
        for _ in range(number):
            item = new(DescribeLogDirsResult)
            item.error_code, length = _hB.unpack_from(buffer, position)
            position += 3
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeLogDirsResult.log_dir", length, end - position)
            item.log_dir = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("DescribeLogDirsResult.topics", count, end - position)
            item.topics, position = _read_describe_log_dirs_topic(buffer, position, end, version, count)
            if version >= 5:
                item.total_bytes, item.usable_bytes, is_cordoned, tags = _qqBB.unpack_from(buffer, position)
                position += 18
                if is_cordoned > 1:
                    raise bad_bool("DescribeLogDirsResult.is_cordoned", is_cordoned)
                item.is_cordoned = is_cordoned == 1
            elif version >= 4:
                item.total_bytes, item.usable_bytes, tags = _qqB.unpack_from(buffer, position)
                position += 17
                item.is_cordoned = False
            else:
                tags = buffer[position]
                position += 1
                item.total_bytes = -1
                item.usable_bytes = -1
                item.is_cordoned = False
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeLogDirsResult")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeLogDirsResult)
            item.error_code, length = _hh.unpack_from(buffer, position)
            position += 4
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeLogDirsResult.log_dir", length, end - position)
            item.log_dir = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 6:
                raise bad_length("DescribeLogDirsResult.topics", count, end - position)
            item.topics, position = _read_describe_log_dirs_topic(buffer, position, end, version, count)
            item.total_bytes = -1
            item.usable_bytes = -1
            item.is_cordoned = False
            items.append(item)
    return items, position


def _write_describe_log_dirs_result(
    out: list[Buffer], items: Sequence[DescribeLogDirsResult], version: int,
) -> None:
    if version >= 2:
        for item in items:
            out.append(_h.pack(item.error_code))
            raw = item.log_dir.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_describe_log_dirs_topic(out, item.topics, version)
            if version >= 5:
                out.append(_qqZx.pack(item.total_bytes, item.usable_bytes, item.is_cordoned))
            elif version >= 4:
                out.append(_qqx.pack(item.total_bytes, item.usable_bytes))
            else:
                out.append(b"\0")
    else:
        for item in items:
            raw = item.log_dir.encode()
            out.append(_hh.pack(item.error_code, len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.topics)))
            if item.topics:
                _write_describe_log_dirs_topic(out, item.topics, version)


def _read_describe_log_dirs_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeLogDirsResponse], int]:
    items: list[DescribeLogDirsResponse] = []
    if version >= 2:
        for _ in range(number):
            item = new(DescribeLogDirsResponse)
            if version >= 3:
                item.throttle_time_ms, item.error_code, count = _ihB.unpack_from(buffer, position)
                position += 7
            else:
                item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
                position += 5
                item.error_code = 0
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 5:
                raise bad_length("DescribeLogDirsResponse.results", count, end - position)
            item.results, position = _read_describe_log_dirs_result(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeLogDirsResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeLogDirsResponse)
            item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
            position += 8
            if count < 0 or count > (end - position) // 8:
                raise bad_length("DescribeLogDirsResponse.results", count, end - position)
            item.results, position = _read_describe_log_dirs_result(buffer, position, end, version, count)
            item.error_code = 0
            items.append(item)
    return items, position


def _write_describe_log_dirs_response(
    out: list[Buffer], items: Sequence[DescribeLogDirsResponse], version: int,
) -> None:
    if version >= 2:
        for item in items:
            if version >= 3:
                out.append(_ih.pack(item.throttle_time_ms, item.error_code))
            else:
                out.append(_i.pack(item.throttle_time_ms))
            length = len(item.results) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.results:
                _write_describe_log_dirs_result(out, item.results, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_ii.pack(item.throttle_time_ms, len(item.results)))
            if item.results:
                _write_describe_log_dirs_result(out, item.results, version)
