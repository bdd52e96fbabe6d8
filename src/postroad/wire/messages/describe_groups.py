# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DescribeGroups (15), versions 0 to 6."""

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

KEY: Final = 15
NAME: Final = "DescribeGroups"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 6
FLEXIBLE_FROM: Final = 5

new = object.__new__


class DescribeGroupsRequest(Message):
    __slots__ = ("groups", "include_authorized_operations")
    groups: list[str]
    include_authorized_operations: bool  # v3+

    def __init__(
        self,
        groups: list[str] | None = None,
        include_authorized_operations: bool = False,
    ) -> None:
        self.groups = [] if groups is None else groups
        self.include_authorized_operations = include_authorized_operations


class DescribedGroupMember(Message):
    __slots__ = (
        "member_id", "group_instance_id", "client_id", "client_host", "member_metadata", "member_assignment",
    )
    member_id: str
    group_instance_id: str | None  # v4+
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.member_metadata = member_metadata
        self.member_assignment = member_assignment


class DescribedGroup(Message):
    __slots__ = (
        "error_code", "error_message", "group_id", "group_state", "protocol_type", "protocol_data", "members",
        "authorized_operations",
    )
    error_code: int
    error_message: str | None  # v6+
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: list[DescribedGroupMember]
    authorized_operations: int  # v3+

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] | None = None,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.protocol_type = protocol_type
        self.protocol_data = protocol_data
        self.members = [] if members is None else members
        self.authorized_operations = authorized_operations


class DescribeGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "groups")
    throttle_time_ms: int  # v1+
    groups: list[DescribedGroup]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is None else groups


def decode_request(body: Buffer, version: int) -> DescribeGroupsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_groups_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeGroups request", version, error) from None
    return items[0]


def encode_request(request: DescribeGroupsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_groups_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DescribeGroups request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DescribeGroupsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_groups_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeGroups response", version, error) from None
    return items[0]


def encode_response(response: DescribeGroupsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_groups_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DescribeGroups response", version, error) from error
    return b"".join(out)


_Z = Struct(">?")
_Zx = Struct(">?x")
_BB = Struct(">BB")
_h = Struct(">h")
_hB = Struct(">hB")
_hh = Struct(">hh")
_i = Struct(">i")
_iB = Struct(">iB")
_ii = Struct(">ii")
_ix = Struct(">ix")


def _read_describe_groups_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeGroupsRequest], int]:
    items: list[DescribeGroupsRequest] = []
    if version >= 5:
        for _ in range(number):
            item = new(DescribeGroupsRequest)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > end - position:
                raise bad_length("DescribeGroupsRequest.groups", count, end - position)
            item.groups = []
            append = item.groups.append
            for _ in range(count):
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeGroupsRequest.groups", length, end - position)
                append(buffer[position:stop].decode())
                position = stop
            include_authorized_operations, tags = _BB.unpack_from(buffer, position)
            position += 2
            if include_authorized_operations > 1:
                raise bad_bool(
                    "DescribeGroupsRequest.include_authorized_operations", include_authorized_operations,
                )
            item.include_authorized_operations = include_authorized_operations == 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeGroupsRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeGroupsRequest)
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 2:
                raise bad_length("DescribeGroupsRequest.groups", count, end - position)
            item.groups = []
            append = item.groups.append
            for _ in range(count):
                (length,) = _h.unpack_from(buffer, position)
                position += 2
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribeGroupsRequest.groups", length, end - position)
                append(buffer[position:stop].decode())
                position = stop
            if version >= 3:
                include_authorized_operations = buffer[position]
                position += 1
                if include_authorized_operations > 1:
                    raise bad_bool(
                        "DescribeGroupsRequest.include_authorized_operations", include_authorized_operations,
                    )
                item.include_authorized_operations = include_authorized_operations == 1
            else:
                item.include_authorized_operations = False
            items.append(item)
    return items, position


def _write_describe_groups_request(
    out: list[Buffer], items: Sequence[DescribeGroupsRequest], version: int,
) -> None:
    if version >= 5:
        for item in items:
            length = len(item.groups) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.groups:
                for text in item.groups:
                    raw = text.encode()
                    length = len(raw) + 1
                    out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                    out.append(raw)
            out.append(_Zx.pack(item.include_authorized_operations))
    else:
        for item in items:
            out.append(_i.pack(len(item.groups)))
            if item.groups:
                for text in item.groups:
                    raw = text.encode()
                    out.append(_h.pack(len(raw)))
                    out.append(raw)
            if version >= 3:
                out.append(_Z.pack(item.include_authorized_operations))


def _read_described_group_member(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribedGroupMember], int]:
    items: list[DescribedGroupMember] = []
    if version >= 5:
        for _ in range(number):
            item = new(DescribedGroupMember)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroupMember.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.group_instance_id = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("DescribedGroupMember.group_instance_id", length, end - position)
                item.group_instance_id = buffer[position:stop].decode()
                position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroupMember.client_id", length, end - position)
            item.client_id = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroupMember.client_host", length, end - position)
            item.client_host = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroupMember.member_metadata", length, end - position)
            item.member_metadata = buffer[position:stop]
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroupMember.member_assignment", length, end - position)
            item.member_assignment = buffer[position:stop]
            position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribedGroupMember")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribedGroupMember)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroupMember.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
            if version >= 4:
                (length,) = _h.unpack_from(buffer, position)
                position += 2
                if length == -1:
                    item.group_instance_id = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("DescribedGroupMember.group_instance_id", length, end - position)
                    item.group_instance_id = buffer[position:stop].decode()
                    position = stop
            else:
                item.group_instance_id = None
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroupMember.client_id", length, end - position)
            item.client_id = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroupMember.client_host", length, end - position)
            item.client_host = buffer[position:stop].decode()
            position = stop
            (length,) = _i.unpack_from(buffer, position)
            position += 4
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroupMember.member_metadata", length, end - position)
            item.member_metadata = buffer[position:stop]
            position = stop
            (length,) = _i.unpack_from(buffer, position)
            position += 4
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroupMember.member_assignment", length, end - position)
            item.member_assignment = buffer[position:stop]
            position = stop
            items.append(item)
    return items, position


