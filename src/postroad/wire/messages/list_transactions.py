# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""ListTransactions (66), versions 0 to 1."""

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

KEY: Final = 66
NAME: Final = "ListTransactions"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FLEXIBLE_FROM: Final = 0

new = object.__new__


class ListTransactionsRequest(Message):
    __slots__ = ("state_filters", "producer_id_filters", "duration_filter")
    state_filters: list[str]
    producer_id_filters: list[int]
    duration_filter: int  # v1+

    def __init__(
        self,
        state_filters: list[str] | None = None,
        producer_id_filters: list[int] | None = None,
        duration_filter: int = -1,
    ) -> None:
        self.state_filters = [] if state_filters is None else state_filters
        self.producer_id_filters = [] if producer_id_filters is None else producer_id_filters
        self.duration_filter = duration_filter


class TransactionState(Message):
    __slots__ = ("transactional_id", "producer_id", "transaction_state")
    transactional_id: str
    producer_id: int
    transaction_state: str

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state


class ListTransactionsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "unknown_state_filters", "transaction_states")
    throttle_time_ms: int
    error_code: int
    unknown_state_filters: list[str]
    transaction_states: list[TransactionState]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] | None = None,
        transaction_states: list[TransactionState] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = [] if unknown_state_filters is None else unknown_state_filters
        self.transaction_states = [] if transaction_states is None else transaction_states


def decode_request(body: Buffer, version: int) -> ListTransactionsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_list_transactions_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ListTransactions request", version, error) from None
    return items[0]


def encode_request(request: ListTransactionsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_list_transactions_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("ListTransactions request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> ListTransactionsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_list_transactions_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ListTransactions response", version, error) from None
    return items[0]


def encode_response(response: ListTransactionsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_list_transactions_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("ListTransactions response", version, error) from error
    return b"".join(out)


_ih = Struct(">ih")
_ihB = Struct(">ihB")
_q = Struct(">q")
_qB = Struct(">qB")
_qx = Struct(">qx")


def _read_list_transactions_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ListTransactionsRequest], int]:
    items: list[ListTransactionsRequest] = []
    for _ in range(number):
        item = new(ListTransactionsRequest)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > end - position:
            raise bad_length("ListTransactionsRequest.state_filters", count, end - position)
        item.state_filters = []
        append = item.state_filters.append
        for _ in range(count):
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ListTransactionsRequest.state_filters", length, end - position)
            append(buffer[position:stop].decode())
            position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 8:
            raise bad_length("ListTransactionsRequest.producer_id_filters", count, end - position)
        numbers = Struct(f">{count}q")
        item.producer_id_filters = [*numbers.unpack_from(buffer, position)]
        position += count * 8
        if version >= 1:
            item.duration_filter, tags = _qB.unpack_from(buffer, position)
            position += 9
        else:
            tags = buffer[position]
            position += 1
            item.duration_filter = -1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ListTransactionsRequest")
        items.append(item)
    return items, position


def _write_list_transactions_request(
    out: list[Buffer], items: Sequence[ListTransactionsRequest], version: int,
) -> None:
    for item in items:
        length = len(item.state_filters) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.state_filters:
            for text in item.state_filters:
                raw = text.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
        length = len(item.producer_id_filters) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.producer_id_filters:
            count = len(item.producer_id_filters)
            numbers = Struct(f">{count}q")
            out.append(numbers.pack(*item.producer_id_filters))
        if version >= 1:
            out.append(_qx.pack(item.duration_filter))
        else:
            out.append(b"\0")


def _read_transaction_state(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TransactionState], int]:
    items: list[TransactionState] = []
    for _ in range(number):
        item = new(TransactionState)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("TransactionState.transactional_id", length, end - position)
        item.transactional_id = buffer[position:stop].decode()
        position = stop
        item.producer_id, length = _qB.unpack_from(buffer, position)
        position += 9
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("TransactionState.transaction_state", length, end - position)
        item.transaction_state = buffer[position:stop].decode()
        position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "TransactionState")
        items.append(item)
    return items, position


def _write_transaction_state(out: list[Buffer], items: Sequence[TransactionState], version: int) -> None:
    for item in items:
        raw = item.transactional_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_q.pack(item.producer_id))
        raw = item.transaction_state.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(b"\0")


def _read_list_transactions_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ListTransactionsResponse], int]:
    items: list[ListTransactionsResponse] = []
    for _ in range(number):
        item = new(ListTransactionsResponse)
        item.throttle_time_ms, item.error_code, count = _ihB.unpack_from(buffer, position)
        position += 7
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > end - position:
            raise bad_length("ListTransactionsResponse.unknown_state_filters", count, end - position)
        item.unknown_state_filters = []
        append = item.unknown_state_filters.append
        for _ in range(count):
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ListTransactionsResponse.unknown_state_filters", length, end - position)
            append(buffer[position:stop].decode())
            position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 11:
            raise bad_length("ListTransactionsResponse.transaction_states", count, end - position)
        item.transaction_states, position = _read_transaction_state(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "ListTransactionsResponse")
        items.append(item)
    return items, position


def _write_list_transactions_response(
    out: list[Buffer], items: Sequence[ListTransactionsResponse], version: int,
) -> None:
    for item in items:
        out.append(_ih.pack(item.throttle_time_ms, item.error_code))
        length = len(item.unknown_state_filters) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.unknown_state_filters:
            for text in item.unknown_state_filters:
                raw = text.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
        length = len(item.transaction_states) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.transaction_states:
            _write_transaction_state(out, item.transaction_states, version)
        out.append(b"\0")
