# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DescribeCluster (60), versions 0 to 2."""

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
    bad_bool,
    bad_length,
    does_not_fit,
    long_uvarint,
    malformed,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 60
NAME: Final = "DescribeCluster"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 2
FLEXIBLE_FROM: Final = 0

new = object.__new__


class DescribeClusterRequest(Message):
    __slots__ = ("include_cluster_authorized_operations", "endpoint_type", "include_fenced_brokers")
    include_cluster_authorized_operations: bool
    endpoint_type: int  # v1+
    include_fenced_brokers: bool  # v2+

    def __init__(
        self,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None:
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.endpoint_type = endpoint_type
        self.include_fenced_brokers = include_fenced_brokers


class DescribeClusterBroker(Message):
    __slots__ = ("broker_id", "host", "port", "rack", "is_fenced")
    broker_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool  # v2+

    def __init__(
        self,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.rack = rack
        self.is_fenced = is_fenced


class DescribeClusterResponse(Message):
    __slots__ = (
        "throttle_time_ms", "error_code", "error_message", "endpoint_type", "cluster_id", "controller_id",
        "brokers", "cluster_authorized_operations",
    )
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    endpoint_type: int  # v1+
    cluster_id: str
    controller_id: int
    brokers: list[DescribeClusterBroker]
    cluster_authorized_operations: int

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] | None = None,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = [] if brokers is None else brokers
        self.cluster_authorized_operations = cluster_authorized_operations


def decode_request(body: Buffer, version: int) -> DescribeClusterRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_cluster_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeCluster request", version, error) from None
    return items[0]


def encode_request(request: DescribeClusterRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_cluster_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DescribeCluster request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DescribeClusterResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_cluster_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeCluster response", version, error) from None
    return items[0]


def encode_response(response: DescribeClusterResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_cluster_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DescribeCluster response", version, error) from error
    return b"".join(out)


_ZbZx = Struct(">?b?x")
_Zbx = Struct(">?bx")
_Zx = Struct(">?x")
_BB = Struct(">BB")
_BbB = Struct(">BbB")
_BbBB = Struct(">BbBB")
_b = Struct(">b")
_bB = Struct(">bB")
_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ix = Struct(">ix")


def _read_describe_cluster_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeClusterRequest], int]:
    items: list[DescribeClusterRequest] = []
    for _ in range(number):
        item = new(DescribeClusterRequest)
        if version >= 2:
            (
                include_cluster_authorized_operations, item.endpoint_type, include_fenced_brokers, tags,
            ) = _BbBB.unpack_from(buffer, position)
            position += 4
            if include_cluster_authorized_operations > 1:
                raise bad_bool(
                    "DescribeClusterRequest.include_cluster_authorized_operations",
                    include_cluster_authorized_operations,
                )
            item.include_cluster_authorized_operations = include_cluster_authorized_operations == 1
            if include_fenced_brokers > 1:
                raise bad_bool("DescribeClusterRequest.include_fenced_brokers", include_fenced_brokers)
            item.include_fenced_brokers = include_fenced_brokers == 1
        elif version >= 1:
            (
                include_cluster_authorized_operations, item.endpoint_type, tags,
            ) = _BbB.unpack_from(buffer, position)
            position += 3
            if include_cluster_authorized_operations > 1:
                raise bad_bool(
                    "DescribeClusterRequest.include_cluster_authorized_operations",
                    include_cluster_authorized_operations,
                )
            item.include_cluster_authorized_operations = include_cluster_authorized_operations == 1
            item.include_fenced_brokers = False
        else:
            include_cluster_authorized_operations, tags = _BB.unpack_from(buffer, position)
            position += 2
            if include_cluster_authorized_operations > 1:
                raise bad_bool(
                    "DescribeClusterRequest.include_cluster_authorized_operations",
                    include_cluster_authorized_operations,
                )
            item.include_cluster_authorized_operations = include_cluster_authorized_operations == 1
            item.endpoint_type = 1
            item.include_fenced_brokers = False
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeClusterRequest")
        items.append(item)
    return items, position


def _write_describe_cluster_request(
    out: list[Buffer], items: Sequence[DescribeClusterRequest], version: int,
) -> None:
    for item in items:
        if version >= 2:
            out.append(
                _ZbZx.pack(
                    item.include_cluster_authorized_operations, item.endpoint_type,
                    item.include_fenced_brokers,
                )
            )
        elif version >= 1:
            out.append(_Zbx.pack(item.include_cluster_authorized_operations, item.endpoint_type))
        else:
            out.append(_Zx.pack(item.include_cluster_authorized_operations))


def _read_describe_cluster_broker(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeClusterBroker], int]:
    items: list[DescribeClusterBroker] = []
    for _ in range(number):
        item = new(DescribeClusterBroker)
        item.broker_id, length = _iB.unpack_from(buffer, position)
        position += 5
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("DescribeClusterBroker.host", length, end - position)
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
                raise bad_length("DescribeClusterBroker.rack", length, end - position)
            item.rack = buffer[position:stop].decode()
            position = stop
        if version >= 2:
            is_fenced, tags = _BB.unpack_from(buffer, position)
            position += 2
            if is_fenced > 1:
                raise bad_bool("DescribeClusterBroker.is_fenced", is_fenced)
            item.is_fenced = is_fenced == 1
        else:
            tags = buffer[position]
            position += 1
            item.is_fenced = False
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeClusterBroker")
        items.append(item)
    return items, position


def _write_describe_cluster_broker(
    out: list[Buffer], items: Sequence[DescribeClusterBroker], version: int,
) -> None:
    for item in items:
        out.append(_i.pack(item.broker_id))
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
        if version >= 2:
            out.append(_Zx.pack(item.is_fenced))
        else:
            out.append(b"\0")


def _read_describe_cluster_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeClusterResponse], int]:
    items: list[DescribeClusterResponse] = []
    for _ in range(number):
        item = new(DescribeClusterResponse)
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
                raise bad_length("DescribeClusterResponse.error_message", length, end - position)
            item.error_message = buffer[position:stop].decode()
            position = stop
        if version >= 1:
            item.endpoint_type, length = _bB.unpack_from(buffer, position)
            position += 2
        else:
            length = buffer[position]
            position += 1
            item.endpoint_type = 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("DescribeClusterResponse.cluster_id", length, end - position)
        item.cluster_id = buffer[position:stop].decode()
        position = stop
        item.controller_id, count = _iB.unpack_from(buffer, position)
        position += 5
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 11:
            raise bad_length("DescribeClusterResponse.brokers", count, end - position)
        item.brokers, position = _read_describe_cluster_broker(buffer, position, end, version, count)
        item.cluster_authorized_operations, tags = _iB.unpack_from(buffer, position)
        position += 5
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeClusterResponse")
        items.append(item)
    return items, position


def _write_describe_cluster_response(
    out: list[Buffer], items: Sequence[DescribeClusterResponse], version: int,
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
        if version >= 1:
            out.append(_b.pack(item.endpoint_type))
        raw = item.cluster_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_i.pack(item.controller_id))
        length = len(item.brokers) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.brokers:
            _write_describe_cluster_broker(out, item.brokers, version)
        out.append(_ix.pack(item.cluster_authorized_operations))
