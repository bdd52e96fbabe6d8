# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DescribeAcls (29), versions 1 to 3."""

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

KEY: Final = 29
NAME: Final = "DescribeAcls"
MIN_VERSION: Final = 1
MAX_VERSION: Final = 3
FLEXIBLE_FROM: Final = 2

new = object.__new__


class DescribeAclsRequest(Message):
    __slots__ = (
        "resource_type_filter", "resource_name_filter", "pattern_type_filter", "principal_filter",
        "host_filter", "operation", "permission_type",
    )
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int

    def __init__(
        self,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = None,
        pattern_type_filter: int = 3,
        principal_filter: str | None = None,
        host_filter: str | None = None,
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter = resource_type_filter
        self.resource_name_filter = resource_name_filter
        self.pattern_type_filter = pattern_type_filter
        self.principal_filter = principal_filter
        self.host_filter = host_filter
        self.operation = operation
        self.permission_type = permission_type


class AclDescription(Message):
    __slots__ = ("principal", "host", "operation", "permission_type")
    principal: str
    host: str
    operation: int
    permission_type: int

    def __init__(
        self,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class DescribeAclsResource(Message):
    __slots__ = ("resource_type", "resource_name", "pattern_type", "acls")
    resource_type: int
    resource_name: str
    pattern_type: int
    acls: list[AclDescription]

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        acls: list[AclDescription] | None = None,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.acls = [] if acls is None else acls


class DescribeAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "resources")
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    resources: list[DescribeAclsResource]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        resources: list[DescribeAclsResource] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.resources = [] if resources is None else resources


def decode_request(body: Buffer, version: int) -> DescribeAclsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_acls_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeAcls request", version, error) from None
    return items[0]


def encode_request(request: DescribeAclsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_acls_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DescribeAcls request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DescribeAclsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_acls_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeAcls response", version, error) from None
    return items[0]


def encode_response(response: DescribeAclsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_acls_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DescribeAcls response", version, error) from error
    return b"".join(out)


_b = Struct(">b")
_bB = Struct(">bB")
_bb = Struct(">bb")
_bbB = Struct(">bbB")
_bbx = Struct(">bbx")
_bh = Struct(">bh")
_bi = Struct(">bi")
_h = Struct(">h")
_i = Struct(">i")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ihh = Struct(">ihh")


def _read_describe_acls_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeAclsRequest], int]:
    items: list[DescribeAclsRequest] = []
    if version >= 2:
        for _ in range(number):
            item = new(DescribeAclsRequest)
            item.resource_type_filter, length = _bB.unpack_from(buffer, position)
            position += 2
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.resource_name_filter = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeAclsRequest.resource_name_filter", length, end - position)
                item.resource_name_filter = buffer[position:stop].decode()
                position = stop
            item.pattern_type_filter, length = _bB.unpack_from(buffer, position)
            position += 2
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.principal_filter = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeAclsRequest.principal_filter", length, end - position)
                item.principal_filter = buffer[position:stop].decode()
                position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.host_filter = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeAclsRequest.host_filter", length, end - position)
                item.host_filter = buffer[position:stop].decode()
                position = stop
            item.operation, item.permission_type, tags = _bbB.unpack_from(buffer, position)
            position += 3
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeAclsRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeAclsRequest)
            item.resource_type_filter, length = _bh.unpack_from(buffer, position)
            position += 3
            if length == -1:
                item.resource_name_filter = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeAclsRequest.resource_name_filter", length, end - position)
                item.resource_name_filter = buffer[position:stop].decode()
                position = stop
            item.pattern_type_filter, length = _bh.unpack_from(buffer, position)
            position += 3
            if length == -1:
                item.principal_filter = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeAclsRequest.principal_filter", length, end - position)
                item.principal_filter = buffer[position:stop].decode()
                position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            if length == -1:
                item.host_filter = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeAclsRequest.host_filter", length, end - position)
                item.host_filter = buffer[position:stop].decode()
                position = stop
            item.operation, item.permission_type = _bb.unpack_from(buffer, position)
            position += 2
            items.append(item)
    return items, position


def _write_describe_acls_request(
    out: list[Buffer], items: Sequence[DescribeAclsRequest], version: int,
) -> None:
    if version >= 2:
        for item in items:
            out.append(_b.pack(item.resource_type_filter))
            if item.resource_name_filter is None:
                out.append(b"\0")
            else:
                raw = item.resource_name_filter.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(_b.pack(item.pattern_type_filter))
            if item.principal_filter is None:
                out.append(b"\0")
            else:
                raw = item.principal_filter.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if item.host_filter is None:
                out.append(b"\0")
            else:
                raw = item.host_filter.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(_bbx.pack(item.operation, item.permission_type))
    else:
        for item in items:
            raw = b"" if item.resource_name_filter is None else item.resource_name_filter.encode()
            out.append(
                _bh.pack(item.resource_type_filter, -1 if item.resource_name_filter is None else len(raw))
            )
            out.append(raw)
            raw = b"" if item.principal_filter is None else item.principal_filter.encode()
            out.append(_bh.pack(item.pattern_type_filter, -1 if item.principal_filter is None else len(raw)))
            out.append(raw)
            raw = b"" if item.host_filter is None else item.host_filter.encode()
            out.append(_h.pack(-1 if item.host_filter is None else len(raw)))
            out.append(raw)
            out.append(_bb.pack(item.operation, item.permission_type))


