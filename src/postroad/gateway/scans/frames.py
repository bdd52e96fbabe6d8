"""What a gateway and its helper say to each other: a length of four bytes, then MessagePack.

gateway → helper   Begin, once; then a ScanRequest each time
helper → gateway   a ScanAnswer to each request
"""

from __future__ import annotations

import asyncio
from struct import Struct
from typing import Final, TypeVar

import msgspec

LENGTH: Final = Struct(">I")
NOT_OF_THE_PROTOCOL: Final = -1  # the code of an error that has none
T = TypeVar("T")

_encode: Final = msgspec.msgpack.Encoder().encode


class Begin(msgspec.Struct, array_like=True):
    """Where the nodes are, and how to log in: user, password, mechanism; empty: without."""

    bootstrap: str
    credentials: tuple[str, ...]


class ScanRequest(msgspec.Struct, array_like=True):
    """As `client.scan.scan` takes it; positions by partition. An empty filter: all messages."""

    topic: str
    starts: dict[int, int]
    ends: dict[int, int]
    filter: str
    found_max: int
    size_bytes: int
    seconds: float
    isolation: int


class FoundRecord(msgspec.Struct, array_like=True):
    """A header's name is in bytes: it may be no UTF-8."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes, bytes | None]]


class ScanAnswer(msgspec.Struct, array_like=True):
    """`error_code` 0: it went well. NOT_OF_THE_PROTOCOL: an error that has no code."""

    error_code: int
    error: str
    found: list[FoundRecord]
    scanned: int
    positions: dict[int, int]
    is_over: bool


def write(message: msgspec.Struct) -> bytes:
    body = _encode(message)
    return LENGTH.pack(len(body)) + body


async def read(stream: asyncio.StreamReader, type_: type[T]) -> T:
    """Raises IncompleteReadError at the end, msgspec.DecodeError for what is no such message."""
    (length,) = LENGTH.unpack(await stream.readexactly(LENGTH.size))
    return msgspec.msgpack.decode(await stream.readexactly(length), type=type_)
