# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""DescribeTransactions (65), versions 0 to 0."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final

from postroad.wire.primitives import (
    INT32_ARRAYS,
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

KEY: Final = 65
NAME: Final = "DescribeTransactions"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0

new = object.__new__


class DescribeTransactionsRequest(Message):
    __slots__ = ("transactional_ids",)
    transactional_ids: list[str]

    def __init__(
        self,
        transactional_ids: list[str] | None = None,
    ) -> None:
        self.transactional_ids = [] if transactional_ids is None else transactional_ids


class TopicData(Message):
    __slots__ = ("topic", "partitions")
    topic: str
    partitions: list[int]

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is None else partitions


class TransactionState(Message):
    __slots__ = (
        "error_code", "transactional_id", "transaction_state", "transaction_timeout_ms",
        "transaction_start_time_ms", "producer_id", "producer_epoch", "topics",
    )
    error_code: int
    transactional_id: str
    transaction_state: str
    transaction_timeout_ms: int
    transaction_start_time_ms: int
    producer_id: int
    producer_epoch: int
    topics: list[TopicData]

    def __init__(
        self,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: list[TopicData] | None = None,
    ) -> None:
        self.error_code = error_code
        self.transactional_id = transactional_id
        self.transaction_state = transaction_state
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_start_time_ms = transaction_start_time_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.topics = [] if topics is None else topics


class DescribeTransactionsResponse(Message):
    __slots__ = ("throttle_time_ms", "transaction_states")
    throttle_time_ms: int
    transaction_states: list[TransactionState]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        transaction_states: list[TransactionState] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states = [] if transaction_states is None else transaction_states


def decode_request(body: Buffer, version: int) -> DescribeTransactionsRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_transactions_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeTransactions request", version, error) from None
    return items[0]


def encode_request(request: DescribeTransactionsRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_transactions_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("DescribeTransactions request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> DescribeTransactionsResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_describe_transactions_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("DescribeTransactions response", version, error) from None
    return items[0]


def encode_response(response: DescribeTransactionsResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_describe_transactions_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("DescribeTransactions response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_hB = Struct(">hB")
_i = Struct(">i")
_iB = Struct(">iB")
_iqqh = Struct(">iqqh")
_iqqhB = Struct(">iqqhB")


def _read_describe_transactions_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeTransactionsRequest], int]:
    items: list[DescribeTransactionsRequest] = []
    for _ in range(number):
        item = new(DescribeTransactionsRequest)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > end - position:
            raise bad_length("DescribeTransactionsRequest.transactional_ids", count, end - position)
        item.transactional_ids = []
        append = item.transactional_ids.append
        for _ in range(count):
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("DescribeTransactionsRequest.transactional_ids", length, end - position)
            append(buffer[position:stop].decode())
            position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeTransactionsRequest")
        items.append(item)
    return items, position


def _write_describe_transactions_request(
    out: list[Buffer], items: Sequence[DescribeTransactionsRequest], version: int,
) -> None:
    for item in items:
        length = len(item.transactional_ids) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.transactional_ids:
            for text in item.transactional_ids:
                raw = text.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
        out.append(b"\0")


def _read_topic_data(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TopicData], int]:
    items: list[TopicData] = []
    for _ in range(number):
        item = new(TopicData)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("TopicData.topic", length, end - position)
        item.topic = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("TopicData.partitions", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.partitions = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "TopicData")
        items.append(item)
    return items, position


def _write_topic_data(out: list[Buffer], items: Sequence[TopicData], version: int) -> None:
    for item in items:
        raw = item.topic.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            count = len(item.partitions)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.partitions))
        out.append(b"\0")


def _read_transaction_state(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TransactionState], int]:
    items: list[TransactionState] = []
    for _ in range(number):
        item = new(TransactionState)
        item.error_code, length = _hB.unpack_from(buffer, position)
        position += 3
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("TransactionState.transactional_id", length, end - position)
        item.transactional_id = buffer[position:stop].decode()
        position = stop
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("TransactionState.transaction_state", length, end - position)
        item.transaction_state = buffer[position:stop].decode()
        position = stop
        (
            item.transaction_timeout_ms, item.transaction_start_time_ms, item.producer_id,
            item.producer_epoch, count,
        ) = _iqqhB.unpack_from(buffer, position)
        position += 23
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 3:
            raise bad_length("TransactionState.topics", count, end - position)
        item.topics, position = _read_topic_data(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "TransactionState")
        items.append(item)
    return items, position


def _write_transaction_state(out: list[Buffer], items: Sequence[TransactionState], version: int) -> None:
    for item in items:
        out.append(_h.pack(item.error_code))
        raw = item.transactional_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        raw = item.transaction_state.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(
            _iqqh.pack(
                item.transaction_timeout_ms, item.transaction_start_time_ms, item.producer_id,
                item.producer_epoch,
            )
        )
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_topic_data(out, item.topics, version)
        out.append(b"\0")


def _read_describe_transactions_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[DescribeTransactionsResponse], int]:
    items: list[DescribeTransactionsResponse] = []
    for _ in range(number):
        item = new(DescribeTransactionsResponse)
        item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
        position += 5
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 28:
            raise bad_length("DescribeTransactionsResponse.transaction_states", count, end - position)
        item.transaction_states, position = _read_transaction_state(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "DescribeTransactionsResponse")
        items.append(item)
    return items, position


def _write_describe_transactions_response(
    out: list[Buffer], items: Sequence[DescribeTransactionsResponse], version: int,
) -> None:
    for item in items:
        out.append(_i.pack(item.throttle_time_ms))
        length = len(item.transaction_states) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.transaction_states:
            _write_transaction_state(out, item.transaction_states, version)
        out.append(b"\0")
