# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""SaslAuthenticate (36), versions 0 to 2."""

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

KEY: Final = 36
NAME: Final = "SaslAuthenticate"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 2
FLEXIBLE_FROM: Final = 2

new = object.__new__


class SaslAuthenticateRequest(Message):
    __slots__ = ("auth_bytes",)
    auth_bytes: bytes

    def __init__(
        self,
        auth_bytes: bytes = b"",
    ) -> None:
        self.auth_bytes = auth_bytes


class SaslAuthenticateResponse(Message):
    __slots__ = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms")
    error_code: int
    error_message: str | None
    auth_bytes: bytes
    session_lifetime_ms: int  # v1+

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms


def decode_request(body: Buffer, version: int) -> SaslAuthenticateRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_sasl_authenticate_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("SaslAuthenticate request", version, error) from None
    return items[0]


def encode_request(request: SaslAuthenticateRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_sasl_authenticate_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("SaslAuthenticate request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> SaslAuthenticateResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_sasl_authenticate_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("SaslAuthenticate response", version, error) from None
    return items[0]


def encode_response(response: SaslAuthenticateResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_sasl_authenticate_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("SaslAuthenticate response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_hB = Struct(">hB")
_hh = Struct(">hh")
_i = Struct(">i")
_q = Struct(">q")
_qB = Struct(">qB")
_qx = Struct(">qx")


def _read_sasl_authenticate_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[SaslAuthenticateRequest], int]:
    items: list[SaslAuthenticateRequest] = []
    if version >= 2:
        for _ in range(number):
            item = new(SaslAuthenticateRequest)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("SaslAuthenticateRequest.auth_bytes", length, end - position)
            item.auth_bytes = buffer[position:stop]
            position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "SaslAuthenticateRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(SaslAuthenticateRequest)
            (length,) = _i.unpack_from(buffer, position)
            position += 4
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("SaslAuthenticateRequest.auth_bytes", length, end - position)
            item.auth_bytes = buffer[position:stop]
            position = stop
            items.append(item)
    return items, position


def _write_sasl_authenticate_request(
    out: list[Buffer], items: Sequence[SaslAuthenticateRequest], version: int,
) -> None:
    if version >= 2:
        for item in items:
            raw = item.auth_bytes
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.auth_bytes
            out.append(_i.pack(len(raw)))
            out.append(raw)


def _read_sasl_authenticate_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[SaslAuthenticateResponse], int]:
    items: list[SaslAuthenticateResponse] = []
    if version >= 2:
        for _ in range(number):
            item = new(SaslAuthenticateResponse)
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
                    raise bad_length("SaslAuthenticateResponse.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("SaslAuthenticateResponse.auth_bytes", length, end - position)
            item.auth_bytes = buffer[position:stop]
            position = stop
            item.session_lifetime_ms, tags = _qB.unpack_from(buffer, position)
            position += 9
            if tags:
                position = skip_tags(buffer, position, end, tags, "SaslAuthenticateResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(SaslAuthenticateResponse)
            item.error_code, length = _hh.unpack_from(buffer, position)
            position += 4
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("SaslAuthenticateResponse.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            (length,) = _i.unpack_from(buffer, position)
            position += 4
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("SaslAuthenticateResponse.auth_bytes", length, end - position)
            item.auth_bytes = buffer[position:stop]
            position = stop
            if version >= 1:
                (item.session_lifetime_ms,) = _q.unpack_from(buffer, position)
                position += 8
            else:
                item.session_lifetime_ms = 0
            items.append(item)
    return items, position


def _write_sasl_authenticate_response(
    out: list[Buffer], items: Sequence[SaslAuthenticateResponse], version: int,
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
            raw = item.auth_bytes
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_qx.pack(item.session_lifetime_ms))
    else:
        for item in items:
            raw = b"" if item.error_message is None else item.error_message.encode()
            out.append(_hh.pack(item.error_code, -1 if item.error_message is None else len(raw)))
            out.append(raw)
            raw = item.auth_bytes
            out.append(_i.pack(len(raw)))
            out.append(raw)
            if version >= 1:
                out.append(_q.pack(item.session_lifetime_ms))
