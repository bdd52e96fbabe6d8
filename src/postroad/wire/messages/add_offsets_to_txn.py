# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""AddOffsetsToTxn (25), versions 0 to 4."""

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

KEY: Final = 25
NAME: Final = "AddOffsetsToTxn"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 4
FLEXIBLE_FROM: Final = 3

new = object.__new__


class AddOffsetsToTxnRequest(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "group_id")
    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id


class AddOffsetsToTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code")
    throttle_time_ms: int
    error_code: int

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code


def decode_request(body: Buffer, version: int) -> AddOffsetsToTxnRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_add_offsets_to_txn_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("AddOffsetsToTxn request", version, error) from None
    return items[0]


def encode_request(request: AddOffsetsToTxnRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_add_offsets_to_txn_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("AddOffsetsToTxn request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> AddOffsetsToTxnResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_add_offsets_to_txn_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("AddOffsetsToTxn response", version, error) from None
    return items[0]


def encode_response(response: AddOffsetsToTxnResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_add_offsets_to_txn_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("AddOffsetsToTxn response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ihx = Struct(">ihx")
_qh = Struct(">qh")
_qhB = Struct(">qhB")
_qhh = Struct(">qhh")


def _read_add_offsets_to_txn_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AddOffsetsToTxnRequest], int]:
    items: list[AddOffsetsToTxnRequest] = []
    if version >= 3:
        for _ in range(number):
            item = new(AddOffsetsToTxnRequest)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AddOffsetsToTxnRequest.transactional_id", length, end - position)
            item.transactional_id = buffer[position:stop].decode()
            position = stop
            item.producer_id, item.producer_epoch, length = _qhB.unpack_from(buffer, position)
            position += 11
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AddOffsetsToTxnRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "AddOffsetsToTxnRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AddOffsetsToTxnRequest)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AddOffsetsToTxnRequest.transactional_id", length, end - position)
            item.transactional_id = buffer[position:stop].decode()
            position = stop
            item.producer_id, item.producer_epoch, length = _qhh.unpack_from(buffer, position)
            position += 12
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AddOffsetsToTxnRequest.group_id", length, end - position)
            item.group_id = buffer[position:stop].decode()
            position = stop
            items.append(item)
    return items, position


def _write_add_offsets_to_txn_request(
    out: list[Buffer], items: Sequence[AddOffsetsToTxnRequest], version: int,
) -> None:
    if version >= 3:
        for item in items:
            raw = item.transactional_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(_qh.pack(item.producer_id, item.producer_epoch))
            raw = item.group_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.transactional_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            raw = item.group_id.encode()
            out.append(_qhh.pack(item.producer_id, item.producer_epoch, len(raw)))
            out.append(raw)


def _read_add_offsets_to_txn_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AddOffsetsToTxnResponse], int]:
    items: list[AddOffsetsToTxnResponse] = []
    if version >= 3:
        for _ in range(number):
            item = new(AddOffsetsToTxnResponse)
            item.throttle_time_ms, item.error_code, tags = _ihB.unpack_from(buffer, position)
            position += 7
            if tags:
                position = skip_tags(buffer, position, end, tags, "AddOffsetsToTxnResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AddOffsetsToTxnResponse)
            item.throttle_time_ms, item.error_code = _ih.unpack_from(buffer, position)
            position += 6
            items.append(item)
    return items, position


def _write_add_offsets_to_txn_response(
    out: list[Buffer], items: Sequence[AddOffsetsToTxnResponse], version: int,
) -> None:
    if version >= 3:
        for item in items:
            out.append(_ihx.pack(item.throttle_time_ms, item.error_code))
    else:
        for item in items:
            out.append(_ih.pack(item.throttle_time_ms, item.error_code))
