# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""AddPartitionsToTxn (24), versions 0 to 5."""

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
    bad_bool,
    bad_length,
    does_not_fit,
    long_uvarint,
    malformed,
    skip_tags,
    unsupported,
    uvarint,
)

KEY: Final = 24
NAME: Final = "AddPartitionsToTxn"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 5
FLEXIBLE_FROM: Final = 3

new = object.__new__


class AddPartitionsToTxnTopic(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[int]

    def __init__(
        self,
        name: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class AddPartitionsToTxnTransaction(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics")
    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool
    topics: list[AddPartitionsToTxnTopic]

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics = [] if topics is None else topics


class AddPartitionsToTxnRequest(Message):
    __slots__ = (
        "v3_and_below_transactional_id", "transactions", "v3_and_below_producer_id",
        "v3_and_below_producer_epoch", "v3_and_below_topics",
    )
    v3_and_below_transactional_id: str  # v0–v3
    transactions: list[AddPartitionsToTxnTransaction]  # v4+
    v3_and_below_producer_id: int  # v0–v3
    v3_and_below_producer_epoch: int  # v0–v3
    v3_and_below_topics: list[AddPartitionsToTxnTopic]  # v0–v3

    def __init__(
        self,
        v3_and_below_transactional_id: str = "",
        transactions: list[AddPartitionsToTxnTransaction] | None = None,
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnTopic] | None = None,
    ) -> None:
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.transactions = [] if transactions is None else transactions
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = [] if v3_and_below_topics is None else v3_and_below_topics


class AddPartitionsToTxnPartitionResult(Message):
    __slots__ = ("partition_index", "partition_error_code")
    partition_index: int
    partition_error_code: int

    def __init__(
        self,
        partition_index: int = 0,
        partition_error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.partition_error_code = partition_error_code


class AddPartitionsToTxnTopicResult(Message):
    __slots__ = ("name", "results_by_partition")
    name: str
    results_by_partition: list[AddPartitionsToTxnPartitionResult]

    def __init__(
        self,
        name: str = "",
        results_by_partition: list[AddPartitionsToTxnPartitionResult] | None = None,
    ) -> None:
        self.name = name
        self.results_by_partition = [] if results_by_partition is None else results_by_partition


class AddPartitionsToTxnResult(Message):
    __slots__ = ("transactional_id", "topic_results")
    transactional_id: str
    topic_results: list[AddPartitionsToTxnTopicResult]

    def __init__(
        self,
        transactional_id: str = "",
        topic_results: list[AddPartitionsToTxnTopicResult] | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.topic_results = [] if topic_results is None else topic_results


class AddPartitionsToTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "results_by_topic_v3_and_below", "error_code", "results_by_transaction")
    throttle_time_ms: int
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult]  # v0–v3
    error_code: int  # v4+
    results_by_transaction: list[AddPartitionsToTxnResult]  # v4+

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] | None = None,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results_by_topic_v3_and_below = (
            [] if results_by_topic_v3_and_below is None else results_by_topic_v3_and_below
        )
        self.error_code = error_code
        self.results_by_transaction = [] if results_by_transaction is None else results_by_transaction


def decode_request(body: Buffer, version: int) -> AddPartitionsToTxnRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_add_partitions_to_txn_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("AddPartitionsToTxn request", version, error) from None
    return items[0]


def encode_request(request: AddPartitionsToTxnRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_add_partitions_to_txn_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("AddPartitionsToTxn request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> AddPartitionsToTxnResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_add_partitions_to_txn_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("AddPartitionsToTxn response", version, error) from None
    return items[0]


def encode_response(response: AddPartitionsToTxnResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_add_partitions_to_txn_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("AddPartitionsToTxn response", version, error) from error
    return b"".join(out)


_h = Struct(">h")
_hB = Struct(">hB")
_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ihx = Struct(">ihx")
_ii = Struct(">ii")
_qh = Struct(">qh")
_qhZ = Struct(">qh?")
_qhB = Struct(">qhB")
_qhBB = Struct(">qhBB")
_qhi = Struct(">qhi")


def _read_add_partitions_to_txn_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AddPartitionsToTxnTopic], int]:
    items: list[AddPartitionsToTxnTopic] = []
    if version >= 3:
        for _ in range(number):
            item = new(AddPartitionsToTxnTopic)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AddPartitionsToTxnTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("AddPartitionsToTxnTopic.partitions", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.partitions = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "AddPartitionsToTxnTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AddPartitionsToTxnTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AddPartitionsToTxnTopic.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 4:
                raise bad_length("AddPartitionsToTxnTopic.partitions", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.partitions = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            items.append(item)
    return items, position


def _write_add_partitions_to_txn_topic(
    out: list[Buffer], items: Sequence[AddPartitionsToTxnTopic], version: int,
) -> None:
    if version >= 3:
        for item in items:
            raw = item.name.encode()
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
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                count = len(item.partitions)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                out.append(numbers.pack(*item.partitions))


def _read_add_partitions_to_txn_transaction(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AddPartitionsToTxnTransaction], int]:
    items: list[AddPartitionsToTxnTransaction] = []
    for _ in range(number):
        item = new(AddPartitionsToTxnTransaction)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("AddPartitionsToTxnTransaction.transactional_id", length, end - position)
        item.transactional_id = buffer[position:stop].decode()
        position = stop
        item.producer_id, item.producer_epoch, verify_only, count = _qhBB.unpack_from(buffer, position)
        position += 12
        if verify_only > 1:
            raise bad_bool("AddPartitionsToTxnTransaction.verify_only", verify_only)
        item.verify_only = verify_only == 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 3:
            raise bad_length("AddPartitionsToTxnTransaction.topics", count, end - position)
        item.topics, position = _read_add_partitions_to_txn_topic(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "AddPartitionsToTxnTransaction")
        items.append(item)
    return items, position


def _write_add_partitions_to_txn_transaction(
    out: list[Buffer], items: Sequence[AddPartitionsToTxnTransaction], version: int,
) -> None:
    for item in items:
        raw = item.transactional_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_qhZ.pack(item.producer_id, item.producer_epoch, item.verify_only))
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_add_partitions_to_txn_topic(out, item.topics, version)
        out.append(b"\0")


def _read_add_partitions_to_txn_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AddPartitionsToTxnRequest], int]:
    items: list[AddPartitionsToTxnRequest] = []
    if version >= 3:
        for _ in range(number):
            item = new(AddPartitionsToTxnRequest)
            if version <= 3:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length(
                        "AddPartitionsToTxnRequest.v3_and_below_transactional_id", length, end - position,
                    )
                item.v3_and_below_transactional_id = buffer[position:stop].decode()
                position = stop
            else:
                item.v3_and_below_transactional_id = ""
            if version >= 4:
                count = buffer[position]
                position += 1
                if count > 127:
                    count, position = long_uvarint(buffer, position, count)
                count -= 1
                if count < 0 or count > (end - position) // 14:
                    raise bad_length("AddPartitionsToTxnRequest.transactions", count, end - position)
                item.transactions, position = _read_add_partitions_to_txn_transaction(
                    buffer, position, end, version, count,
                )
            else:
                item.transactions = []
            if version >= 4:
                item.v3_and_below_producer_id = 0
                item.v3_and_below_producer_epoch = 0
            else:
                (
                    item.v3_and_below_producer_id, item.v3_and_below_producer_epoch, count,
                ) = _qhB.unpack_from(buffer, position)
                position += 11
            if version <= 3:
                if count > 127:
                    count, position = long_uvarint(buffer, position, count)
                count -= 1
                if count < 0 or count > (end - position) // 3:
                    raise bad_length("AddPartitionsToTxnRequest.v3_and_below_topics", count, end - position)
                item.v3_and_below_topics, position = _read_add_partitions_to_txn_topic(
                    buffer, position, end, version, count,
                )
            else:
                item.v3_and_below_topics = []
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "AddPartitionsToTxnRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AddPartitionsToTxnRequest)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length(
                    "AddPartitionsToTxnRequest.v3_and_below_transactional_id", length, end - position,
                )
            item.v3_and_below_transactional_id = buffer[position:stop].decode()
            position = stop
            (
                item.v3_and_below_producer_id, item.v3_and_below_producer_epoch, count,
            ) = _qhi.unpack_from(buffer, position)
            position += 14
            if count < 0 or count > (end - position) // 6:
                raise bad_length("AddPartitionsToTxnRequest.v3_and_below_topics", count, end - position)
            item.v3_and_below_topics, position = _read_add_partitions_to_txn_topic(
                buffer, position, end, version, count,
            )
            item.transactions = []
            items.append(item)
    return items, position


