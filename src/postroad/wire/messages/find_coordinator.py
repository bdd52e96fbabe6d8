# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""FindCoordinator (10), versions 0 to 6."""

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

KEY: Final = 10
NAME: Final = "FindCoordinator"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 6
FLEXIBLE_FROM: Final = 3

new = object.__new__


class FindCoordinatorRequest(Message):
    __slots__ = ("key", "key_type", "coordinator_keys")
    key: str  # v0–v3
    key_type: int  # v1+
    coordinator_keys: list[str]  # v4+

    def __init__(
        self,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] | None = None,
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = [] if coordinator_keys is None else coordinator_keys


class Coordinator(Message):
    __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message")
    key: str
    node_id: int
    host: str
    port: int
    error_code: int
    error_message: str | None

    def __init__(
        self,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message


class FindCoordinatorResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "coordinators", "error_message", "node_id", "host", "port")
    throttle_time_ms: int  # v1+
    error_code: int  # v0–v3
    coordinators: list[Coordinator]  # v4+
    error_message: str | None  # v1–v3
    node_id: int  # v0–v3
    host: str  # v0–v3
    port: int  # v0–v3

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        coordinators: list[Coordinator] | None = None,
        error_message: str | None = None,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.coordinators = [] if coordinators is None else coordinators
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port


def decode_request(body: Buffer, version: int) -> FindCoordinatorRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_find_coordinator_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("FindCoordinator request", version, error) from None
    return items[0]


def encode_request(request: FindCoordinatorRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_find_coordinator_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("FindCoordinator request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> FindCoordinatorResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_find_coordinator_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("FindCoordinator response", version, error) from None
    return items[0]


def encode_response(response: FindCoordinatorResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_find_coordinator_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("FindCoordinator response", version, error) from error
    return b"".join(out)


_b = Struct(">b")
_bB = Struct(">bB")
_h = Struct(">h")
_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ihh = Struct(">ihh")
_ix = Struct(">ix")


def _read_find_coordinator_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[FindCoordinatorRequest], int]:
    items: list[FindCoordinatorRequest] = []
    if version >= 3:
        for _ in range(number):
            item = new(FindCoordinatorRequest)
            if version <= 3:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("FindCoordinatorRequest.key", length, end - position)
                item.key = buffer[position:stop].decode()
                position = stop
            else:
                item.key = ""
            if version >= 4:
                item.key_type, count = _bB.unpack_from(buffer, position)
                position += 2
            else:
                (item.key_type,) = _b.unpack_from(buffer, position)
                position += 1
            if version >= 4:
                if count > 127:
                    count, position = long_uvarint(buffer, position, count)
                count -= 1
                if count < 0 or count > end - position:
                    raise bad_length("FindCoordinatorRequest.coordinator_keys", count, end - position)
                item.coordinator_keys = []
                append = item.coordinator_keys.append
                for _ in range(count):
                    length = buffer[position]
                    position += 1
                    if length > 127:
                        length, position = long_uvarint(buffer, position, length)
                    length -= 1
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("FindCoordinatorRequest.coordinator_keys", length, end - position)
                    append(buffer[position:stop].decode())
                    position = stop
            else:
                item.coordinator_keys = []
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "FindCoordinatorRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(FindCoordinatorRequest)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("FindCoordinatorRequest.key", length, end - position)
            item.key = buffer[position:stop].decode()
            position = stop
            if version >= 1:
                (item.key_type,) = _b.unpack_from(buffer, position)
                position += 1
            else:
                item.key_type = 0
            item.coordinator_keys = []
            items.append(item)
    return items, position


def _write_find_coordinator_request(
    out: list[Buffer], items: Sequence[FindCoordinatorRequest], version: int,
) -> None:
    if version >= 3:
        for item in items:
            if version <= 3:
                raw = item.key.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(_b.pack(item.key_type))
            if version >= 4:
                length = len(item.coordinator_keys) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.coordinator_keys:
                    for text in item.coordinator_keys:
                        raw = text.encode()
                        length = len(raw) + 1
                        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                        out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.key.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            if version >= 1:
                out.append(_b.pack(item.key_type))


def _read_coordinator(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[Coordinator], int]:
    items: list[Coordinator] = []
    for _ in range(number):
        item = new(Coordinator)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("Coordinator.key", length, end - position)
        item.key = buffer[position:stop].decode()
        position = stop
        item.node_id, length = _iB.unpack_from(buffer, position)
        position += 5
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("Coordinator.host", length, end - position)
        item.host = buffer[position:stop].decode()
        position = stop
        item.port, item.error_code, length = _ihB.unpack_from(buffer, position)
        position += 7
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.error_message = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("Coordinator.error_message", length, end - position)
            item.error_message = buffer[position:stop].decode()
            position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "Coordinator")
        items.append(item)
    return items, position


def _write_coordinator(out: list[Buffer], items: Sequence[Coordinator], version: int) -> None:
    for item in items:
        raw = item.key.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_i.pack(item.node_id))
        raw = item.host.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_ih.pack(item.port, item.error_code))
        if item.error_message is None:
            out.append(b"\0")
        else:
            raw = item.error_message.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(b"\0")


