# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DeleteAcls (31), versions 1 to 3."""

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

KEY: Final = 31
NAME: Final = "DeleteAcls"
MIN_VERSION: Final = 1
MAX_VERSION: Final = 3
FLEXIBLE_FROM: Final = 2

new = object.__new__


class DeleteAclsFilter(Message):
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


class DeleteAclsRequest(Message):
    __slots__ = ("filters",)
    filters: list[DeleteAclsFilter]

    def __init__(
        self,
        filters: list[DeleteAclsFilter] | None = None,
    ) -> None:
        self.filters = [] if filters is None else filters


class DeleteAclsMatchingAcl(Message):
    __slots__ = (
        "error_code", "error_message", "resource_type", "resource_name", "pattern_type", "principal", "host",
        "operation", "permission_type",
    )
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class DeleteAclsFilterResult(Message):
    __slots__ = ("error_code", "error_message", "matching_acls")
    error_code: int
    error_message: str | None
    matching_acls: list[DeleteAclsMatchingAcl]

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        matching_acls: list[DeleteAclsMatchingAcl] | None = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.matching_acls = [] if matching_acls is None else matching_acls


class DeleteAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "filter_results")
    throttle_time_ms: int
    filter_results: list[DeleteAclsFilterResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsFilterResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.filter_results = [] if filter_results is None else filter_results


def decode_request(body: Buffer, version: int) -> DeleteAclsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_delete_acls_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DeleteAcls request", version, error) from None
    return items[0]


def encode_request(request: DeleteAclsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_delete_acls_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DeleteAcls request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DeleteAclsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_delete_acls_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DeleteAcls response", version, error) from None
    return items[0]


def encode_response(response: DeleteAclsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_delete_acls_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DeleteAcls response", version, error) from error
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


def _read_delete_acls_filter(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteAclsFilter], int]:
    items: list[DeleteAclsFilter] = []
    if version >= 2:
        for _ in range(number):
            item = new(DeleteAclsFilter)
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
                    raise bad_length("DeleteAclsFilter.resource_name_filter", length, end - position)
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
                    raise bad_length("DeleteAclsFilter.principal_filter", length, end - position)
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
                    raise bad_length("DeleteAclsFilter.host_filter", length, end - position)
                item.host_filter = buffer[position:stop].decode()
                position = stop
            item.operation, item.permission_type, tags = _bbB.unpack_from(buffer, position)
            position += 3
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeleteAclsFilter")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeleteAclsFilter)
            item.resource_type_filter, length = _bh.unpack_from(buffer, position)
            position += 3
            if length == -1:
                item.resource_name_filter = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DeleteAclsFilter.resource_name_filter", length, end - position)
                item.resource_name_filter = buffer[position:stop].decode()
                position = stop
            item.pattern_type_filter, length = _bh.unpack_from(buffer, position)
            position += 3
            if length == -1:
                item.principal_filter = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DeleteAclsFilter.principal_filter", length, end - position)
                item.principal_filter = buffer[position:stop].decode()
                position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            if length == -1:
                item.host_filter = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DeleteAclsFilter.host_filter", length, end - position)
                item.host_filter = buffer[position:stop].decode()
                position = stop
            item.operation, item.permission_type = _bb.unpack_from(buffer, position)
            position += 2
            items.append(item)
    return items, position


def _write_delete_acls_filter(out: list[Buffer], items: Sequence[DeleteAclsFilter], version: int) -> None:
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


def _read_delete_acls_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteAclsRequest], int]:
    items: list[DeleteAclsRequest] = []
    if version >= 2:
        for _ in range(number):
            item = new(DeleteAclsRequest)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 8:
                raise bad_length("DeleteAclsRequest.filters", count, end - position)
            item.filters, position = _read_delete_acls_filter(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeleteAclsRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeleteAclsRequest)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 10:
                raise bad_length("DeleteAclsRequest.filters", count, end - position)
            item.filters, position = _read_delete_acls_filter(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_delete_acls_request(out: list[Buffer], items: Sequence[DeleteAclsRequest], version: int) -> None:
    if version >= 2:
        for item in items:
            length = len(item.filters) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.filters:
                _write_delete_acls_filter(out, item.filters, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_i.pack(len(item.filters)))
            if item.filters:
                _write_delete_acls_filter(out, item.filters, version)


def _read_delete_acls_matching_acl(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteAclsMatchingAcl], int]:
    items: list[DeleteAclsMatchingAcl] = []
    if version >= 2:
        for _ in range(number):
            item = new(DeleteAclsMatchingAcl)
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
                    raise bad_length("DeleteAclsMatchingAcl.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            item.resource_type, length = _bB.unpack_from(buffer, position)
            position += 2
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DeleteAclsMatchingAcl.resource_name", length, end - position)
            item.resource_name = buffer[position:stop].decode()
            position = stop
            item.pattern_type, length = _bB.unpack_from(buffer, position)
            position += 2
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DeleteAclsMatchingAcl.principal", length, end - position)
            item.principal = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DeleteAclsMatchingAcl.host", length, end - position)
            item.host = buffer[position:stop].decode()
            position = stop
            item.operation, item.permission_type, tags = _bbB.unpack_from(buffer, position)
            position += 3
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeleteAclsMatchingAcl")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeleteAclsMatchingAcl)
            item.error_code, length = _hh.unpack_from(buffer, position)
            position += 4
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DeleteAclsMatchingAcl.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            item.resource_type, length = _bh.unpack_from(buffer, position)
            position += 3
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DeleteAclsMatchingAcl.resource_name", length, end - position)
            item.resource_name = buffer[position:stop].decode()
            position = stop
            item.pattern_type, length = _bh.unpack_from(buffer, position)
            position += 3
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DeleteAclsMatchingAcl.principal", length, end - position)
            item.principal = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DeleteAclsMatchingAcl.host", length, end - position)
            item.host = buffer[position:stop].decode()
            position = stop
            item.operation, item.permission_type = _bb.unpack_from(buffer, position)
            position += 2
            items.append(item)
    return items, position


def _write_delete_acls_matching_acl(
    out: list[Buffer], items: Sequence[DeleteAclsMatchingAcl], version: int,
) -> None:
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
            out.append(_b.pack(item.resource_type))
            raw = item.resource_name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_b.pack(item.pattern_type))
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
            raw = b"" if item.error_message is None else item.error_message.encode()
            out.append(_hh.pack(item.error_code, -1 if item.error_message is None else len(raw)))
            out.append(raw)
            raw = item.resource_name.encode()
            out.append(_bh.pack(item.resource_type, len(raw)))
            out.append(raw)
            raw = item.principal.encode()
            out.append(_bh.pack(item.pattern_type, len(raw)))
            out.append(raw)
            raw = item.host.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_bb.pack(item.operation, item.permission_type))


