"""NodeMetrics (10002), version 0: the metrics of one node, as Prometheus reads them.

Postroad's own API, not listed by ApiVersions, for the same reason as `wire.peek`.

    request  := tags
    response := error (int16) text (nullable string) tags

Strings and tags are those of flexible versions.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from postroad.wire.primitives import (
    UNREADABLE,
    Buffer,
    Message,
    bad_length,
    long_uvarint,
    malformed,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 10_002
NAME: Final = "NodeMetrics"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0

_ERROR: Final = Struct(">h")
_NO_TAGS: Final = b"\0"


class NodeMetricsRequest(Message):
    __slots__ = ()


class NodeMetricsResponse(Message):
    __slots__ = ("error_code", "text")

    def __init__(self, error_code: int = 0, text: str = "") -> None:
        self.error_code = error_code
        self.text = text


def decode_request(body: Buffer, version: int) -> NodeMetricsRequest:
    _check_version(version)
    buffer = bytes(body)
    try:
        skip_tags(buffer, 1, len(buffer), buffer[0], "NodeMetricsRequest")
    except UNREADABLE as error:
        raise malformed("NodeMetrics request", version, error) from None
    return NodeMetricsRequest()


def encode_request(request: NodeMetricsRequest, version: int) -> bytes:
    _check_version(version)
    return _NO_TAGS


def decode_response(body: Buffer, version: int) -> NodeMetricsResponse:
    _check_version(version)
    buffer = bytes(body)
    try:
        (error_code,) = _ERROR.unpack_from(buffer)
        length, at = buffer[_ERROR.size], _ERROR.size + 1
        if length > 127:
            length, at = long_uvarint(buffer, at, length)
        if not 0 < length <= len(buffer) - at + 1:
            raise bad_length("NodeMetricsResponse.text", length - 1, len(buffer) - at)
        end = at + length - 1
        text = buffer[at:end].decode()
        skip_tags(buffer, end + 1, len(buffer), buffer[end], "NodeMetricsResponse")
    except UNREADABLE as error:
        raise malformed("NodeMetrics response", version, error) from None
    return NodeMetricsResponse(error_code, text)


def encode_response(response: NodeMetricsResponse, version: int) -> bytes:
    _check_version(version)
    raw = response.text.encode(errors="replace")
    return _ERROR.pack(response.error_code) + uvarint(len(raw) + 1) + raw + _NO_TAGS


def _check_version(version: int) -> None:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
