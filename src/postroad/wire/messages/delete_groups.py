# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DeleteGroups (42), versions 0 to 2."""

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

KEY: Final = 42
NAME: Final = "DeleteGroups"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 2
FLEXIBLE_FROM: Final = 2

new = object.__new__


class DeleteGroupsRequest(Message):
    __slots__ = ("groups_names",)
    groups_names: list[str]

    def __init__(
        self,
        groups_names: list[str] | None = None,
    ) -> None:
        self.groups_names = [] if groups_names is None else groups_names


class DeletableGroupResult(Message):
    __slots__ = ("group_id", "error_code")
    group_id: str
    error_code: int

    def __init__(
        self,
        group_id: str = "",
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.error_code = error_code


class DeleteGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")
    throttle_time_ms: int
    results: list[DeletableGroupResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is None else results


def decode_request(body: Buffer, version: int) -> DeleteGroupsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_delete_groups_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DeleteGroups request", version, error) from None
    return items[0]


def encode_request(request: DeleteGroupsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_delete_groups_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DeleteGroups request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DeleteGroupsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_delete_groups_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DeleteGroups response", version, error) from None
    return items[0]


def encode_response(response: DeleteGroupsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_delete_groups_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DeleteGroups response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_hB = Struct(">hB")
_hx = Struct(">hx")
_i = Struct(">i")
_iB = Struct(">iB")
_ii = Struct(">ii")


def _read_delete_groups_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteGroupsRequest], int]:
    items: list[DeleteGroupsRequest] = []
    if version >= 2:
        for _ in range(number):
            item = new(DeleteGroupsRequest)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > end - position:
                raise bad_length("DeleteGroupsRequest.groups_names", count, end - position)
            item.groups_names = []
            append = item.groups_names.append
            for _ in range(count):
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DeleteGroupsRequest.groups_names", length, end - position)
                append(buffer[position:stop].decode())
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeleteGroupsRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeleteGroupsRequest)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 2:
                raise bad_length("DeleteGroupsRequest.groups_names", count, end - position)
            item.groups_names = []
            append = item.groups_names.append
            for _ in range(count):
                (length,) = _h.unpack_from(buffer, position)
                position += 2
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DeleteGroupsRequest.groups_names", length, end - position)
                append(buffer[position:stop].decode())
                position = stop
            items.append(item)
    return items, position


def _write_delete_groups_request(
    out: list[Buffer], items: Sequence[DeleteGroupsRequest], version: int,
) -> None:
    if version >= 2:
        for item in items:
            length = len(item.groups_names) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.groups_names:
                for text in item.groups_names:
                    raw = text.encode()
                    length = len(raw) + 1
                    out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                    out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_i.pack(len(item.groups_names)))
            if item.groups_names:
                for text in item.groups_names:
                    raw = text.encode()
                    out.append(_h.pack(len(raw)))
                    out.append(raw)


def _read_deletable_group_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeletableGroupResult], int]:
    items: list[DeletableGroupResult] = []
    if version >= 2:
        for _ in range(number):
            item = new(DeletableGroupResult)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DeletableGroupResult.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            item.error_code, tags = _hB.unpack_from(buffer, position)
            position += 3
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeletableGroupResult")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeletableGroupResult)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DeletableGroupResult.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            (item.error_code,) = _h.unpack_from(buffer, position)
            position += 2
            items.append(item)
    return items, position


def _write_deletable_group_result(
    out: list[Buffer], items: Sequence[DeletableGroupResult], version: int,
) -> None:
    if version >= 2:
        for item in items:
            raw = item.group_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_hx.pack(item.error_code))
    else:
        for item in items:
            raw = item.group_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_h.pack(item.error_code))


def _read_delete_groups_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DeleteGroupsResponse], int]:
    items: list[DeleteGroupsResponse] = []
    if version >= 2:
        for _ in range(number):
            item = new(DeleteGroupsResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("DeleteGroupsResponse.results", count, end - position)
            item.results, position = _read_deletable_group_result(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DeleteGroupsResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DeleteGroupsResponse)
            item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
            position += 8
            if count < 0 or count > (end - position) // 4:
                raise bad_length("DeleteGroupsResponse.results", count, end - position)
            item.results, position = _read_deletable_group_result(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_delete_groups_response(
    out: list[Buffer], items: Sequence[DeleteGroupsResponse], version: int,
) -> None:
    if version >= 2:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.results) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.results:
                _write_deletable_group_result(out, item.results, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_ii.pack(item.throttle_time_ms, len(item.results)))
            if item.results:
                _write_deletable_group_result(out, item.results, version)
