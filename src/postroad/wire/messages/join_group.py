# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""JoinGroup (11), versions 0 to 9."""

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
    must_not_be_null,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 11
NAME: Final = "JoinGroup"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 9
FLEXIBLE_FROM: Final = 6

new = object.__new__


class JoinGroupRequestProtocol(Message):
    __slots__ = ("name", "metadata")
    name: str
    metadata: bytes

    def __init__(
        self,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name = name
        self.metadata = metadata


class JoinGroupRequest(Message):
    __slots__ = (
        "group_id", "session_timeout_ms", "rebalance_timeout_ms", "member_id", "group_instance_id",
        "protocol_type", "protocols", "reason",
    )
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int  # v1+
    member_id: str
    group_instance_id: str | None  # v5+
    protocol_type: str
    protocols: list[JoinGroupRequestProtocol]
    reason: str | None  # v8+

    def __init__(
        self,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] | None = None,
        reason: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = [] if protocols is None else protocols
        self.reason = reason


class JoinGroupResponseMember(Message):
    __slots__ = ("member_id", "group_instance_id", "metadata")
    member_id: str
    group_instance_id: str | None  # v5+
    metadata: bytes

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        metadata: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.metadata = metadata


class JoinGroupResponse(Message):
    __slots__ = (
        "throttle_time_ms", "error_code", "generation_id", "protocol_type", "protocol_name", "leader",
        "skip_assignment", "member_id", "members",
    )
    throttle_time_ms: int  # v2+
    error_code: int
    generation_id: int
    protocol_type: str | None  # v7+
    protocol_name: str | None  # null in v7+
    leader: str
    skip_assignment: bool  # v9+
    member_id: str
    members: list[JoinGroupResponseMember]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponseMember] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = [] if members is None else members


def decode_request(body: Buffer, version: int) -> JoinGroupRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_join_group_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("JoinGroup request", version, error) from None
    return items[0]


