# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""SaslHandshake (17), versions 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final

from postroad.wire.primitives import (
    UNREADABLE,
    Buffer,
    Message,
    bad_length,
    does_not_fit,
    malformed,
    unsupported,
)

KEY: Final = 17
NAME: Final = "SaslHandshake"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FLEXIBLE_FROM: Final = 32767

new = object.__new__


class SaslHandshakeRequest(Message):
    __slots__ = ("mechanism",)
    mechanism: str

    def __init__(
        self,
        mechanism: str = "",
    ) -> None:
        self.mechanism = mechanism


class SaslHandshakeResponse(Message):
    __slots__ = ("error_code", "mechanisms")
    error_code: int
    mechanisms: list[str]

    def __init__(
        self,
        error_code: int = 0,
        mechanisms: list[str] | None = None,
    ) -> None:
        self.error_code = error_code
        self.mechanisms = [] if mechanisms is None else mechanisms


def decode_request(body: Buffer, version: int) -> SaslHandshakeRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_sasl_handshake_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("SaslHandshake request", version, error) from None
    return items[0]


def encode_request(request: SaslHandshakeRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_sasl_handshake_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("SaslHandshake request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> SaslHandshakeResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_sasl_handshake_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("SaslHandshake response", version, error) from None
    return items[0]


def encode_response(response: SaslHandshakeResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_sasl_handshake_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("SaslHandshake response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_hi = Struct(">hi")


def _read_sasl_handshake_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[SaslHandshakeRequest], int]:
    items: list[SaslHandshakeRequest] = []
    for _ in range(number):
        item = new(SaslHandshakeRequest)
        (length,) = _h.unpack_from(buffer, position)
        position += 2
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("SaslHandshakeRequest.mechanism", length, end - position)
        item.mechanism = buffer[position:stop].decode()
        position = stop
        items.append(item)
    return items, position


def _write_sasl_handshake_request(
    out: list[Buffer], items: Sequence[SaslHandshakeRequest], version: int,
) -> None:
    for item in items:
        raw = item.mechanism.encode()
        out.append(_h.pack(len(raw)))
        out.append(raw)


def _read_sasl_handshake_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[SaslHandshakeResponse], int]:
    items: list[SaslHandshakeResponse] = []
    for _ in range(number):
        item = new(SaslHandshakeResponse)
        item.error_code, count = _hi.unpack_from(buffer, position)
        position += 6
        if count < 0 or count > (end - position) // 2:
            raise bad_length("SaslHandshakeResponse.mechanisms", count, end - position)
        item.mechanisms = []
        append = item.mechanisms.append
        for _ in range(count):
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("SaslHandshakeResponse.mechanisms", length, end - position)
            append(buffer[position:stop].decode())
            position = stop
        items.append(item)
    return items, position


def _write_sasl_handshake_response(
    out: list[Buffer], items: Sequence[SaslHandshakeResponse], version: int,
) -> None:
    for item in items:
        out.append(_hi.pack(item.error_code, len(item.mechanisms)))
        if item.mechanisms:
            for text in item.mechanisms:
                raw = text.encode()
                out.append(_h.pack(len(raw)))
                out.append(raw)