def _read_acl_description(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AclDescription], int]:
    items: list[AclDescription] = []
    if version >= 2:
        for _ in range(number):
            item = new(AclDescription)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AclDescription.principal", length, end - position)
            item.principal = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AclDescription.host", length, end - position)
            item.host = buffer[position:stop].decode()
            position = stop
            item.operation, item.permission_type, tags = _bbB.unpack_from(buffer, position)
            position += 3
            if tags:
                position = skip_tags(buffer, position, end, tags, "AclDescription")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AclDescription)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AclDescription.principal", length, end - position)
            item.principal = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AclDescription.host", length, end - position)
            item.host = buffer[position:stop].decode()
            position = stop
            item.operation, item.permission_type = _bb.unpack_from(buffer, position)
            position += 2
            items.append(item)
    return items, position


def _write_acl_description(out: list[Buffer], items: Sequence[AclDescription], version: int) -> None:
    if version >= 2:
        for item in items:
            raw = item.principal.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            raw = item.host.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_bbx.pack(item.operation, item.permission_type))
    else:
        for item in items:
            raw = item.principal.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = item.host.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_bb.pack(item.operation, item.permission_type))


def _read_describe_acls_resource(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeAclsResource], int]:
    items: list[DescribeAclsResource] = []
    if version >= 2:
        for _ in range(number):
            item = new(DescribeAclsResource)
            item.resource_type, length = _bB.unpack_from(buffer, position)
            position += 2
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeAclsResource.resource_name", length, end - position)
            item.resource_name = buffer[position:stop].decode()
            position = stop
            item.pattern_type, count = _bB.unpack_from(buffer, position)
            position += 2
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 5:
                raise bad_length("DescribeAclsResource.acls", count, end - position)
            item.acls, position = _read_acl_description(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeAclsResource")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeAclsResource)
            item.resource_type, length = _bh.unpack_from(buffer, position)
            position += 3
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeAclsResource.resource_name", length, end - position)
            item.resource_name = buffer[position:stop].decode()
            position = stop
            item.pattern_type, count = _bi.unpack_from(buffer, position)
            position += 5
            if count < 0 or count > (end - position) // 6:
                raise bad_length("DescribeAclsResource.acls", count, end - position)
            item.acls, position = _read_acl_description(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_describe_acls_resource(
    out: list[Buffer], items: Sequence[DescribeAclsResource], version: int,
) -> None:
    if version >= 2:
        for item in items:
            out.append(_b.pack(item.resource_type))
            raw = item.resource_name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_b.pack(item.pattern_type))
            length = len(item.acls) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.acls:
                _write_acl_description(out, item.acls, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.resource_name.encode()
            out.append(_bh.pack(item.resource_type, len(raw)))
            out.append(raw)
            out.append(_bi.pack(item.pattern_type, len(item.acls)))
            if item.acls:
                _write_acl_description(out, item.acls, version)


def _read_describe_acls_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeAclsResponse], int]:
    items: list[DescribeAclsResponse] = []
    if version >= 2:
        for _ in range(number):
            item = new(DescribeAclsResponse)
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
                    raise bad_length("DescribeAclsResponse.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 5:
                raise bad_length("DescribeAclsResponse.resources", count, end - position)
            item.resources, position = _read_describe_acls_resource(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeAclsResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeAclsResponse)
            item.throttle_time_ms, item.error_code, length = _ihh.unpack_from(buffer, position)
            position += 8
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeAclsResponse.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 8:
                raise bad_length("DescribeAclsResponse.resources", count, end - position)
            item.resources, position = _read_describe_acls_resource(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_describe_acls_response(
    out: list[Buffer], items: Sequence[DescribeAclsResponse], version: int,
) -> None:
    if version >= 2:
        for item in items:
            out.append(_ih.pack(item.throttle_time_ms, item.error_code))
            if item.error_message is None:
                out.append(b"\0")
            else:
                raw = item.error_message.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            length = len(item.resources) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.resources:
                _write_describe_acls_resource(out, item.resources, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = b"" if item.error_message is None else item.error_message.encode()
            out.append(
                _ihh.pack(
                    item.throttle_time_ms, item.error_code, -1 if item.error_message is None else len(raw),
                )
            )
            out.append(raw)
            out.append(_i.pack(len(item.resources)))
            if item.resources:
                _write_describe_acls_resource(out, item.resources, version)