def encode_request(request: JoinGroupRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_join_group_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("JoinGroup request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> JoinGroupResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_join_group_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("JoinGroup response", version, error) from None
    return items[0]


def encode_response(response: JoinGroupResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_join_group_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("JoinGroup response", version, error) from error
    return b"".join(out)


_Z = Struct(">?")
_BB = Struct(">BB")
_h = Struct(">h")
_hih = Struct(">hih")
_i = Struct(">i")
_ih = Struct(">ih")
_ihi = Struct(">ihi")
_ihiB = Struct(">ihiB")
_ihih = Struct(">ihih")
_ii = Struct(">ii")
_iiB = Struct(">iiB")
_iih = Struct(">iih")


def _read_join_group_request_protocol(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[JoinGroupRequestProtocol], int]:
    items: list[JoinGroupRequestProtocol] = []
    if version >= 6:
        for _ in range(number):
            item = new(JoinGroupRequestProtocol)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupRequestProtocol.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupRequestProtocol.metadata", length, end - position)
            item.metadata = buffer[position:stop]
            position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "JoinGroupRequestProtocol")
            items.append(item)
    else:
        for _ in range(number):
            item = new(JoinGroupRequestProtocol)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupRequestProtocol.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (length,) = _i.unpack_from(buffer, position)
            position += 4
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupRequestProtocol.metadata", length, end - position)
            item.metadata = buffer[position:stop]
            position = stop
            items.append(item)
    return items, position


def _write_join_group_request_protocol(
    out: list[Buffer], items: Sequence[JoinGroupRequestProtocol], version: int,
) -> None:
    if version >= 6:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            raw = item.metadata
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = item.metadata
            out.append(_i.pack(len(raw)))
            out.append(raw)


def _read_join_group_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[JoinGroupRequest], int]:
    items: list[JoinGroupRequest] = []
    if version >= 6:
        for _ in range(number):
            item = new(JoinGroupRequest)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            item.session_timeout_ms, item.rebalance_timeout_ms, length = _iiB.unpack_from(buffer, position)
            position += 9
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupRequest.member_id", length, end - position)
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
                    raise bad_length("JoinGroupRequest.group_instance_id", length, end - position)
                item.group_instance_id = buffer[position:stop].decode()
                position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupRequest.protocol_type", length, end - position)
            item.protocol_type = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("JoinGroupRequest.protocols", count, end - position)
            item.protocols, position = _read_join_group_request_protocol(
                buffer, position, end, version, count,
            )
            if version >= 8:
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
                        raise bad_length("JoinGroupRequest.reason", length, end - position)
                    item.reason = buffer[position:stop].decode()
                    position = stop
            else:
                item.reason = None
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "JoinGroupRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(JoinGroupRequest)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            if version >= 1:
                (
                    item.session_timeout_ms, item.rebalance_timeout_ms, length,
                ) = _iih.unpack_from(buffer, position)
                position += 10
            else:
                item.session_timeout_ms, length = _ih.unpack_from(buffer, position)
                position += 6
                item.rebalance_timeout_ms = -1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupRequest.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
            if version >= 5:
                (length,) = _h.unpack_from(buffer, position)
                position += 2
                if length == -1:
                    item.group_instance_id = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("JoinGroupRequest.group_instance_id", length, end - position)
                    item.group_instance_id = buffer[position:stop].decode()
                    position = stop
            else:
                item.group_instance_id = None
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupRequest.protocol_type", length, end - position)
            item.protocol_type = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 6:
                raise bad_length("JoinGroupRequest.protocols", count, end - position)
            item.protocols, position = _read_join_group_request_protocol(
                buffer, position, end, version, count,
            )
            item.reason = None
            items.append(item)
    return items, position


def _write_join_group_request(out: list[Buffer], items: Sequence[JoinGroupRequest], version: int) -> None:
    if version >= 6:
        for item in items:
            raw = item.group_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_ii.pack(item.session_timeout_ms, item.rebalance_timeout_ms))
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
            raw = item.protocol_type.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.protocols) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.protocols:
                _write_join_group_request_protocol(out, item.protocols, version)
            if version >= 8:
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
            raw = item.group_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = item.member_id.encode()
            if version >= 1:
                out.append(_iih.pack(item.session_timeout_ms, item.rebalance_timeout_ms, len(raw)))
            else:
                out.append(_ih.pack(item.session_timeout_ms, len(raw)))
            out.append(raw)
            if version >= 5:
                raw = b"" if item.group_instance_id is None else item.group_instance_id.encode()
                out.append(_h.pack(-1 if item.group_instance_id is None else len(raw)))
                out.append(raw)
            raw = item.protocol_type.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.protocols)))
            if item.protocols:
                _write_join_group_request_protocol(out, item.protocols, version)


def _read_join_group_response_member(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[JoinGroupResponseMember], int]:
    items: list[JoinGroupResponseMember] = []
    if version >= 6:
        for _ in range(number):
            item = new(JoinGroupResponseMember)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupResponseMember.member_id", length, end - position)
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
                    raise bad_length("JoinGroupResponseMember.group_instance_id", length, end - position)
                item.group_instance_id = buffer[position:stop].decode()
                position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupResponseMember.metadata", length, end - position)
            item.metadata = buffer[position:stop]
            position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "JoinGroupResponseMember")
            items.append(item)
    else:
        for _ in range(number):
            item = new(JoinGroupResponseMember)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupResponseMember.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
            if version >= 5:
                (length,) = _h.unpack_from(buffer, position)
                position += 2
                if length == -1:
                    item.group_instance_id = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("JoinGroupResponseMember.group_instance_id", length, end - position)
                    item.group_instance_id = buffer[position:stop].decode()
                    position = stop
            else:
                item.group_instance_id = None
            (length,) = _i.unpack_from(buffer, position)
            position += 4
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupResponseMember.metadata", length, end - position)
            item.metadata = buffer[position:stop]
            position = stop
            items.append(item)
    return items, position


def _write_join_group_response_member(
    out: list[Buffer], items: Sequence[JoinGroupResponseMember], version: int,
) -> None:
    if version >= 6:
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
            raw = item.metadata
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.member_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            if version >= 5:
                raw = b"" if item.group_instance_id is None else item.group_instance_id.encode()
                out.append(_h.pack(-1 if item.group_instance_id is None else len(raw)))
                out.append(raw)
            raw = item.metadata
            out.append(_i.pack(len(raw)))
            out.append(raw)