def _read_find_coordinator_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[FindCoordinatorResponse], int]:
    items: list[FindCoordinatorResponse] = []
    if version >= 3:
        for _ in range(number):
            item = new(FindCoordinatorResponse)
            if version >= 4:
                item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
                position += 5
                item.error_code = 0
            else:
                item.throttle_time_ms, item.error_code = _ih.unpack_from(buffer, position)
                position += 6
            if version >= 4:
                if count > 127:
                    count, position = long_uvarint(buffer, position, count)
                count -= 1
                if count < 0 or count > (end - position) // 14:
                    raise bad_length("FindCoordinatorResponse.coordinators", count, end - position)
                item.coordinators, position = _read_coordinator(buffer, position, end, version, count)
            else:
                item.coordinators = []
            if version <= 3:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                if length == -1:
                    item.error_message = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("FindCoordinatorResponse.error_message", length, end - position)
                    item.error_message = buffer[position:stop].decode()
                    position = stop
            else:
                item.error_message = None
            if version >= 4:
                item.node_id = 0
            else:
                item.node_id, length = _iB.unpack_from(buffer, position)
                position += 5
            if version <= 3:
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("FindCoordinatorResponse.host", length, end - position)
                item.host = buffer[position:stop].decode()
                position = stop
            else:
                item.host = ""
            if version >= 4:
                tags = buffer[position]
                position += 1
                item.port = 0
            else:
                item.port, tags = _iB.unpack_from(buffer, position)
                position += 5
            if tags:
                position = skip_tags(buffer, position, end, tags, "FindCoordinatorResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(FindCoordinatorResponse)
            if version >= 1:
                item.throttle_time_ms, item.error_code, length = _ihh.unpack_from(buffer, position)
                position += 8
            else:
                (item.error_code,) = _h.unpack_from(buffer, position)
                position += 2
                item.throttle_time_ms = 0
            if version >= 1:
                if length == -1:
                    item.error_message = None
                else:
                    stop = position + length
                    if length < 0 or stop > end:
                        raise bad_length("FindCoordinatorResponse.error_message", length, end - position)
                    item.error_message = buffer[position:stop].decode()
                    position = stop
            else:
                item.error_message = None
            item.node_id, length = _ih.unpack_from(buffer, position)
            position += 6
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("FindCoordinatorResponse.host", length, end - position)
            item.host = buffer[position:stop].decode()
            position = stop
            (item.port,) = _i.unpack_from(buffer, position)
            position += 4
            item.coordinators = []
            items.append(item)
    return items, position


def _write_find_coordinator_response(
    out: list[Buffer], items: Sequence[FindCoordinatorResponse], version: int,
) -> None:
    if version >= 3:
        for item in items:
            if version >= 4:
                out.append(_i.pack(item.throttle_time_ms))
            else:
                out.append(_ih.pack(item.throttle_time_ms, item.error_code))
            if version >= 4:
                length = len(item.coordinators) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.coordinators:
                    _write_coordinator(out, item.coordinators, version)
            if version <= 3:
                if item.error_message is None:
                    out.append(b"\0")
                else:
                    raw = item.error_message.encode()
                    length = len(raw) + 1
                    out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                    out.append(raw)
            if version >= 4:
                pass
            else:
                out.append(_i.pack(item.node_id))
            if version <= 3:
                raw = item.host.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if version >= 4:
                out.append(b"\0")
            else:
                out.append(_ix.pack(item.port))
    else:
        for item in items:
            if version >= 1:
                out.append(_ih.pack(item.throttle_time_ms, item.error_code))
            else:
                out.append(_h.pack(item.error_code))
            if version >= 1:
                raw = b"" if item.error_message is None else item.error_message.encode()
                out.append(_h.pack(-1 if item.error_message is None else len(raw)))
                out.append(raw)
            raw = item.host.encode()
            out.append(_ih.pack(item.node_id, len(raw)))
            out.append(raw)
            out.append(_i.pack(item.port))