def _write_described_group_member(
    out: list[Buffer], items: Sequence[DescribedGroupMember], version: int,
) -> None:
    if version >= 5:
        for item in items:
            raw = item.member_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            if item.group_instance_id is None:
                out.append(b"\0")
            else:
                raw = item.group_instance_id.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            raw = item.client_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            raw = item.client_host.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            raw = item.member_metadata
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            raw = item.member_assignment
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.member_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            if version >= 4:
                raw = b"" if item.group_instance_id is None else item.group_instance_id.encode()
                out.append(_h.pack(-1 if item.group_instance_id is None else len(raw)))
                out.append(raw)
            raw = item.client_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = item.client_host.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = item.member_metadata
            out.append(_i.pack(len(raw)))
            out.append(raw)
            raw = item.member_assignment
            out.append(_i.pack(len(raw)))
            out.append(raw)


def _read_described_group(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribedGroup], int]:
    items: list[DescribedGroup] = []
    if version >= 5:
        for _ in range(number):
            item = new(DescribedGroup)
            if version >= 6:
                item.error_code, length = _hB.unpack_from(buffer, position)
                position += 3
            else:
                (item.error_code,) = _h.unpack_from(buffer, position)
                position += 2
            if version >= 6:
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                if length == -1:
                    item.error_message = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("DescribedGroup.error_message", length, end - position)
                    item.error_message = buffer[position:stop].decode()
                    position = stop
            else:
                item.error_message = None
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroup.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroup.group_state", length, end - position)
            item.group_state = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroup.protocol_type", length, end - position)
            item.protocol_type = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroup.protocol_data", length, end - position)
            item.protocol_data = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 7:
                raise bad_length("DescribedGroup.members", count, end - position)
            item.members, position = _read_described_group_member(buffer, position, end, version, count)
            item.authorized_operations, tags = _iB.unpack_from(buffer, position)
            position += 5
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribedGroup")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribedGroup)
            item.error_code, length = _hh.unpack_from(buffer, position)
            position += 4
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroup.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroup.group_state", length, end - position)
            item.group_state = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroup.protocol_type", length, end - position)
            item.protocol_type = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribedGroup.protocol_data", length, end - position)
            item.protocol_data = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 14:
                raise bad_length("DescribedGroup.members", count, end - position)
            item.members, position = _read_described_group_member(buffer, position, end, version, count)
            if version >= 3:
                (item.authorized_operations,) = _i.unpack_from(buffer, position)
                position += 4
            else:
                item.authorized_operations = -2147483648
            item.error_message = None
            items.append(item)
    return items, position


def _write_described_group(out: list[Buffer], items: Sequence[DescribedGroup], version: int) -> None:
    if version >= 5:
        for item in items:
            out.append(_h.pack(item.error_code))
            if version >= 6:
                if item.error_message is None:
                    out.append(b"\0")
                else:
                    raw = item.error_message.encode()
                    length = len(raw) + 1
                    out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                    out.append(raw)
            raw = item.group_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            raw = item.group_state.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            raw = item.protocol_type.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            raw = item.protocol_data.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.members) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.members:
                _write_described_group_member(out, item.members, version)
            out.append(_ix.pack(item.authorized_operations))
    else:
        for item in items:
            raw = item.group_id.encode()
            out.append(_hh.pack(item.error_code, len(raw)))
            out.append(raw)
            raw = item.group_state.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = item.protocol_type.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = item.protocol_data.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.members)))
            if item.members:
                _write_described_group_member(out, item.members, version)
            if version >= 3:
                out.append(_i.pack(item.authorized_operations))


def _read_describe_groups_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeGroupsResponse], int]:
    items: list[DescribeGroupsResponse] = []
    if version >= 5:
        for _ in range(number):
            item = new(DescribeGroupsResponse)
            item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
            position += 5
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 12:
                raise bad_length("DescribeGroupsResponse.groups", count, end - position)
            item.groups, position = _read_described_group(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "DescribeGroupsResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(DescribeGroupsResponse)
            if version >= 1:
                item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
                position += 8
            else:
                (count,) = _i.unpack_from(buffer, position)
                position += 4
                item.throttle_time_ms = 0
            if count < 0 or count > (end - position) // 14:
                raise bad_length("DescribeGroupsResponse.groups", count, end - position)
            item.groups, position = _read_described_group(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_describe_groups_response(
    out: list[Buffer], items: Sequence[DescribeGroupsResponse], version: int,
) -> None:
    if version >= 5:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            length = len(item.groups) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.groups:
                _write_described_group(out, item.groups, version)
            out.append(b"\0")
    else:
        for item in items:
            if version >= 1:
                out.append(_ii.pack(item.throttle_time_ms, len(item.groups)))
            else:
                out.append(_i.pack(len(item.groups)))
            if item.groups:
                _write_described_group(out, item.groups, version)
