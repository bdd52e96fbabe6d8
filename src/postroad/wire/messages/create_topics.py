# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""CreateTopics (19), versions 2 to 7."""

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

KEY: Final = 19
NAME: Final = "CreateTopics"
MIN_VERSION: Final = 2
MAX_VERSION: Final = 7
FLEXIBLE_FROM: Final = 5

new = object.__new__


class CreatableReplicaAssignment(Message):
    __slots__ = ("partition_index", "broker_ids")
    partition_index: int
    broker_ids: list[int]

    def __init__(
        self,
        partition_index: int = 0,
        broker_ids: list[int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.broker_ids = [] if broker_ids is None else broker_ids


class CreatableTopicConfig(Message):
    __slots__ = ("name", "value")
    name: str
    value: str | None

    def __init__(
        self,
        name: str = "",
        value: str | None = None,
    ) -> None:
        self.name = name
        self.value = value


class CreatableTopic(Message):
    __slots__ = ("name", "num_partitions", "replication_factor", "assignments", "configs")
    name: str
    num_partitions: int
    replication_factor: int
    assignments: list[CreatableReplicaAssignment]
    configs: list[CreatableTopicConfig]

    def __init__(
        self,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] | None = None,
        configs: list[CreatableTopicConfig] | None = None,
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.assignments = [] if assignments is None else assignments
        self.configs = [] if configs is None else configs


class CreateTopicsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "validate_only")
    topics: list[CreatableTopic]
    timeout_ms: int
    validate_only: bool

    def __init__(
        self,
        topics: list[CreatableTopic] | None = None,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is None else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only


class CreatableTopicConfigs(Message):
    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive")
    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool

    def __init__(
        self,
        name: str = "",
        value: str | None = None,
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive


class CreatableTopicResult(Message):
    __slots__ = (
        "name", "topic_id", "error_code", "error_message", "topic_config_error_code", "num_partitions",
        "replication_factor", "configs",
    )
    name: str
    topic_id: bytes  # v7+
    error_code: int
    error_message: str | None
    topic_config_error_code: int  # v5+, tag 0
    num_partitions: int  # v5+
    replication_factor: int  # v5+
    configs: list[CreatableTopicConfigs] | None  # v5+

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.topic_config_error_code = topic_config_error_code
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs = configs


class CreateTopicsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")
    throttle_time_ms: int
    topics: list[CreatableTopicResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is None else topics


def decode_request(body: Buffer, version: int) -> CreateTopicsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_create_topics_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("CreateTopics request", version, error) from None
    return items[0]


def encode_request(request: CreateTopicsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_create_topics_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("CreateTopics request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> CreateTopicsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_create_topics_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("CreateTopics response", version, error) from None
    return items[0]


def encode_response(response: CreateTopicsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_create_topics_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("CreateTopics response", version, error) from error
    return b"".join(out)


_16sh = Struct(">16sh")
_16shB = Struct(">16shB")
_ZbZx = Struct(">?b?x")
_BbBB = Struct(">BbBB")
_h = Struct(">h")
_hB = Struct(">hB")
_hh = Struct(">hh")
_i = Struct(">i")
_iZ = Struct(">i?")
_iZx = Struct(">i?x")
_iB = Struct(">iB")
_iBB = Struct(">iBB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ihi = Struct(">ihi")
_ii = Struct(">ii")


def _read_creatable_replica_assignment(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[CreatableReplicaAssignment], int]:
    items: list[CreatableReplicaAssignment] = []
    if version >= 5:
        for _ in range(number):
            item = new(CreatableReplicaAssignment)
            item.partition_index, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("CreatableReplicaAssignment.broker_ids", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.broker_ids = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "CreatableReplicaAssignment")
            items.append(item)
    else:
        for _ in range(number):
            item = new(CreatableReplicaAssignment)
            item.partition_index, count = _ii.unpack_from(buffer, position)
            position += 8
            if count < 0 or count > (end - position) // 4:
                raise bad_length("CreatableReplicaAssignment.broker_ids", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.broker_ids = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            items.append(item)
    return items, position


def _write_creatable_replica_assignment(
    out: list[Buffer], items: Sequence[CreatableReplicaAssignment], version: int,
) -> None:
    if version >= 5:
        for item in items:
            out.append(_i.pack(item.partition_index))
            length = len(item.broker_ids) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.broker_ids:
                count = len(item.broker_ids)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                out.append(numbers.pack(*item.broker_ids))
            out.append(b"\0")
    else:
        for item in items:
            out.append(_ii.pack(item.partition_index, len(item.broker_ids)))
            if item.broker_ids:
                count = len(item.broker_ids)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                out.append(numbers.pack(*item.broker_ids))


def _read_creatable_topic_config(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[CreatableTopicConfig], int]:
    items: list[CreatableTopicConfig] = []
    if version >= 5:
        for _ in range(number):
            item = new(CreatableTopicConfig)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("CreatableTopicConfig.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.value = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("CreatableTopicConfig.value", length, end - position)
                item.value = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "CreatableTopicConfig")
            items.append(item)
    else:
        for _ in range(number):
            item = new(CreatableTopicConfig)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("CreatableTopicConfig.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            if length == -1:
                item.value = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("CreatableTopicConfig.value", length, end - position)
                item.value = buffer[position:stop].decode()
                position = stop
            items.append(item)
    return items, position


def _write_creatable_topic_config(
    out: list[Buffer], items: Sequence[CreatableTopicConfig], version: int,
) -> None:
    if version >= 5:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            if item.value is None:
                out.append(b"\0")
            else:
                raw = item.value.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = b"" if item.value is None else item.value.encode()
            out.append(_h.pack(-1 if item.value is None else len(raw)))
            out.append(raw)


def _read_creatable_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[CreatableTopic], int]:
    items: list[CreatableTopic] = []
    if version >= 5:
        for _ in range(number):
            item = new(CreatableTopic)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("CreatableTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            item.num_partitions, item.replication_factor, count = _ihB.unpack_from(buffer, position)
            position += 7
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 6:
                raise bad_length("CreatableTopic.assignments", count, end - position)
            item.assignments, position = _read_creatable_replica_assignment(
                buffer, position, end, version, count,
            )
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("CreatableTopic.configs", count, end - position)
            item.configs, position = _read_creatable_topic_config(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "CreatableTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(CreatableTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("CreatableTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            item.num_partitions, item.replication_factor, count = _ihi.unpack_from(buffer, position)
            position += 10
            if count < 0 or count > (end - position) // 8:
                raise bad_length("CreatableTopic.assignments", count, end - position)
            item.assignments, position = _read_creatable_replica_assignment(
                buffer, position, end, version, count,
            )
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 4:
                raise bad_length("CreatableTopic.configs", count, end - position)
            item.configs, position = _read_creatable_topic_config(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_creatable_topic(out: list[Buffer], items: Sequence[CreatableTopic], version: int) -> None:
    if version >= 5:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_ih.pack(item.num_partitions, item.replication_factor))
            length = len(item.assignments) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.assignments:
                _write_creatable_replica_assignment(out, item.assignments, version)
            length = len(item.configs) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.configs:
                _write_creatable_topic_config(out, item.configs, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_ihi.pack(item.num_partitions, item.replication_factor, len(item.assignments)))
            if item.assignments:
                _write_creatable_replica_assignment(out, item.assignments, version)
            out.append(_i.pack(len(item.configs)))
            if item.configs:
                _write_creatable_topic_config(out, item.configs, version)


def _read_create_topics_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[CreateTopicsRequest], int]:
    items: list[CreateTopicsRequest] = []
    if version >= 5:
        for _ in range(number):
            item = new(CreateTopicsRequest)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 10:
                raise bad_length("CreateTopicsRequest.topics", count, end - position)
            item.topics, position = _read_creatable_topic(buffer, position, end, version, count)
            item.timeout_ms, validate_only, tags = _iBB.unpack_from(buffer, position)
            position += 6
            if validate_only > 1:
                raise bad_bool("CreateTopicsRequest.validate_only", validate_only)
            item.validate_only = validate_only == 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "CreateTopicsRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(CreateTopicsRequest)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 16:
                raise bad_length("CreateTopicsRequest.topics", count, end - position)
            item.topics, position = _read_creatable_topic(buffer, position, end, version, count)
            item.timeout_ms, validate_only = _iB.unpack_from(buffer, position)
            position += 5
            if validate_only > 1:
                raise bad_bool("CreateTopicsRequest.validate_only", validate_only)
            item.validate_only = validate_only == 1
            items.append(item)
    return items, position


def _write_create_topics_request(
    out: list[Buffer], items: Sequence[CreateTopicsRequest], version: int,
) -> None:
    if version >= 5:
        for item in items:
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_creatable_topic(out, item.topics, version)
            out.append(_iZx.pack(item.timeout_ms, item.validate_only))
    else:
        for item in items:
            out.append(_i.pack(len(item.topics)))
            if item.topics:
                _write_creatable_topic(out, item.topics, version)
            out.append(_iZ.pack(item.timeout_ms, item.validate_only))


def _read_creatable_topic_configs(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[CreatableTopicConfigs], int]:
    items: list[CreatableTopicConfigs] = []
    for _ in range(number):
        item = new(CreatableTopicConfigs)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("CreatableTopicConfigs.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.value = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("CreatableTopicConfigs.value", length, end - position)
            item.value = buffer[position:stop].decode()
            position = stop
        read_only, item.config_source, is_sensitive, tags = _BbBB.unpack_from(buffer, position)
        position += 4
        if read_only > 1:
            raise bad_bool("CreatableTopicConfigs.read_only", read_only)
        item.read_only = read_only == 1
        if is_sensitive > 1:
            raise bad_bool("CreatableTopicConfigs.is_sensitive", is_sensitive)
        item.is_sensitive = is_sensitive == 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "CreatableTopicConfigs")
        items.append(item)
    return items, position


def _write_creatable_topic_configs(
    out: list[Buffer], items: Sequence[CreatableTopicConfigs], version: int,
) -> None:
    for item in items:
        raw = item.name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        if item.value is None:
            out.append(b"\0")
        else:
            raw = item.value.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(_ZbZx.pack(item.read_only, item.config_source, item.is_sensitive))


def _read_creatable_topic_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[CreatableTopicResult], int]:
    items: list[CreatableTopicResult] = []
    if version >= 5:
        for _ in range(number):
            item = new(CreatableTopicResult)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("CreatableTopicResult.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            if version >= 7:
                item.topic_id, item.error_code, length = _16shB.unpack_from(buffer, position)
                position += 19
            else:
                item.error_code, length = _hB.unpack_from(buffer, position)
                position += 3
                item.topic_id = ZERO_UUID
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("CreatableTopicResult.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            item.num_partitions, item.replication_factor, count = _ihB.unpack_from(buffer, position)
            position += 7
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count == -1:
                item.configs = None
            else:
                if count < 0 or count > (end - position) // 6:
                    raise bad_length("CreatableTopicResult.configs", count, end - position)
                item.configs, position = _read_creatable_topic_configs(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            item.topic_config_error_code = 0
            if tags:
                if tags > 127:
                    tags, position = long_uvarint(buffer, position, tags)
                tag = -1
                for _ in range(tags):
                    tag, position, stop_tag = read_tag(buffer, position, end, tag, "CreatableTopicResult")
                    if tag == 0:
                        (item.topic_config_error_code,) = _h.unpack_from(buffer, position)
                        position += 2
                    else:
                        position = stop_tag
                    if position != stop_tag:
                        raise bad_tag_size("CreatableTopicResult", tag)
            items.append(item)
    else:
        for _ in range(number):
            item = new(CreatableTopicResult)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("CreatableTopicResult.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            item.error_code, length = _hh.unpack_from(buffer, position)
            position += 4
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("CreatableTopicResult.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            item.topic_id = ZERO_UUID
            item.num_partitions = -1
            item.replication_factor = -1
            item.configs = None
            item.topic_config_error_code = 0
            items.append(item)
    return items, position


def _write_creatable_topic_result(
    out: list[Buffer], items: Sequence[CreatableTopicResult], version: int,
) -> None:
    if version >= 5:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            if version >= 7:
                out.append(_16sh.pack(item.topic_id, item.error_code))
            else:
                out.append(_h.pack(item.error_code))
            if item.error_message is None:
                out.append(b"\0")
            else:
                raw = item.error_message.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(_ih.pack(item.num_partitions, item.replication_factor))
            if item.configs is None:
                out.append(b"\0")
            else:
                length = len(item.configs) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.configs:
                    _write_creatable_topic_configs(out, item.configs, version)
            tagged: list[Buffer] = []
            if item.topic_config_error_code != 0:
                tagged.append(tagged_field(0, [_h.pack(item.topic_config_error_code)]))
            out.append(SHORT_UVARINTS[len(tagged)])
            out += tagged
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = b"" if item.error_message is None else item.error_message.encode()
            out.append(_hh.pack(item.error_code, -1 if item.error_message is None else len(raw)))
            out.append(raw)


def _read_create_topics_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[CreateTopicsResponse], int]:
    items: list[CreateTopicsResponse] = []
    if version >= 5:
        for _ in range(number):
            item = new(CreateTopicsResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 12:
                raise bad_length("CreateTopicsResponse.topics", count, end - position)
            item.topics, position = _read_creatable_topic_result(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "CreateTopicsResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(CreateTopicsResponse)
            item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
            position += 8
            if count < 0 or count > (end - position) // 6:
                raise bad_length("CreateTopicsResponse.topics", count, end - position)
            item.topics, position = _read_creatable_topic_result(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_create_topics_response(
    out: list[Buffer], items: Sequence[CreateTopicsResponse], version: int,
) -> None:
    if version >= 5:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_creatable_topic_result(out, item.topics, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_ii.pack(item.throttle_time_ms, len(item.topics)))
            if item.topics:
                _write_creatable_topic_result(out, item.topics, version)
