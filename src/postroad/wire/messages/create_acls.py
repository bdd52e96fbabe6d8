# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""CreateAcls (30), versions 1 to 3."""

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

KEY: Final = 30
NAME: Final = "CreateAcls"
MIN_VERSION: Final = 1
MAX_VERSION: Final = 3
FLEXIBLE_FROM: Final = 2

new = object.__new__


class AclCreation(Message):
    __slots__ = (
        "resource_type", "resource_name", "resource_pattern_type", "principal", "host", "operation",
        "permission_type",
    )
    resource_type: int
    resource_name: str
    resource_pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.resource_pattern_type = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class CreateAclsRequest(Message):
    __slots__ = ("creations",)
    creations: list[AclCreation]

    def __init__(
        self,
        creations: list[AclCreation] | None = None,
    ) -> None:
        self.creations = [] if creations is None else creations


class AclCreationResult(Message):
    __slots__ = ("error_code", "error_message")
    error_code: int
    error_message: str | None

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message


class CreateAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")
    throttle_time_ms: int
    results: list[AclCreationResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AclCreationResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results


def decode_request(body: Buffer, version: int) -> CreateAclsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_create_acls_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("CreateAcls request", version, error) from None
    return items[0]


def encode_request(request: CreateAclsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_create_acls_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("CreateAcls request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> CreateAclsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_create_acls_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("CreateAcls response", version, error) from None
    return items[0]


def encode_response(response: CreateAclsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_create_acls_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("CreateAcls response", version, error) from error
    return b"".join(out)


_b = Struct(">b")
_bB = Struct(">bB")
_bb = Struct(">bb")
_bbB = Struct(">bbB")
_bbx = Struct(">bbx")
_bh = Struct(">bh")
_h = Struct(">h")
_hB = Struct(">hB")
_hh = Struct(">hh")
_i = Struct(">i")
_iB = Struct(">iB")
_ii = Struct(">ii")


def _read_acl_creation(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AclCreation], int]:
    items: list[AclCreation] = []
    if version >= 2:
        for _ in range(number):
            item = new(AclCreation)
            item.resource_type, length = _bB.unpack_from(buffer, position)
            position += 2
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AclCreation.resource_name", length, end - position)
            item.resource_name = buffer[position:stop].decode()
            position = stop
            item.resource_pattern_type, length = _bB.unpack_from(buffer, position)
            position += 2
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AclCreation.principal", length, end - position)
            item.principal = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AclCreation.host", length, end - position)
            item.host = buffer[position:stop].decode()
            position = stop
            item.operation, item.permission_type, tags = _bbB.unpack_from(buffer, position)
            position += 3
            if tags:
                position = skip_tags(buffer, position, end, tags, "AclCreation")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AclCreation)
            item.resource_type, length = _bh.unpack_from(buffer, position)
            position += 3
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AclCreation.resource_name", length, end - position)
            item.resource_name = buffer[position:stop].decode()
            position = stop
            item.resource_pattern_type, length = _bh.unpack_from(buffer, position)
            position += 3
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AclCreation.principal", length, end - position)
            item.principal = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AclCreation.host", length, end - position)
            item.host = buffer[position:stop].decode()
            position = stop
            item.operation, item.permission_type = _bb.unpack_from(buffer, position)
            position += 2
            items.append(item)
    return items, position


def _write_acl_creation(out: list[Buffer], items: Sequence[AclCreation], version: int) -> None:
    if version >= 2:
        for item in items:
            out.append(_b.pack(item.resource_type))
            raw = item.resource_name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_b.pack(item.resource_pattern_type))
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
            raw = item.resource_name.encode()
            out.append(_bh.pack(item.resource_type, len(raw)))
            out.append(raw)
            raw = item.principal.encode()
            out.append(_bh.pack(item.resource_pattern_type, len(raw)))
            out.append(raw)
            raw = item.host.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_bb.pack(item.operation, item.permission_type))


def _read_create_acls_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[CreateAclsRequest], int]:
    items: list[CreateAclsRequest] = []
    if version >= 2:
        for _ in range(number):
            item = new(CreateAclsRequest)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 8:
                raise bad_length("CreateAclsRequest.creations", count, end - position)
            item.creations, position = _read_acl_creation(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "CreateAclsRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(CreateAclsRequest)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 10:
                raise bad_length("CreateAclsRequest.creations", count, end - position)
            item.creations, position = _read_acl_creation(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_create_acls_request(out: list[Buffer], items: Sequence[CreateAclsRequest], version: int) -> None:
    if version >= 2:
        for item in items:
            length = len(item.creations) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.creations:
                _write_acl_creation(out, item.creations, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_i.pack(len(item.creations)))
            if item.creations:
                _write_acl_creation(out, item.creations, version)


def _read_acl_creation_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AclCreationResult], int]:
    items: list[AclCreationResult] = []
    if version >= 2:
        for _ in range(number):
            item = new(AclCreationResult)
            item.error_code, length = _hB.unpack_from(buffer, position)
            position += 3
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("AclCreationResult.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "AclCreationResult")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AclCreationResult)
            item.error_code, length = _hh.unpack_from(buffer, position)
            position += 4
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("AclCreationResult.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            items.append(item)
    return items, position


def _write_acl_creation_result(out: list[Buffer], items: Sequence[AclCreationResult], version: int) -> None:
    if version >= 2:
        for item in items:
            out.append(_h.pack(item.error_code))
            if item.error_message is None:
                out.append(b"\0")
            else:
                raw = item.error_message.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = b"" if item.error_message is None else item.error_message.encode()
            out.append(_hh.pack(item.error_code, -1 if item.error_message is None else len(raw)))
            out.append(raw)


def _read_create_acls_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[CreateAclsResponse], int]:
    items: list[CreateAclsResponse] = []
    if version >= 2:
        for _ in range(number):
            item = new(CreateAclsResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("CreateAclsResponse.results", count, end - position)
            item.results, position = _read_acl_creation_result(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "CreateAclsResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(CreateAclsResponse)
            item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
            position += 8
            if count < 0 or count > (end - position) // 4:
                raise bad_length("CreateAclsResponse.results", count, end - position)
            item.results, position = _read_acl_creation_result(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_create_acls_response(out: list[Buffer], items: Sequence[CreateAclsResponse], version: int) -> None:
    if version >= 2:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.results) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.results:
                _write_acl_creation_result(out, item.results, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_ii.pack(item.throttle_time_ms, len(item.results)))
            if item.results:
                _write_acl_creation_result(out, item.results, version)
