# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""Heartbeat (12), versions 0 to 4."""

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

KEY: Final = 12
NAME: Final = "Heartbeat"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 4
FLEXIBLE_FROM: Final = 4

new = object.__new__


class HeartbeatRequest(Message):
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id")
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None  # v3+

    def __init__(
        self,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id


class HeartbeatResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code")
    throttle_time_ms: int  # v1+
    error_code: int

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code


def decode_request(body: Buffer, version: int) -> HeartbeatRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_heartbeat_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("Heartbeat request", version, error) from None
    return items[0]


def encode_request(request: HeartbeatRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_heartbeat_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("Heartbeat request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> HeartbeatResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_heartbeat_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("Heartbeat response", version, error) from None
    return items[0]


def encode_response(response: HeartbeatResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_heartbeat_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("Heartbeat response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ihx = Struct(">ihx")


def _read_heartbeat_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[HeartbeatRequest], int]:
    items: list[HeartbeatRequest] = []
    if version >= 4:
        for _ in range(number):
            item = new(HeartbeatRequest)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("HeartbeatRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            item.generation_id, length = _iB.unpack_from(buffer, position)
            position += 5
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("HeartbeatRequest.member_id", length, end - position)
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
                    raise bad_length("HeartbeatRequest.group_instance_id", length, end - position)
                item.group_instance_id = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "HeartbeatRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(HeartbeatRequest)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("HeartbeatRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            item.generation_id, length = _ih.unpack_from(buffer, position)
            position += 6
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("HeartbeatRequest.member_id", length, end - position)
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
                        raise bad_length("HeartbeatRequest.group_instance_id", length, end - position)
                    item.group_instance_id = buffer[position:stop].decode()
                    position = stop
            else:
                item.group_instance_id = None
            items.append(item)
    return items, position


def _write_heartbeat_request(out: list[Buffer], items: Sequence[HeartbeatRequest], version: int) -> None:
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


def _read_heartbeat_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[HeartbeatResponse], int]:
    items: list[HeartbeatResponse] = []
    if version >= 4:
        for _ in range(number):
            item = new(HeartbeatResponse)
            item.throttle_time_ms, item.error_code, tags = _ihB.unpack_from(buffer, position)
            position += 7
            if tags:
                position = skip_tags(buffer, position, end, tags, "HeartbeatResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(HeartbeatResponse)
            if version >= 1:
                item.throttle_time_ms, item.error_code = _ih.unpack_from(buffer, position)
                position += 6
            else:
                (item.error_code,) = _h.unpack_from(buffer, position)
                position += 2
                item.throttle_time_ms = 0
            items.append(item)
    return items, position


def _write_heartbeat_response(out: list[Buffer], items: Sequence[HeartbeatResponse], version: int) -> None:
    if version >= 4:
        for item in items:
            out.append(_ihx.pack(item.throttle_time_ms, item.error_code))
    else:
        for item in items:
            if version >= 1:
                out.append(_ih.pack(item.throttle_time_ms, item.error_code))
            else:
                out.append(_h.pack(item.error_code))
