# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""Metadata (3), versions 0 to 13."""

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

KEY: Final = 3
NAME: Final = "Metadata"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 13
FLEXIBLE_FROM: Final = 9

new = object.__new__


class MetadataRequestTopic(Message):
    __slots__ = ("topic_id", "name")
    topic_id: bytes  # v10+
    name: str | None  # null in v10+

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        name: str | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.name = name


class MetadataRequest(Message):
    __slots__ = (
        "topics", "allow_auto_topic_creation", "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
    )
    topics: list[MetadataRequestTopic] | None  # null in v1+
    allow_auto_topic_creation: bool  # v4+
    include_cluster_authorized_operations: bool  # v8–v10
    include_topic_authorized_operations: bool  # v8+

    def __init__(
        self,
        topics: list[MetadataRequestTopic] | None = None,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics = topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations


class MetadataResponseBroker(Message):
    __slots__ = ("node_id", "host", "port", "rack")
    node_id: int
    host: str
    port: int
    rack: str | None  # v1+

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


class MetadataResponsePartition(Message):
    __slots__ = (
        "error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes",
        "offline_replicas",
    )
    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int  # v7+
    replica_nodes: list[int]
    isr_nodes: list[int]
    offline_replicas: list[int]  # v5+

    def __init__(
        self,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] | None = None,
        isr_nodes: list[int] | None = None,
        offline_replicas: list[int] | None = None,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is None else replica_nodes
        self.isr_nodes = [] if isr_nodes is None else isr_nodes
        self.offline_replicas = [] if offline_replicas is None else offline_replicas


class MetadataResponseTopic(Message):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")
    error_code: int
    name: str | None  # null in v12+
    topic_id: bytes  # v10+
    is_internal: bool  # v1+
    partitions: list[MetadataResponsePartition]
    topic_authorized_operations: int  # v8+

    def __init__(
        self,
        error_code: int = 0,
        name: str | None = None,
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[MetadataResponsePartition] | None = None,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is None else partitions
        self.topic_authorized_operations = topic_authorized_operations


class MetadataResponse(Message):
    __slots__ = (
        "throttle_time_ms", "brokers", "cluster_id", "controller_id", "topics",
        "cluster_authorized_operations", "error_code",
    )
    throttle_time_ms: int  # v3+
    brokers: list[MetadataResponseBroker]
    cluster_id: str | None  # v2+
    controller_id: int  # v1+
    topics: list[MetadataResponseTopic]
    cluster_authorized_operations: int  # v8–v10
    error_code: int  # v13+

    def __init__(
        self,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponseBroker] | None = None,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponseTopic] | None = None,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers = [] if brokers is None else brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = [] if topics is None else topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code


def decode_request(body: Buffer, version: int) -> MetadataRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_metadata_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("Metadata request", version, error) from None
    return items[0]


def encode_request(request: MetadataRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_metadata_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("Metadata request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> MetadataResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_metadata_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("Metadata response", version, error) from None
    return items[0]


def encode_response(response: MetadataResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_metadata_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("Metadata response", version, error) from error
    return b"".join(out)


_16sZ = Struct(">16s?")
_16sB = Struct(">16sB")
_16sBB = Struct(">16sBB")
_Z = Struct(">?")
_ZZZ = Struct(">???")
_ZZZx = Struct(">???x")
_ZZx = Struct(">??x")
_Zi = Struct(">?i")
_BB = Struct(">BB")
_BBB = Struct(">BBB")
_BBBB = Struct(">BBBB")
_Bi = Struct(">Bi")
_h = Struct(">h")
_hB = Struct(">hB")
_hh = Struct(">hh")
_hiii = Struct(">hiii")
_hiiiB = Struct(">hiiiB")
_hiiii = Struct(">hiiii")
_hx = Struct(">hx")
_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ii = Struct(">ii")
_ix = Struct(">ix")


def _read_metadata_request_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[MetadataRequestTopic], int]:
    items: list[MetadataRequestTopic] = []
    if version >= 9:
        for _ in range(number):
            item = new(MetadataRequestTopic)
            if version >= 10:
                item.topic_id, length = _16sB.unpack_from(buffer, position)
                position += 17
            else:
                length = buffer[position]
                position += 1
                item.topic_id = ZERO_UUID
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1 and version >= 10:
                item.name = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("MetadataRequestTopic.name", length, end - position)
                item.name = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "MetadataRequestTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(MetadataRequestTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("MetadataRequestTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            item.topic_id = ZERO_UUID
            items.append(item)
    return items, position


def _write_metadata_request_topic(
    out: list[Buffer], items: Sequence[MetadataRequestTopic], version: int,
) -> None:
    if version >= 9:
        for item in items:
            if version >= 10:
                out.append(item.topic_id)
            if item.name is None and version <= 9:
                raise must_not_be_null("MetadataRequestTopic.name", version)
            if item.name is None:
                out.append(b"\0")
            else:
                raw = item.name.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            if item.name is None:
                raise must_not_be_null("MetadataRequestTopic.name", version)
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)


def _read_metadata_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[MetadataRequest], int]:
    items: list[MetadataRequest] = []
    if version >= 9:
        for _ in range(number):
            item = new(MetadataRequest)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count == -1:
                item.topics = None
            else:
                if count < 0 or count > (end - position) // 2:
                    raise bad_length("MetadataRequest.topics", count, end - position)
                item.topics, position = _read_metadata_request_topic(buffer, position, end, version, count)
            if version >= 11:
                (
                    allow_auto_topic_creation, include_topic_authorized_operations, tags,
                ) = _BBB.unpack_from(buffer, position)
                position += 3
                if allow_auto_topic_creation > 1:
                    raise bad_bool("MetadataRequest.allow_auto_topic_creation", allow_auto_topic_creation)
                item.allow_auto_topic_creation = allow_auto_topic_creation == 1
                if include_topic_authorized_operations > 1:
                    raise bad_bool(
                        "MetadataRequest.include_topic_authorized_operations",
                        include_topic_authorized_operations,
                    )
                item.include_topic_authorized_operations = include_topic_authorized_operations == 1
                item.include_cluster_authorized_operations = False
            else:
                (
                    allow_auto_topic_creation, include_cluster_authorized_operations,
                    include_topic_authorized_operations, tags,
                ) = _BBBB.unpack_from(buffer, position)
                position += 4
                if allow_auto_topic_creation > 1:
                    raise bad_bool("MetadataRequest.allow_auto_topic_creation", allow_auto_topic_creation)
                item.allow_auto_topic_creation = allow_auto_topic_creation == 1
                if include_cluster_authorized_operations > 1:
                    raise bad_bool(
                        "MetadataRequest.include_cluster_authorized_operations",
                        include_cluster_authorized_operations,
                    )
                item.include_cluster_authorized_operations = include_cluster_authorized_operations == 1
                if include_topic_authorized_operations > 1:
                    raise bad_bool(
                        "MetadataRequest.include_topic_authorized_operations",
                        include_topic_authorized_operations,
                    )
                item.include_topic_authorized_operations = include_topic_authorized_operations == 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "MetadataRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(MetadataRequest)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count == -1 and version >= 1:
                item.topics = None
            else:
                if count < 0 or count > (end - position) // 2:
                    raise bad_length("MetadataRequest.topics", count, end - position)
                item.topics, position = _read_metadata_request_topic(buffer, position, end, version, count)
            if version >= 8:
                (
                    allow_auto_topic_creation, include_cluster_authorized_operations,
                    include_topic_authorized_operations,
                ) = _BBB.unpack_from(buffer, position)
                position += 3
                if allow_auto_topic_creation > 1:
                    raise bad_bool("MetadataRequest.allow_auto_topic_creation", allow_auto_topic_creation)
                item.allow_auto_topic_creation = allow_auto_topic_creation == 1
                if include_cluster_authorized_operations > 1:
                    raise bad_bool(
                        "MetadataRequest.include_cluster_authorized_operations",
                        include_cluster_authorized_operations,
                    )
                item.include_cluster_authorized_operations = include_cluster_authorized_operations == 1
                if include_topic_authorized_operations > 1:
                    raise bad_bool(
                        "MetadataRequest.include_topic_authorized_operations",
                        include_topic_authorized_operations,
                    )
                item.include_topic_authorized_operations = include_topic_authorized_operations == 1
            elif version >= 4:
                allow_auto_topic_creation = buffer[position]
                position += 1
                if allow_auto_topic_creation > 1:
                    raise bad_bool("MetadataRequest.allow_auto_topic_creation", allow_auto_topic_creation)
                item.allow_auto_topic_creation = allow_auto_topic_creation == 1
                item.include_cluster_authorized_operations = False
                item.include_topic_authorized_operations = False
            else:
                item.allow_auto_topic_creation = True
                item.include_cluster_authorized_operations = False
                item.include_topic_authorized_operations = False
            items.append(item)
    return items, position


def _write_metadata_request(out: list[Buffer], items: Sequence[MetadataRequest], version: int) -> None:
    if version >= 9:
        for item in items:
            if item.topics is None:
                out.append(b"\0")
            else:
                length = len(item.topics) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.topics:
                    _write_metadata_request_topic(out, item.topics, version)
            if version >= 11:
                out.append(
                    _ZZx.pack(item.allow_auto_topic_creation, item.include_topic_authorized_operations)
                )
            else:
                out.append(
                    _ZZZx.pack(
                        item.allow_auto_topic_creation, item.include_cluster_authorized_operations,
                        item.include_topic_authorized_operations,
                    )
                )
    else:
        for item in items:
            if item.topics is None and version <= 0:
                raise must_not_be_null("MetadataRequest.topics", version)
            out.append(_i.pack(-1 if item.topics is None else len(item.topics)))
            if item.topics:
                _write_metadata_request_topic(out, item.topics, version)
            if version >= 8:
                out.append(
                    _ZZZ.pack(
                        item.allow_auto_topic_creation, item.include_cluster_authorized_operations,
                        item.include_topic_authorized_operations,
                    )
                )
            elif version >= 4:
                out.append(_Z.pack(item.allow_auto_topic_creation))


def _read_metadata_response_broker(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[MetadataResponseBroker], int]:
    items: list[MetadataResponseBroker] = []
    if version >= 9:
        for _ in range(number):
            item = new(MetadataResponseBroker)
            item.node_id, length = _iB.unpack_from(buffer, position)
            position += 5
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("MetadataResponseBroker.host", length, end - position)
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
                    raise bad_length("MetadataResponseBroker.rack", length, end - position)
                item.rack = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "MetadataResponseBroker")
            items.append(item)
    else:
        for _ in range(number):
            item = new(MetadataResponseBroker)
            item.node_id, length = _ih.unpack_from(buffer, position)
            position += 6
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("MetadataResponseBroker.host", length, end - position)
            item.host = buffer[position:stop].decode()
            position = stop
            if version >= 1:
                item.port, length = _ih.unpack_from(buffer, position)
                position += 6
            else:
                (item.port,) = _i.unpack_from(buffer, position)
                position += 4
            if version >= 1:
                if length == -1:
                    item.rack = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("MetadataResponseBroker.rack", length, end - position)
                    item.rack = buffer[position:stop].decode()
                    position = stop
            else:
                item.rack = None
            items.append(item)
    return items, position


