# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""ListGroups (16), versions 0 to 5."""

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

KEY: Final = 16
NAME: Final = "ListGroups"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 5
FLEXIBLE_FROM: Final = 3

new = object.__new__


class ListGroupsRequest(Message):
    __slots__ = ("states_filter", "types_filter")
    states_filter: list[str]  # v4+
    types_filter: list[str]  # v5+

    def __init__(
        self,
        states_filter: list[str] | None = None,
        types_filter: list[str] | None = None,
    ) -> None:
        self.states_filter = [] if states_filter is None else states_filter
        self.types_filter = [] if types_filter is None else types_filter


class ListedGroup(Message):
    __slots__ = ("group_id", "protocol_type", "group_state", "group_type")
    group_id: str
    protocol_type: str
    group_state: str  # v4+
    group_type: str  # v5+

    def __init__(
        self,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",
        group_type: str = "",
    ) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.group_state = group_state
        self.group_type = group_type


class ListGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "groups")
    throttle_time_ms: int  # v1+
    error_code: int
    groups: list[ListedGroup]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListedGroup] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups = [] if groups is None else groups


def decode_request(body: Buffer, version: int) -> ListGroupsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_list_groups_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ListGroups request", version, error) from None
    return items[0]


def encode_request(request: ListGroupsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_list_groups_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("ListGroups request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> ListGroupsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_list_groups_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ListGroups response", version, error) from None
    return items[0]


def encode_response(response: ListGroupsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_list_groups_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("ListGroups response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_hi = Struct(">hi")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ihi = Struct(">ihi")


def _read_list_groups_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ListGroupsRequest], int]:
    items: list[ListGroupsRequest] = []
    if version >= 3:
        for _ in range(number):
            item = new(ListGroupsRequest)
            if version >= 4:
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_uvarint(buffer, position, count)
                count -= 1
                if count < 0 or count > end - position:
                    raise bad_length("ListGroupsRequest.states_filter", count, end - position)
                item.states_filter = []
                append = item.states_filter.append
                for _ in range(count):
                    length = buffer[position]
                    position += 1
                    if length > 127:
                        length, position = long_uvarint(buffer, position, length)
                    length -= 1
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("ListGroupsRequest.states_filter", length, end - position)
                    append(buffer[position:stop].decode())
                    position = stop
            else:
                item.states_filter = []
            if version >= 5:
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_uvarint(buffer, position, count)
                count -= 1
                if count < 0 or count > end - position:
                    raise bad_length("ListGroupsRequest.types_filter", count, end - position)
                item.types_filter = []
                append = item.types_filter.append
                for _ in range(count):
                    length = buffer[position]
                    position += 1
                    if length > 127:
                        length, position = long_uvarint(buffer, position, length)
                    length -= 1
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("ListGroupsRequest.types_filter", length, end - position)
                    append(buffer[position:stop].decode())
                    position = stop
            else:
                item.types_filter = []
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "ListGroupsRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ListGroupsRequest)
            item.states_filter = []
            item.types_filter = []
            items.append(item)
    return items, position


def _write_list_groups_request(out: list[Buffer], items: Sequence[ListGroupsRequest], version: int) -> None:
    if version >= 3:
        for item in items:
            if version >= 4:
                length = len(item.states_filter) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.states_filter:
                    for text in item.states_filter:
                        raw = text.encode()
                        length = len(raw) + 1
                        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                        out.append(raw)
            if version >= 5:
                length = len(item.types_filter) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.types_filter:
                    for text in item.types_filter:
                        raw = text.encode()
                        length = len(raw) + 1
                        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                        out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            pass


def _read_listed_group(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ListedGroup], int]:
    items: list[ListedGroup] = []
    if version >= 3:
        for _ in range(number):
            item = new(ListedGroup)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ListedGroup.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ListedGroup.protocol_type", length, end - position)
            item.protocol_type = buffer[position:stop].decode()
            position = stop
            if version >= 4:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("ListedGroup.group_state", length, end - position)
                item.group_state = buffer[position:stop].decode()
                position = stop
            else:
                item.group_state = ""
            if version >= 5:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("ListedGroup.group_type", length, end - position)
                item.group_type = buffer[position:stop].decode()
                position = stop
            else:
                item.group_type = ""
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "ListedGroup")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ListedGroup)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ListedGroup.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ListedGroup.protocol_type", length, end - position)
            item.protocol_type = buffer[position:stop].decode()
            position = stop
            item.group_state = ""
            item.group_type = ""
            items.append(item)
    return items, position


def _write_listed_group(out: list[Buffer], items: Sequence[ListedGroup], version: int) -> None:
    if version >= 3:
        for item in items:
            raw = item.group_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            raw = item.protocol_type.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            if version >= 4:
                raw = item.group_state.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if version >= 5:
                raw = item.group_type.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.group_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = item.protocol_type.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)


def _read_list_groups_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ListGroupsResponse], int]:
    items: list[ListGroupsResponse] = []
    if version >= 3:
        for _ in range(number):
            item = new(ListGroupsResponse)
            item.throttle_time_ms, item.error_code, count = _ihB.unpack_from(buffer, position)
            position += 7
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("ListGroupsResponse.groups", count, end - position)
            item.groups, position = _read_listed_group(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "ListGroupsResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ListGroupsResponse)
            if version >= 1:
                item.throttle_time_ms, item.error_code, count = _ihi.unpack_from(buffer, position)
                position += 10
            else:
                item.error_code, count = _hi.unpack_from(buffer, position)
                position += 6
                item.throttle_time_ms = 0
            if count < 0 or count > (end - position) // 4:
                raise bad_length("ListGroupsResponse.groups", count, end - position)
            item.groups, position = _read_listed_group(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_list_groups_response(out: list[Buffer], items: Sequence[ListGroupsResponse], version: int) -> None:
    if version >= 3:
        for item in items:
            out.append(_ih.pack(item.throttle_time_ms, item.error_code))
            length = len(item.groups) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.groups:
                _write_listed_group(out, item.groups, version)
            out.append(b"\0")
    else:
        for item in items:
            if version >= 1:
                out.append(_ihi.pack(item.throttle_time_ms, item.error_code, len(item.groups)))
            else:
                out.append(_hi.pack(item.error_code, len(item.groups)))
            if item.groups:
                _write_listed_group(out, item.groups, version)
