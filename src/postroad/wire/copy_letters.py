"""CopyLetters (10005), version 0: dead letters for a partition that another node leads.

Postroad's own API, not listed by ApiVersions, for the same reason as `wire.peek`. The limits of the topic are
not for letters, so this is no Produce.

    request  := topic id (16 bytes) partition (int32) one record batch (the rest)
    response := error (int16) error message (UTF-8, the rest)
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from postroad.wire.primitives import UNREADABLE, Buffer, Message, malformed, unsupported

KEY: Final = 10_005
NAME: Final = "CopyLetters"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0

_WHERE: Final = Struct(">16si")
_ERROR: Final = Struct(">h")


class CopyLettersRequest(Message):
    __slots__ = ("batch", "partition", "topic_id")

    def __init__(self, topic_id: bytes, partition: int, batch: Buffer) -> None:
        self.topic_id = topic_id
        self.partition = partition
        self.batch = batch


class CopyLettersResponse(Message):
    __slots__ = ("error_code", "error_message")

    def __init__(self, error_code: int = 0, error_message: str = "") -> None:
        self.error_code = error_code
        self.error_message = error_message


def decode_request(body: Buffer, version: int) -> CopyLettersRequest:
    """The batch is a view of the body."""
    _check_version(version)
    try:
        topic_id, partition = _WHERE.unpack_from(body)
    except UNREADABLE as error:
        raise malformed("CopyLetters request", version, error) from None
    return CopyLettersRequest(topic_id, partition, memoryview(body)[_WHERE.size :])


def encode_request(request: CopyLettersRequest, version: int) -> bytes:
    _check_version(version)
    return _WHERE.pack(request.topic_id, request.partition) + request.batch


def decode_response(body: Buffer, version: int) -> CopyLettersResponse:
    _check_version(version)
    try:
        (error_code,) = _ERROR.unpack_from(body)
        return CopyLettersResponse(error_code, bytes(body[_ERROR.size :]).decode())
    except UNREADABLE as error:
        raise malformed("CopyLetters response", version, error) from None


def encode_response(response: CopyLettersResponse, version: int) -> bytes:
    _check_version(version)
    return _ERROR.pack(response.error_code) + response.error_message.encode()


def _check_version(version: int) -> None:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