def _write_add_partitions_to_txn_request(
    out: list[Buffer], items: Sequence[AddPartitionsToTxnRequest], version: int,
) -> None:
    if version >= 3:
        for item in items:
            if version <= 3:
                raw = item.v3_and_below_transactional_id.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if version >= 4:
                length = len(item.transactions) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.transactions:
                    _write_add_partitions_to_txn_transaction(out, item.transactions, version)
            if version >= 4:
                pass
            else:
                out.append(_qh.pack(item.v3_and_below_producer_id, item.v3_and_below_producer_epoch))
            if version <= 3:
                length = len(item.v3_and_below_topics) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.v3_and_below_topics:
                    _write_add_partitions_to_txn_topic(out, item.v3_and_below_topics, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.v3_and_below_transactional_id.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(
                _qhi.pack(
                    item.v3_and_below_producer_id, item.v3_and_below_producer_epoch,
                    len(item.v3_and_below_topics),
                )
            )
            if item.v3_and_below_topics:
                _write_add_partitions_to_txn_topic(out, item.v3_and_below_topics, version)


def _read_add_partitions_to_txn_partition_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AddPartitionsToTxnPartitionResult], int]:
    items: list[AddPartitionsToTxnPartitionResult] = []
    if version >= 3:
        for _ in range(number):
            item = new(AddPartitionsToTxnPartitionResult)
            item.partition_index, item.partition_error_code, tags = _ihB.unpack_from(buffer, position)
            position += 7
            if tags:
                position = skip_tags(buffer, position, end, tags, "AddPartitionsToTxnPartitionResult")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AddPartitionsToTxnPartitionResult)
            item.partition_index, item.partition_error_code = _ih.unpack_from(buffer, position)
            position += 6
            items.append(item)
    return items, position