def _read_delete_acls_filter_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteAclsFilterResult], int]:
    items: list[DeleteAclsFilterResult] = []
    if version >= 2:
        for _ in range(number):
            item = new(DeleteAclsFilterResult)
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
                    raise bad_length("DeleteAclsFilterResult.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 11:
                raise bad_length("DeleteAclsFilterResult.matching_acls", count, end - position)
            item.matching_acls, position = _read_delete_acls_matching_acl(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeleteAclsFilterResult")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeleteAclsFilterResult)
            item.error_code, length = _hh.unpack_from(buffer, position)
            position += 4
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DeleteAclsFilterResult.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 14:
                raise bad_length("DeleteAclsFilterResult.matching_acls", count, end - position)
            item.matching_acls, position = _read_delete_acls_matching_acl(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_delete_acls_filter_result(
    out: list[Buffer], items: Sequence[DeleteAclsFilterResult], version: int,
) -> None:
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
            length = len(item.matching_acls) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.matching_acls:
                _write_delete_acls_matching_acl(out, item.matching_acls, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = b"" if item.error_message is None else item.error_message.encode()
            out.append(_hh.pack(item.error_code, -1 if item.error_message is None else len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.matching_acls)))
            if item.matching_acls:
                _write_delete_acls_matching_acl(out, item.matching_acls, version)


def _read_delete_acls_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteAclsResponse], int]:
    items: list[DeleteAclsResponse] = []
    if version >= 2:
        for _ in range(number):
            item = new(DeleteAclsResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 5:
                raise bad_length("DeleteAclsResponse.filter_results", count, end - position)
            item.filter_results, position = _read_delete_acls_filter_result(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeleteAclsResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeleteAclsResponse)
            item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
            position += 8
            if count < 0 or count > (end - position) // 8:
                raise bad_length("DeleteAclsResponse.filter_results", count, end - position)
            item.filter_results, position = _read_delete_acls_filter_result(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_delete_acls_response(out: list[Buffer], items: Sequence[DeleteAclsResponse], version: int) -> None:
    if version >= 2:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.filter_results) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.filter_results:
                _write_delete_acls_filter_result(out, item.filter_results, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_ii.pack(item.throttle_time_ms, len(item.filter_results)))
            if item.filter_results:
                _write_delete_acls_filter_result(out, item.filter_results, version)
