# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""LeaveGroup (13), versions 0 to 5."""

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

KEY: Final = 13
NAME: Final = "LeaveGroup"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 5
FLEXIBLE_FROM: Final = 4

new = object.__new__


class MemberIdentity(Message):
    __slots__ = ("member_id", "group_instance_id", "reason")
    member_id: str
    group_instance_id: str | None
    reason: str | None  # v5+

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason


class LeaveGroupRequest(Message):
    __slots__ = ("group_id", "member_id", "members")
    group_id: str
    member_id: str  # v0–v2
    members: list[MemberIdentity]  # v3+

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        members: list[MemberIdentity] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = [] if members is None else members


class MemberResponse(Message):
    __slots__ = ("member_id", "group_instance_id", "error_code")
    member_id: str
    group_instance_id: str | None
    error_code: int

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        error_code: int = 0,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code


class LeaveGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "members")
    throttle_time_ms: int  # v1+
    error_code: int
    members: list[MemberResponse]  # v3+

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[MemberResponse] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = [] if members is None else members


def decode_request(body: Buffer, version: int) -> LeaveGroupRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_leave_group_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("LeaveGroup request", version, error) from None
    return items[0]


def encode_request(request: LeaveGroupRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_leave_group_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("LeaveGroup request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> LeaveGroupResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_leave_group_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("LeaveGroup response", version, error) from None
    return items[0]


def encode_response(response: LeaveGroupResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_leave_group_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("LeaveGroup response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_hB = Struct(">hB")
_hx = Struct(">hx")
_i = Struct(">i")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ihi = Struct(">ihi")


def _read_member_identity(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[MemberIdentity], int]:
    items: list[MemberIdentity] = []
    if version >= 4:
        for _ in range(number):
            item = new(MemberIdentity)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("MemberIdentity.member_id", length, end - position)
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
                    raise bad_length("MemberIdentity.group_instance_id", length, end - position)
                item.group_instance_id = buffer[position:stop].decode()
                position = stop
            if version >= 5:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                if length == -1:
                    item.reason = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("MemberIdentity.reason", length, end - position)
                    item.reason = buffer[position:stop].decode()
                    position = stop
            else:
                item.reason = None
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "MemberIdentity")
            items.append(item)
    else:
        for _ in range(number):
            item = new(MemberIdentity)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("MemberIdentity.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            if length == -1:
                item.group_instance_id = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("MemberIdentity.group_instance_id", length, end - position)
                item.group_instance_id = buffer[position:stop].decode()
                position = stop
            item.reason = None
            items.append(item)
    return items, position


def _write_member_identity(out: list[Buffer], items: Sequence[MemberIdentity], version: int) -> None:
    if version >= 4:
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
            if version >= 5:
                if item.reason is None:
                    out.append(b"\0")
                else:
                    raw = item.reason.encode()
                    length = len(raw) + 1
                    out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                    out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.member_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = b"" if item.group_instance_id is None else item.group_instance_id.encode()
            out.append(_h.pack(-1 if item.group_instance_id is None else len(raw)))
            out.append(raw)


def _read_leave_group_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[LeaveGroupRequest], int]:
    items: list[LeaveGroupRequest] = []
    if version >= 4:
        for _ in range(number):
            item = new(LeaveGroupRequest)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("LeaveGroupRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("LeaveGroupRequest.members", count, end - position)
            item.members, position = _read_member_identity(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            item.member_id = ""
            if tags:
                position = skip_tags(buffer, position, end, tags, "LeaveGroupRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(LeaveGroupRequest)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("LeaveGroupRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            if version <= 2:
                (length,) = _h.unpack_from(buffer, position)
                position += 2
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("LeaveGroupRequest.member_id", length, end - position)
                item.member_id = buffer[position:stop].decode()
                position = stop
            else:
                item.member_id = ""
            if version >= 3:
                (count,) = _i.unpack_from(buffer, position)
                position += 4
                if count < 0 or count > (end - position) // 4:
                    raise bad_length("LeaveGroupRequest.members", count, end - position)
                item.members, position = _read_member_identity(buffer, position, end, version, count)
            else:
                item.members = []
            items.append(item)
    return items, position


def _write_leave_group_request(out: list[Buffer], items: Sequence[LeaveGroupRequest], version: int) -> None:
    if version >= 4:
        for item in items:
            raw = item.group_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.members) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.members:
                _write_member_identity(out, item.members, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.group_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            if version <= 2:
                raw = item.member_id.encode()
                out.append(_h.pack(len(raw)))
                out.append(raw)
            if version >= 3:
                out.append(_i.pack(len(item.members)))
                if item.members:
                    _write_member_identity(out, item.members, version)


def _read_member_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[MemberResponse], int]:
    items: list[MemberResponse] = []
    if version >= 4:
        for _ in range(number):
            item = new(MemberResponse)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("MemberResponse.member_id", length, end - position)
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
                    raise bad_length("MemberResponse.group_instance_id", length, end - position)
                item.group_instance_id = buffer[position:stop].decode()
                position = stop
            item.error_code, tags = _hB.unpack_from(buffer, position)
            position += 3
            if tags:
                position = skip_tags(buffer, position, end, tags, "MemberResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(MemberResponse)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("MemberResponse.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            if length == -1:
                item.group_instance_id = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("MemberResponse.group_instance_id", length, end - position)
                item.group_instance_id = buffer[position:stop].decode()
                position = stop
            (item.error_code,) = _h.unpack_from(buffer, position)
            position += 2
            items.append(item)
    return items, position


def _write_member_response(out: list[Buffer], items: Sequence[MemberResponse], version: int) -> None:
    if version >= 4:
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
            out.append(_hx.pack(item.error_code))
    else:
        for item in items:
            raw = item.member_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = b"" if item.group_instance_id is None else item.group_instance_id.encode()
            out.append(_h.pack(-1 if item.group_instance_id is None else len(raw)))
            out.append(raw)
            out.append(_h.pack(item.error_code))


def _read_leave_group_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[LeaveGroupResponse], int]:
    items: list[LeaveGroupResponse] = []
    if version >= 4:
        for _ in range(number):
            item = new(LeaveGroupResponse)
            item.throttle_time_ms, item.error_code, count = _ihB.unpack_from(buffer, position)
            position += 7
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 5:
                raise bad_length("LeaveGroupResponse.members", count, end - position)
            item.members, position = _read_member_response(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "LeaveGroupResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(LeaveGroupResponse)
            if version >= 3:
                item.throttle_time_ms, item.error_code, count = _ihi.unpack_from(buffer, position)
                position += 10
            elif version >= 1:
                item.throttle_time_ms, item.error_code = _ih.unpack_from(buffer, position)
                position += 6
            else:
                (item.error_code,) = _h.unpack_from(buffer, position)
                position += 2
                item.throttle_time_ms = 0
            if version >= 3:
                if count < 0 or count > (end - position) // 6:
                    raise bad_length("LeaveGroupResponse.members", count, end - position)
                item.members, position = _read_member_response(buffer, position, end, version, count)
            else:
                item.members = []
            items.append(item)
    return items, position


def _write_leave_group_response(out: list[Buffer], items: Sequence[LeaveGroupResponse], version: int) -> None:
    if version >= 4:
        for item in items:
            out.append(_ih.pack(item.throttle_time_ms, item.error_code))
            length = len(item.members) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.members:
                _write_member_response(out, item.members, version)
            out.append(b"\0")
    else:
        for item in items:
            if version >= 1:
                out.append(_ih.pack(item.throttle_time_ms, item.error_code))
            else:
                out.append(_h.pack(item.error_code))
            if version >= 3:
                out.append(_i.pack(len(item.members)))
                if item.members:
                    _write_member_response(out, item.members, version)