def _write_add_partitions_to_txn_partition_result(
    out: list[Buffer], items: Sequence[AddPartitionsToTxnPartitionResult], version: int,
) -> None:
    if version >= 3:
        for item in items:
            out.append(_ihx.pack(item.partition_index, item.partition_error_code))
    else:
        for item in items:
            out.append(_ih.pack(item.partition_index, item.partition_error_code))


def _read_add_partitions_to_txn_topic_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AddPartitionsToTxnTopicResult], int]:
    items: list[AddPartitionsToTxnTopicResult] = []
    if version >= 3:
        for _ in range(number):
            item = new(AddPartitionsToTxnTopicResult)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AddPartitionsToTxnTopicResult.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 7:
                raise bad_length("AddPartitionsToTxnTopicResult.results_by_partition", count, end - position)
            item.results_by_partition, position = _read_add_partitions_to_txn_partition_result(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "AddPartitionsToTxnTopicResult")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AddPartitionsToTxnTopicResult)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("AddPartitionsToTxnTopicResult.name", length, end - position)
            item.name = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 6:
                raise bad_length("AddPartitionsToTxnTopicResult.results_by_partition", count, end - position)
            item.results_by_partition, position = _read_add_partitions_to_txn_partition_result(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_add_partitions_to_txn_topic_result(
    out: list[Buffer], items: Sequence[AddPartitionsToTxnTopicResult], version: int,
) -> None:
    if version >= 3:
        for item in items:
            raw = item.name.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.results_by_partition) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.results_by_partition:
                _write_add_partitions_to_txn_partition_result(out, item.results_by_partition, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.name.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.results_by_partition)))
            if item.results_by_partition:
                _write_add_partitions_to_txn_partition_result(out, item.results_by_partition, version)


