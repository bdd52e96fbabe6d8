"""ReceiptKey (10003), version 0: the key with which all gateways of a cluster seal their receipts.

Postroad's own API, not listed by ApiVersions, for the same reason as `wire.peek`.

    request  := tags
    response := error (int16) key (32 bytes) tags

Tags are those of flexible versions. With an error the key is all zeros.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from postroad.wire.primitives import UNREADABLE, Buffer, Message, malformed, skip_tags, unsupported

KEY: Final = 10_003
NAME: Final = "ReceiptKey"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0

KEY_BYTES: Final = 32

_RESPONSE: Final = Struct(f">h{KEY_BYTES}s")
_NO_TAGS: Final = b"\0"


class ReceiptKeyRequest(Message):
    __slots__ = ()


class ReceiptKeyResponse(Message):
    __slots__ = ("error_code", "key")

    def __init__(self, error_code: int = 0, key: bytes = bytes(KEY_BYTES)) -> None:
        self.error_code = error_code
        self.key = key


def decode_request(body: Buffer, version: int) -> ReceiptKeyRequest:
    _check_version(version)
    buffer = bytes(body)
    try:
        skip_tags(buffer, 1, len(buffer), buffer[0], "ReceiptKeyRequest")
    except UNREADABLE as error:
        raise malformed("ReceiptKey request", version, error) from None
    return ReceiptKeyRequest()


def encode_request(request: ReceiptKeyRequest, version: int) -> bytes:
    _check_version(version)
    return _NO_TAGS


def decode_response(body: Buffer, version: int) -> ReceiptKeyResponse:
    _check_version(version)
    buffer = bytes(body)
    try:
        error_code, key = _RESPONSE.unpack_from(buffer)
        at = _RESPONSE.size
        skip_tags(buffer, at + 1, len(buffer), buffer[at], "ReceiptKeyResponse")
    except UNREADABLE as error:
        raise malformed("ReceiptKey response", version, error) from None
    return ReceiptKeyResponse(error_code, key)


def encode_response(response: ReceiptKeyResponse, version: int) -> bytes:
    _check_version(version)
    return _RESPONSE.pack(response.error_code, response.key) + _NO_TAGS


def _check_version(version: int) -> None:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