def _write_metadata_response_broker(
    out: list[Buffer], items: Sequence[MetadataResponseBroker], version: int,
) -> None:
    if version >= 9:
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
    else:
        for item in items:
            raw = item.host.encode()
            out.append(_ih.pack(item.node_id, len(raw)))
            out.append(raw)
            out.append(_i.pack(item.port))
            if version >= 1:
                raw = b"" if item.rack is None else item.rack.encode()
                out.append(_h.pack(-1 if item.rack is None else len(raw)))
                out.append(raw)


def _read_metadata_response_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[MetadataResponsePartition], int]:
    items: list[MetadataResponsePartition] = []
    if version >= 9:
        for _ in range(number):
            item = new(MetadataResponsePartition)
            (
                item.error_code, item.partition_index, item.leader_id, item.leader_epoch, count,
            ) = _hiiiB.unpack_from(buffer, position)
            position += 15
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("MetadataResponsePartition.replica_nodes", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.replica_nodes = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("MetadataResponsePartition.isr_nodes", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.isr_nodes = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("MetadataResponsePartition.offline_replicas", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.offline_replicas = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "MetadataResponsePartition")
            items.append(item)
    else:
        for _ in range(number):
            item = new(MetadataResponsePartition)
            if version >= 7:
                (
                    item.error_code, item.partition_index, item.leader_id, item.leader_epoch, count,
                ) = _hiiii.unpack_from(buffer, position)
                position += 18
            else:
                (
                    item.error_code, item.partition_index, item.leader_id, count,
                ) = _hiii.unpack_from(buffer, position)
                position += 14
                item.leader_epoch = -1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("MetadataResponsePartition.replica_nodes", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.replica_nodes = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 4:
                raise bad_length("MetadataResponsePartition.isr_nodes", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.isr_nodes = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            if version >= 5:
                (count,) = _i.unpack_from(buffer, position)
                position += 4
                if count < 0 or count > (end - position) // 4:
                    raise bad_length("MetadataResponsePartition.offline_replicas", count, end - position)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                item.offline_replicas = [*numbers.unpack_from(buffer, position)]
                position += count * 4
            else:
                item.offline_replicas = []
            items.append(item)
    return items, position


def _write_metadata_response_partition(
    out: list[Buffer], items: Sequence[MetadataResponsePartition], version: int,
) -> None:
    if version >= 9:
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
            length = len(item.offline_replicas) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.offline_replicas:
                count = len(item.offline_replicas)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                out.append(numbers.pack(*item.offline_replicas))
            out.append(b"\0")
    else:
        for item in items:
            if version >= 7:
                out.append(
                    _hiiii.pack(
                        item.error_code, item.partition_index, item.leader_id, item.leader_epoch,
                        len(item.replica_nodes),
                    )
                )
            else:
                out.append(
                    _hiii.pack(item.error_code, item.partition_index, item.leader_id, len(item.replica_nodes))
                )
            if item.replica_nodes:
                count = len(item.replica_nodes)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                out.append(numbers.pack(*item.replica_nodes))
            out.append(_i.pack(len(item.isr_nodes)))
            if item.isr_nodes:
                count = len(item.isr_nodes)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                out.append(numbers.pack(*item.isr_nodes))
            if version >= 5:
                out.append(_i.pack(len(item.offline_replicas)))
                if item.offline_replicas:
                    count = len(item.offline_replicas)
                    numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                    out.append(numbers.pack(*item.offline_replicas))


def _read_metadata_response_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[MetadataResponseTopic], int]:
    items: list[MetadataResponseTopic] = []
    if version >= 9:
        for _ in range(number):
            item = new(MetadataResponseTopic)
            item.error_code, length = _hB.unpack_from(buffer, position)
            position += 3
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1 and version >= 12:
                item.name = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("MetadataResponseTopic.name", length, end - position)
                item.name = buffer[position:stop].decode()
                position = stop
            if version >= 10:
                item.topic_id, is_internal, count = _16sBB.unpack_from(buffer, position)
                position += 18
                if is_internal > 1:
                    raise bad_bool("MetadataResponseTopic.is_internal", is_internal)
                item.is_internal = is_internal == 1
            else:
                is_internal, count = _BB.unpack_from(buffer, position)
                position += 2
                if is_internal > 1:
                    raise bad_bool("MetadataResponseTopic.is_internal", is_internal)
                item.is_internal = is_internal == 1
                item.topic_id = ZERO_UUID
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 18:
                raise bad_length("MetadataResponseTopic.partitions", count, end - position)
            item.partitions, position = _read_metadata_response_partition(
                buffer, position, end, version, count,
            )
            item.topic_authorized_operations, tags = _iB.unpack_from(buffer, position)
            position += 5
            if tags:
                position = skip_tags(buffer, position, end, tags, "MetadataResponseTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(MetadataResponseTopic)
            item.error_code, length = _hh.unpack_from(buffer, position)
            position += 4
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("MetadataResponseTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            if version >= 1:
                is_internal, count = _Bi.unpack_from(buffer, position)
                position += 5
                if is_internal > 1:
                    raise bad_bool("MetadataResponseTopic.is_internal", is_internal)
                item.is_internal = is_internal == 1
            else:
                (count,) = _i.unpack_from(buffer, position)
                position += 4
                item.is_internal = False
            if count < 0 or count > (end - position) // 18:
                raise bad_length("MetadataResponseTopic.partitions", count, end - position)
            item.partitions, position = _read_metadata_response_partition(
                buffer, position, end, version, count,
            )
            if version >= 8:
                (item.topic_authorized_operations,) = _i.unpack_from(buffer, position)
                position += 4
            else:
                item.topic_authorized_operations = -2147483648
            item.topic_id = ZERO_UUID
            items.append(item)
    return items, position


def _write_metadata_response_topic(
    out: list[Buffer], items: Sequence[MetadataResponseTopic], version: int,
) -> None:
    if version >= 9:
        for item in items:
            out.append(_h.pack(item.error_code))
            if item.name is None and version <= 11:
                raise must_not_be_null("MetadataResponseTopic.name", version)
            if item.name is None:
                out.append(b"\0")
            else:
                raw = item.name.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if version >= 10:
                out.append(_16sZ.pack(item.topic_id, item.is_internal))
            else:
                out.append(_Z.pack(item.is_internal))
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                _write_metadata_response_partition(out, item.partitions, version)
            out.append(_ix.pack(item.topic_authorized_operations))
    else:
        for item in items:
            if item.name is None:
                raise must_not_be_null("MetadataResponseTopic.name", version)
            raw = item.name.encode()
            out.append(_hh.pack(item.error_code, len(raw)))
            out.append(raw)
            if version >= 1:
                out.append(_Zi.pack(item.is_internal, len(item.partitions)))
            else:
                out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                _write_metadata_response_partition(out, item.partitions, version)
            if version >= 8:
                out.append(_i.pack(item.topic_authorized_operations))


def _read_metadata_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[MetadataResponse], int]:
    items: list[MetadataResponse] = []
    if version >= 9:
        for _ in range(number):
            item = new(MetadataResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 11:
                raise bad_length("MetadataResponse.brokers", count, end - position)
            item.brokers, position = _read_metadata_response_broker(buffer, position, end, version, count)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.cluster_id = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("MetadataResponse.cluster_id", length, end - position)
                item.cluster_id = buffer[position:stop].decode()
                position = stop
            item.controller_id, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 10:
                raise bad_length("MetadataResponse.topics", count, end - position)
            item.topics, position = _read_metadata_response_topic(buffer, position, end, version, count)
            if version >= 13:
                item.error_code, tags = _hB.unpack_from(buffer, position)
                position += 3
                item.cluster_authorized_operations = -2147483648
            elif version >= 11:
                tags = buffer[position]
                position += 1
                item.cluster_authorized_operations = -2147483648
                item.error_code = 0
            else:
                item.cluster_authorized_operations, tags = _iB.unpack_from(buffer, position)
                position += 5
                item.error_code = 0
            if tags:
                position = skip_tags(buffer, position, end, tags, "MetadataResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(MetadataResponse)
            if version >= 3:
                item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
                position += 8
            else:
                (count,) = _i.unpack_from(buffer, position)
                position += 4
                item.throttle_time_ms = 0
            if count < 0 or count > (end - position) // 10:
                raise bad_length("MetadataResponse.brokers", count, end - position)
            item.brokers, position = _read_metadata_response_broker(buffer, position, end, version, count)
            if version >= 2:
                (length,) = _h.unpack_from(buffer, position)
                position += 2
                if length == -1:
                    item.cluster_id = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("MetadataResponse.cluster_id", length, end - position)
                    item.cluster_id = buffer[position:stop].decode()
                    position = stop
            else:
                item.cluster_id = None
            if version >= 1:
                item.controller_id, count = _ii.unpack_from(buffer, position)
                position += 8
            else:
                (count,) = _i.unpack_from(buffer, position)
                position += 4
                item.controller_id = -1
            if count < 0 or count > (end - position) // 8:
                raise bad_length("MetadataResponse.topics", count, end - position)
            item.topics, position = _read_metadata_response_topic(buffer, position, end, version, count)
            if version >= 8:
                (item.cluster_authorized_operations,) = _i.unpack_from(buffer, position)
                position += 4
            else:
                item.cluster_authorized_operations = -2147483648
            item.error_code = 0
            items.append(item)
    return items, position


def _write_metadata_response(out: list[Buffer], items: Sequence[MetadataResponse], version: int) -> None:
    if version >= 9:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.brokers) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.brokers:
                _write_metadata_response_broker(out, item.brokers, version)
            if item.cluster_id is None:
                out.append(b"\0")
            else:
                raw = item.cluster_id.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(_i.pack(item.controller_id))
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_metadata_response_topic(out, item.topics, version)
            if version >= 13:
                out.append(_hx.pack(item.error_code))
            elif version >= 11:
                out.append(b"\0")
            else:
                out.append(_ix.pack(item.cluster_authorized_operations))
    else:
        for item in items:
            if version >= 3:
                out.append(_ii.pack(item.throttle_time_ms, len(item.brokers)))
            else:
                out.append(_i.pack(len(item.brokers)))
            if item.brokers:
                _write_metadata_response_broker(out, item.brokers, version)
            if version >= 2:
                raw = b"" if item.cluster_id is None else item.cluster_id.encode()
                out.append(_h.pack(-1 if item.cluster_id is None else len(raw)))
                out.append(raw)
            if version >= 1:
                out.append(_ii.pack(item.controller_id, len(item.topics)))
            else:
                out.append(_i.pack(len(item.topics)))
            if item.topics:
                _write_metadata_response_topic(out, item.topics, version)
            if version >= 8:
                out.append(_i.pack(item.cluster_authorized_operations))