def _read_add_partitions_to_txn_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AddPartitionsToTxnResult], int]:
    items: list[AddPartitionsToTxnResult] = []
    for _ in range(number):
        item = new(AddPartitionsToTxnResult)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("AddPartitionsToTxnResult.transactional_id", length, end - position)
        item.transactional_id = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 3:
            raise bad_length("AddPartitionsToTxnResult.topic_results", count, end - position)
        item.topic_results, position = _read_add_partitions_to_txn_topic_result(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "AddPartitionsToTxnResult")
        items.append(item)
    return items, position


def _write_add_partitions_to_txn_result(
    out: list[Buffer], items: Sequence[AddPartitionsToTxnResult], version: int,
) -> None:
    for item in items:
        raw = item.transactional_id.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.topic_results) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topic_results:
            _write_add_partitions_to_txn_topic_result(out, item.topic_results, version)
        out.append(b"\0")


def _read_add_partitions_to_txn_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[AddPartitionsToTxnResponse], int]:
    items: list[AddPartitionsToTxnResponse] = []
    if version >= 3:
        for _ in range(number):
            item = new(AddPartitionsToTxnResponse)
            if version >= 4:
                (item.throttle_time_ms,) = _i.unpack_from(buffer, position)
                position += 4
            else:
                item.throttle_time_ms, count = _iB.unpack_from(buffer, position)
                position += 5
            if version <= 3:
                if count > 127:
                    count, position = long_uvarint(buffer, position, count)
                count -= 1
                if count < 0 or count > (end - position) // 3:
                    raise bad_length(
                        "AddPartitionsToTxnResponse.results_by_topic_v3_and_below", count, end - position,
                    )
                item.results_by_topic_v3_and_below, position = _read_add_partitions_to_txn_topic_result(
                    buffer, position, end, version, count,
                )
            else:
                item.results_by_topic_v3_and_below = []
            if version >= 4:
                item.error_code, count = _hB.unpack_from(buffer, position)
                position += 3
            else:
                item.error_code = 0
            if version >= 4:
                if count > 127:
                    count, position = long_uvarint(buffer, position, count)
                count -= 1
                if count < 0 or count > (end - position) // 3:
                    raise bad_length(
                        "AddPartitionsToTxnResponse.results_by_transaction", count, end - position,
                    )
                item.results_by_transaction, position = _read_add_partitions_to_txn_result(
                    buffer, position, end, version, count,
                )
            else:
                item.results_by_transaction = []
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "AddPartitionsToTxnResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AddPartitionsToTxnResponse)
            item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
            position += 8
            if count < 0 or count > (end - position) // 6:
                raise bad_length(
                    "AddPartitionsToTxnResponse.results_by_topic_v3_and_below", count, end - position,
                )
            item.results_by_topic_v3_and_below, position = _read_add_partitions_to_txn_topic_result(
                buffer, position, end, version, count,
            )
            item.error_code = 0
            item.results_by_transaction = []
            items.append(item)
    return items, position


def _write_add_partitions_to_txn_response(
    out: list[Buffer], items: Sequence[AddPartitionsToTxnResponse], version: int,
) -> None:
    if version >= 3:
        for item in items:
            out.append(_i.pack(item.throttle_time_ms))
            if version <= 3:
                length = len(item.results_by_topic_v3_and_below) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.results_by_topic_v3_and_below:
                    _write_add_partitions_to_txn_topic_result(
                        out, item.results_by_topic_v3_and_below, version,
                    )
            if version >= 4:
                out.append(_h.pack(item.error_code))
            if version >= 4:
                length = len(item.results_by_transaction) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.results_by_transaction:
                    _write_add_partitions_to_txn_result(out, item.results_by_transaction, version)
            out.append(b"\0")
    else:
        for item in items:
            out.append(_ii.pack(item.throttle_time_ms, len(item.results_by_topic_v3_and_below)))
            if item.results_by_topic_v3_and_below:
                _write_add_partitions_to_txn_topic_result(out, item.results_by_topic_v3_and_below, version)
