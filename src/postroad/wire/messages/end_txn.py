# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""EndTxn (26), versions 0 to 5."""

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
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 26
NAME: Final = "EndTxn"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 5
FLEXIBLE_FROM: Final = 3

new = object.__new__


class EndTxnRequest(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "committed")
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed


class EndTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch")
    throttle_time_ms: int
    error_code: int
    producer_id: int  # v5+
    producer_epoch: int  # v5+

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch


def decode_request(body: Buffer, version: int) -> EndTxnRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_end_txn_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("EndTxn request", version, error) from None
    return items[0]


def encode_request(request: EndTxnRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_end_txn_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("EndTxn request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> EndTxnResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_end_txn_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("EndTxn response", version, error) from None
    return items[0]


def encode_response(response: EndTxnResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_end_txn_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("EndTxn response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ihqhB = Struct(">ihqhB")
_ihqhx = Struct(">ihqhx")
_ihx = Struct(">ihx")
_qhZ = Struct(">qh?")
_qhZx = Struct(">qh?x")
_qhB = Struct(">qhB")
_qhBB = Struct(">qhBB")


def _read_end_txn_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[EndTxnRequest], int]:
    items: list[EndTxnRequest] = []
    if version >= 3:
        for _ in range(number):
            item = new(EndTxnRequest)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("EndTxnRequest.transactional_id", length, end - position)
            item.transactional_id = buffer[position:stop].decode()
            position = stop
            item.producer_id, item.producer_epoch, committed, tags = _qhBB.unpack_from(buffer, position)
            position += 12
            if committed > 1:
                raise bad_bool("EndTxnRequest.committed", committed)
            item.committed = committed == 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "EndTxnRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(EndTxnRequest)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("EndTxnRequest.transactional_id", length, end - position)
            item.transactional_id = buffer[position:stop].decode()
            position = stop
            item.producer_id, item.producer_epoch, committed = _qhB.unpack_from(buffer, position)
            position += 11
            if committed > 1:
                raise bad_bool("EndTxnRequest.committed", committed)
            item.committed = committed == 1
            items.append(item)
    return items, position


def _write_end_txn_request(out: list[Buffer], items: Sequence[EndTxnRequest], version: int) -> None:
    if version >= 3:
        for item in items:
            raw = item.transactional_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_qhZx.pack(item.producer_id, item.producer_epoch, item.committed))
    else:
        for item in items:
            raw = item.transactional_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_qhZ.pack(item.producer_id, item.producer_epoch, item.committed))


def _read_end_txn_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[EndTxnResponse], int]:
    items: list[EndTxnResponse] = []
    if version >= 3:
        for _ in range(number):
            item = new(EndTxnResponse)
            if version >= 5:
                (
                    item.throttle_time_ms, item.error_code, item.producer_id, item.producer_epoch, tags,
                ) = _ihqhB.unpack_from(buffer, position)
                position += 17
            else:
                item.throttle_time_ms, item.error_code, tags = _ihB.unpack_from(buffer, position)
                position += 7
                item.producer_id = -1
                item.producer_epoch = -1
            if tags:
                position = skip_tags(buffer, position, end, tags, "EndTxnResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(EndTxnResponse)
            item.throttle_time_ms, item.error_code = _ih.unpack_from(buffer, position)
            position += 6
            item.producer_id = -1
            item.producer_epoch = -1
            items.append(item)
    return items, position


def _write_end_txn_response(out: list[Buffer], items: Sequence[EndTxnResponse], version: int) -> None:
    if version >= 3:
        for item in items:
            if version >= 5:
                out.append(
                    _ihqhx.pack(item.throttle_time_ms, item.error_code, item.producer_id, item.producer_epoch)
                )
            else:
                out.append(_ihx.pack(item.throttle_time_ms, item.error_code))
    else:
        for item in items:
            out.append(_ih.pack(item.throttle_time_ms, item.error_code))
