# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""SyncGroup (14), versions 0 to 5."""

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

KEY: Final = 14
NAME: Final = "SyncGroup"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 5
FLEXIBLE_FROM: Final = 4

new = object.__new__


class SyncGroupRequestAssignment(Message):
    __slots__ = ("member_id", "assignment")
    member_id: str
    assignment: bytes

    def __init__(
        self,
        member_id: str = "",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.assignment = assignment


class SyncGroupRequest(Message):
    __slots__ = (
        "group_id", "generation_id", "member_id", "group_instance_id", "protocol_type", "protocol_name",
        "assignments",
    )
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None  # v3+
    protocol_type: str | None  # v5+
    protocol_name: str | None  # v5+
    assignments: list[SyncGroupRequestAssignment]

    def __init__(
        self,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = [] if assignments is None else assignments


class SyncGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment")
    throttle_time_ms: int  # v1+
    error_code: int
    protocol_type: str | None  # v5+
    protocol_name: str | None  # v5+
    assignment: bytes

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment


def decode_request(body: Buffer, version: int) -> SyncGroupRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_sync_group_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("SyncGroup request", version, error) from None
    return items[0]


def encode_request(request: SyncGroupRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_sync_group_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("SyncGroup request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> SyncGroupResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_sync_group_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("SyncGroup response", version, error) from None
    return items[0]


def encode_response(response: SyncGroupResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_sync_group_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("SyncGroup response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_hi = Struct(">hi")
_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ihi = Struct(">ihi")


def _read_sync_group_request_assignment(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[SyncGroupRequestAssignment], int]:
    items: list[SyncGroupRequestAssignment] = []
    if version >= 4:
        for _ in range(number):
            item = new(SyncGroupRequestAssignment)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("SyncGroupRequestAssignment.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("SyncGroupRequestAssignment.assignment", length, end - position)
            item.assignment = buffer[position:stop]
            position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "SyncGroupRequestAssignment")
            items.append(item)
    else:
        for _ in range(number):
            item = new(SyncGroupRequestAssignment)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("SyncGroupRequestAssignment.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
            (length,) = _i.unpack_from(buffer, position)
            position += 4
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("SyncGroupRequestAssignment.assignment", length, end - position)
            item.assignment = buffer[position:stop]
            position = stop
            items.append(item)
    return items, position


def _write_sync_group_request_assignment(
    out: list[Buffer], items: Sequence[SyncGroupRequestAssignment], version: int,
) -> None:
    if version >= 4:
        for item in items:
            raw = item.member_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            raw = item.assignment
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.member_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = item.assignment
            out.append(_i.pack(len(raw)))
            out.append(raw)


def _read_sync_group_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[SyncGroupRequest], int]:
    items: list[SyncGroupRequest] = []
    if version >= 4:
        for _ in range(number):
            item = new(SyncGroupRequest)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("SyncGroupRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            item.generation_id, length = _iB.unpack_from(buffer, position)
            position += 5
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("SyncGroupRequest.member_id", length, end - position)
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
                    raise bad_length("SyncGroupRequest.group_instance_id", length, end - position)
                item.group_instance_id = buffer[position:stop].decode()
                position = stop
            if version >= 5:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                if length == -1:
                    item.protocol_type = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("SyncGroupRequest.protocol_type", length, end - position)
                    item.protocol_type = buffer[position:stop].decode()
                    position = stop
            else:
                item.protocol_type = None
            if version >= 5:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                if length == -1:
                    item.protocol_name = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("SyncGroupRequest.protocol_name", length, end - position)
                    item.protocol_name = buffer[position:stop].decode()
                    position = stop
            else:
                item.protocol_name = None
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("SyncGroupRequest.assignments", count, end - position)
            item.assignments, position = _read_sync_group_request_assignment(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "SyncGroupRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(SyncGroupRequest)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("SyncGroupRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            item.generation_id, length = _ih.unpack_from(buffer, position)
            position += 6
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("SyncGroupRequest.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
            if version >= 3:
                (length,) = _h.unpack_from(buffer, position)
                position += 2
                if length == -1:
                    item.group_instance_id = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("SyncGroupRequest.group_instance_id", length, end - position)
                    item.group_instance_id = buffer[position:stop].decode()
                    position = stop
            else:
                item.group_instance_id = None
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 6:
                raise bad_length("SyncGroupRequest.assignments", count, end - position)
            item.assignments, position = _read_sync_group_request_assignment(
                buffer, position, end, version, count,
            )
            item.protocol_type = None
            item.protocol_name = None
            items.append(item)
    return items, position


def _write_sync_group_request(out: list[Buffer], items: Sequence[SyncGroupRequest], version: int) -> None:
    if version >= 4:
        for item in items:
            raw = item.group_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_i.pack(item.generation_id))
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
                if item.protocol_type is None:
                    out.append(b"\0")
                else:
                    raw = item.protocol_type.encode()
                    length = len(raw) + 1
                    out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                    out.append(raw)
            if version >= 5:
                if item.protocol_name is None:
                    out.append(b"\0")
                else:
                    raw = item.protocol_name.encode()
                    length = len(raw) + 1
                    out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                    out.append(raw)
            length = len(item.assignments) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.assignments:
                _write_sync_group_request_assignment(out, item.assignments, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.group_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = item.member_id.encode()
            out.append(_ih.pack(item.generation_id, len(raw)))
            out.append(raw)
            if version >= 3:
                raw = b"" if item.group_instance_id is None else item.group_instance_id.encode()
                out.append(_h.pack(-1 if item.group_instance_id is None else len(raw)))
                out.append(raw)
            out.append(_i.pack(len(item.assignments)))
            if item.assignments:
                _write_sync_group_request_assignment(out, item.assignments, version)


def _read_sync_group_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[SyncGroupResponse], int]:
    items: list[SyncGroupResponse] = []
    if version >= 4:
        for _ in range(number):
            item = new(SyncGroupResponse)
            if version >= 5:
                item.throttle_time_ms, item.error_code, length = _ihB.unpack_from(buffer, position)
                position += 7
            else:
                item.throttle_time_ms, item.error_code = _ih.unpack_from(buffer, position)
                position += 6
            if version >= 5:
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                if length == -1:
                    item.protocol_type = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("SyncGroupResponse.protocol_type", length, end - position)
                    item.protocol_type = buffer[position:stop].decode()
                    position = stop
            else:
                item.protocol_type = None
            if version >= 5:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                if length == -1:
                    item.protocol_name = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("SyncGroupResponse.protocol_name", length, end - position)
                    item.protocol_name = buffer[position:stop].decode()
                    position = stop
            else:
                item.protocol_name = None
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("SyncGroupResponse.assignment", length, end - position)
            item.assignment = buffer[position:stop]
            position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "SyncGroupResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(SyncGroupResponse)
            if version >= 1:
                item.throttle_time_ms, item.error_code, length = _ihi.unpack_from(buffer, position)
                position += 10
            else:
                item.error_code, length = _hi.unpack_from(buffer, position)
                position += 6
                item.throttle_time_ms = 0
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("SyncGroupResponse.assignment", length, end - position)
            item.assignment = buffer[position:stop]
            position = stop
            item.protocol_type = None
            item.protocol_name = None
            items.append(item)
    return items, position


def _write_sync_group_response(out: list[Buffer], items: Sequence[SyncGroupResponse], version: int) -> None:
    if version >= 4:
        for item in items:
            out.append(_ih.pack(item.throttle_time_ms, item.error_code))
            if version >= 5:
                if item.protocol_type is None:
                    out.append(b"\0")
                else:
                    raw = item.protocol_type.encode()
                    length = len(raw) + 1
                    out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                    out.append(raw)
            if version >= 5:
                if item.protocol_name is None:
                    out.append(b"\0")
                else:
                    raw = item.protocol_name.encode()
                    length = len(raw) + 1
                    out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                    out.append(raw)
            raw = item.assignment
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.assignment
            if version >= 1:
                out.append(_ihi.pack(item.throttle_time_ms, item.error_code, len(raw)))
            else:
                out.append(_hi.pack(item.error_code, len(raw)))
            out.append(raw)