def _read_join_group_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[JoinGroupResponse], int]:
    items: list[JoinGroupResponse] = []
    if version >= 6:
        for _ in range(number):
            item = new(JoinGroupResponse)
            if version >= 7:
                (
                    item.throttle_time_ms, item.error_code, item.generation_id, length,
                ) = _ihiB.unpack_from(buffer, position)
                position += 11
            else:
                (
                    item.throttle_time_ms, item.error_code, item.generation_id,
                ) = _ihi.unpack_from(buffer, position)
                position += 10
            if version >= 7:
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                if length == -1:
                    item.protocol_type = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("JoinGroupResponse.protocol_type", length, end - position)
                    item.protocol_type = buffer[position:stop].decode()
                    position = stop
            else:
                item.protocol_type = None
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1 and version >= 7:
                item.protocol_name = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("JoinGroupResponse.protocol_name", length, end - position)
                item.protocol_name = buffer[position:stop].decode()
                position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupResponse.leader", length, end - position)
            item.leader = buffer[position:stop].decode()
            position = stop
            if version >= 9:
                skip_assignment, length = _BB.unpack_from(buffer, position)
                position += 2
                if skip_assignment > 1:
                    raise bad_bool("JoinGroupResponse.skip_assignment", skip_assignment)
                item.skip_assignment = skip_assignment == 1
            else:
                length = buffer[position]
                position += 1
                item.skip_assignment = False
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupResponse.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("JoinGroupResponse.members", count, end - position)
            item.members, position = _read_join_group_response_member(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "JoinGroupResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(JoinGroupResponse)
            if version >= 2:
                (
                    item.throttle_time_ms, item.error_code, item.generation_id, length,
                ) = _ihih.unpack_from(buffer, position)
                position += 12
            else:
                item.error_code, item.generation_id, length = _hih.unpack_from(buffer, position)
                position += 8
                item.throttle_time_ms = 0
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupResponse.protocol_name", length, end - position)
            item.protocol_name = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupResponse.leader", length, end - position)
            item.leader = buffer[position:stop].decode()
            position = stop
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("JoinGroupResponse.member_id", length, end - position)
            item.member_id = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 6:
                raise bad_length("JoinGroupResponse.members", count, end - position)
            item.members, position = _read_join_group_response_member(buffer, position, end, version, count)
            item.protocol_type = None
            item.skip_assignment = False
            items.append(item)
    return items, position


def _write_join_group_response(out: list[Buffer], items: Sequence[JoinGroupResponse], version: int) -> None:
    if version >= 6:
        for item in items:
            out.append(_ihi.pack(item.throttle_time_ms, item.error_code, item.generation_id))
            if version >= 7:
                if item.protocol_type is None:
                    out.append(b"\0")
                else:
                    raw = item.protocol_type.encode()
                    length = len(raw) + 1
                    out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                    out.append(raw)
            if item.protocol_name is None and version <= 6:
                raise must_not_be_null("JoinGroupResponse.protocol_name", version)
            if item.protocol_name is None:
                out.append(b"\0")
            else:
                raw = item.protocol_name.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            raw = item.leader.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            if version >= 9:
                out.append(_Z.pack(item.skip_assignment))
            raw = item.member_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.members) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.members:
                _write_join_group_response_member(out, item.members, version)
            out.append(b"\0")
    else:
        for item in items:
            if item.protocol_name is None:
                raise must_not_be_null("JoinGroupResponse.protocol_name", version)
            raw = item.protocol_name.encode()
            if version >= 2:
                out.append(_ihih.pack(item.throttle_time_ms, item.error_code, item.generation_id, len(raw)))
            else:
                out.append(_hih.pack(item.error_code, item.generation_id, len(raw)))
            out.append(raw)
            raw = item.leader.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = item.member_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.members)))
            if item.members:
                _write_join_group_response_member(out, item.members, version)
