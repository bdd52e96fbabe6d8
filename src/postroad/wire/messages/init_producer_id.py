# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""InitProducerId (22), versions 0 to 5."""

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

KEY: Final = 22
NAME: Final = "InitProducerId"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 5
FLEXIBLE_FROM: Final = 2

new = object.__new__


class InitProducerIdRequest(Message):
    __slots__ = ("transactional_id", "transaction_timeout_ms", "producer_id", "producer_epoch")
    transactional_id: str | None
    transaction_timeout_ms: int
    producer_id: int  # v3+
    producer_epoch: int  # v3+

    def __init__(
        self,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch


class InitProducerIdResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch")
    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch


def decode_request(body: Buffer, version: int) -> InitProducerIdRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_init_producer_id_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("InitProducerId request", version, error) from None
    return items[0]


def encode_request(request: InitProducerIdRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_init_producer_id_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("InitProducerId request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> InitProducerIdResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_init_producer_id_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("InitProducerId response", version, error) from None
    return items[0]


def encode_response(response: InitProducerIdResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_init_producer_id_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("InitProducerId response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_i = Struct(">i")
_iB = Struct(">iB")
_ihqh = Struct(">ihqh")
_ihqhB = Struct(">ihqhB")
_ihqhx = Struct(">ihqhx")
_iqhB = Struct(">iqhB")
_iqhx = Struct(">iqhx")
_ix = Struct(">ix")


def _read_init_producer_id_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[InitProducerIdRequest], int]:
    items: list[InitProducerIdRequest] = []
    if version >= 2:
        for _ in range(number):
            item = new(InitProducerIdRequest)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.transactional_id = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("InitProducerIdRequest.transactional_id", length, end - position)
                item.transactional_id = buffer[position:stop].decode()
                position = stop
            if version >= 3:
                (
                    item.transaction_timeout_ms, item.producer_id, item.producer_epoch, tags,
                ) = _iqhB.unpack_from(buffer, position)
                position += 15
            else:
                item.transaction_timeout_ms, tags = _iB.unpack_from(buffer, position)
                position += 5
                item.producer_id = -1
                item.producer_epoch = -1
            if tags:
                position = skip_tags(buffer, position, end, tags, "InitProducerIdRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(InitProducerIdRequest)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            if length == -1:
                item.transactional_id = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("InitProducerIdRequest.transactional_id", length, end - position)
                item.transactional_id = buffer[position:stop].decode()
                position = stop
            (item.transaction_timeout_ms,) = _i.unpack_from(buffer, position)
            position += 4
            item.producer_id = -1
            item.producer_epoch = -1
            items.append(item)
    return items, position


def _write_init_producer_id_request(
    out: list[Buffer], items: Sequence[InitProducerIdRequest], version: int,
) -> None:
    if version >= 2:
        for item in items:
            if item.transactional_id is None:
                out.append(b"\0")
            else:
                raw = item.transactional_id.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if version >= 3:
                out.append(_iqhx.pack(item.transaction_timeout_ms, item.producer_id, item.producer_epoch))
            else:
                out.append(_ix.pack(item.transaction_timeout_ms))
    else:
        for item in items:
            raw = b"" if item.transactional_id is None else item.transactional_id.encode()
            out.append(_h.pack(-1 if item.transactional_id is None else len(raw)))
            out.append(raw)
            out.append(_i.pack(item.transaction_timeout_ms))


def _read_init_producer_id_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[InitProducerIdResponse], int]:
    items: list[InitProducerIdResponse] = []
    if version >= 2:
        for _ in range(number):
            item = new(InitProducerIdResponse)
            (
                item.throttle_time_ms, item.error_code, item.producer_id, item.producer_epoch, tags,
            ) = _ihqhB.unpack_from(buffer, position)
            position += 17
            if tags:
                position = skip_tags(buffer, position, end, tags, "InitProducerIdResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(InitProducerIdResponse)
            (
                item.throttle_time_ms, item.error_code, item.producer_id, item.producer_epoch,
            ) = _ihqh.unpack_from(buffer, position)
            position += 16
            items.append(item)
    return items, position


def _write_init_producer_id_response(
    out: list[Buffer], items: Sequence[InitProducerIdResponse], version: int,
) -> None:
    if version >= 2:
        for item in items:
            out.append(
                _ihqhx.pack(item.throttle_time_ms, item.error_code, item.producer_id, item.producer_epoch)
            )
    else:
        for item in items:
            out.append(
                _ihqh.pack(item.throttle_time_ms, item.error_code, item.producer_id, item.producer_epoch)
            )
