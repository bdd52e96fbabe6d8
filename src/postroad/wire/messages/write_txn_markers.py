# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""WriteTxnMarkers (27), versions 1 to 2."""

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

KEY: Final = 27
NAME: Final = "WriteTxnMarkers"
MIN_VERSION: Final = 1
MAX_VERSION: Final = 2
FLEXIBLE_FROM: Final = 1

new = object.__new__


class WritableTxnMarkerTopic(Message):
    __slots__ = ("name", "partition_indexes")
    name: str
    partition_indexes: list[int]

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] | None = None,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is None else partition_indexes


class WritableTxnMarker(Message):
    __slots__ = (
        "producer_id", "producer_epoch", "transaction_result", "topics", "coordinator_epoch",
        "transaction_version",
    )
    producer_id: int
    producer_epoch: int
    transaction_result: bool
    topics: list[WritableTxnMarkerTopic]
    coordinator_epoch: int
    transaction_version: int  # v2+

    def __init__(
        self,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] | None = None,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_result = transaction_result
        self.topics = [] if topics is None else topics
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version


class WriteTxnMarkersRequest(Message):
    __slots__ = ("markers",)
    markers: list[WritableTxnMarker]

    def __init__(
        self,
        markers: list[WritableTxnMarker] | None = None,
    ) -> None:
        self.markers = [] if markers is None else markers


class WritableTxnMarkerPartitionResult(Message):
    __slots__ = ("partition_index", "error_code")
    partition_index: int
    error_code: int

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class WritableTxnMarkerTopicResult(Message):
    __slots__ = ("name", "partitions")
    name: str
    partitions: list[WritableTxnMarkerPartitionResult]

    def __init__(
        self,
        name: str = "",
        partitions: list[WritableTxnMarkerPartitionResult] | None = None,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is None else partitions


class WritableTxnMarkerResult(Message):
    __slots__ = ("producer_id", "topics")
    producer_id: int
    topics: list[WritableTxnMarkerTopicResult]

    def __init__(
        self,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] | None = None,
    ) -> None:
        self.producer_id = producer_id
        self.topics = [] if topics is None else topics


class WriteTxnMarkersResponse(Message):
    __slots__ = ("markers",)
    markers: list[WritableTxnMarkerResult]

    def __init__(
        self,
        markers: list[WritableTxnMarkerResult] | None = None,
    ) -> None:
        self.markers = [] if markers is None else markers


def decode_request(body: Buffer, version: int) -> WriteTxnMarkersRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_write_txn_markers_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("WriteTxnMarkers request", version, error) from None
    return items[0]


def encode_request(request: WriteTxnMarkersRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_write_txn_markers_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("WriteTxnMarkers request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> WriteTxnMarkersResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_write_txn_markers_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("WriteTxnMarkers response", version, error) from None
    return items[0]


def encode_response(response: WriteTxnMarkersResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_write_txn_markers_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("WriteTxnMarkers response", version, error) from error
    return b"".join(out)


_iB = Struct(">iB")
_ibB = Struct(">ibB")
_ibx = Struct(">ibx")
_ihB = Struct(">ihB")
_ihx = Struct(">ihx")
_ix = Struct(">ix")
_q = Struct(">q")
_qB = Struct(">qB")
_qhZ = Struct(">qh?")
_qhBB = Struct(">qhBB")


def _read_writable_txn_marker_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[WritableTxnMarkerTopic], int]:
    items: list[WritableTxnMarkerTopic] = []
    for _ in range(number):
        item = new(WritableTxnMarkerTopic)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("WritableTxnMarkerTopic.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 4:
            raise bad_length("WritableTxnMarkerTopic.partition_indexes", count, end - position)
        numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
        item.partition_indexes = [*numbers.unpack_from(buffer, position)]
        position += count * 4
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "WritableTxnMarkerTopic")
        items.append(item)
    return items, position


def _write_writable_txn_marker_topic(
    out: list[Buffer], items: Sequence[WritableTxnMarkerTopic], version: int,
) -> None:
    for item in items:
        raw = item.name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.partition_indexes) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partition_indexes:
            count = len(item.partition_indexes)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            out.append(numbers.pack(*item.partition_indexes))
        out.append(b"\0")


def _read_writable_txn_marker(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[WritableTxnMarker], int]:
    items: list[WritableTxnMarker] = []
    for _ in range(number):
        item = new(WritableTxnMarker)
        item.producer_id, item.producer_epoch, transaction_result, count = _qhBB.unpack_from(buffer, position)
        position += 12
        if transaction_result > 1:
            raise bad_bool("WritableTxnMarker.transaction_result", transaction_result)
        item.transaction_result = transaction_result == 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 3:
            raise bad_length("WritableTxnMarker.topics", count, end - position)
        item.topics, position = _read_writable_txn_marker_topic(buffer, position, end, version, count)
        if version >= 2:
            item.coordinator_epoch, item.transaction_version, tags = _ibB.unpack_from(buffer, position)
            position += 6
        else:
            item.coordinator_epoch, tags = _iB.unpack_from(buffer, position)
            position += 5
            item.transaction_version = 0
        if tags:
            position = skip_tags(buffer, position, end, tags, "WritableTxnMarker")
        items.append(item)
    return items, position


def _write_writable_txn_marker(out: list[Buffer], items: Sequence[WritableTxnMarker], version: int) -> None:
    for item in items:
        out.append(_qhZ.pack(item.producer_id, item.producer_epoch, item.transaction_result))
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_writable_txn_marker_topic(out, item.topics, version)
        if version >= 2:
            out.append(_ibx.pack(item.coordinator_epoch, item.transaction_version))
        else:
            out.append(_ix.pack(item.coordinator_epoch))


def _read_write_txn_markers_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[WriteTxnMarkersRequest], int]:
    items: list[WriteTxnMarkersRequest] = []
    for _ in range(number):
        item = new(WriteTxnMarkersRequest)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 17:
            raise bad_length("WriteTxnMarkersRequest.markers", count, end - position)
        item.markers, position = _read_writable_txn_marker(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "WriteTxnMarkersRequest")
        items.append(item)
    return items, position


def _write_write_txn_markers_request(
    out: list[Buffer], items: Sequence[WriteTxnMarkersRequest], version: int,
) -> None:
    for item in items:
        length = len(item.markers) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.markers:
            _write_writable_txn_marker(out, item.markers, version)
        out.append(b"\0")


def _read_writable_txn_marker_partition_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[WritableTxnMarkerPartitionResult], int]:
    items: list[WritableTxnMarkerPartitionResult] = []
    for _ in range(number):
        item = new(WritableTxnMarkerPartitionResult)
        item.partition_index, item.error_code, tags = _ihB.unpack_from(buffer, position)
        position += 7
        if tags:
            position = skip_tags(buffer, position, end, tags, "WritableTxnMarkerPartitionResult")
        items.append(item)
    return items, position


def _write_writable_txn_marker_partition_result(
    out: list[Buffer], items: Sequence[WritableTxnMarkerPartitionResult], version: int,
) -> None:
    for item in items:
        out.append(_ihx.pack(item.partition_index, item.error_code))


def _read_writable_txn_marker_topic_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[WritableTxnMarkerTopicResult], int]:
    items: list[WritableTxnMarkerTopicResult] = []
    for _ in range(number):
        item = new(WritableTxnMarkerTopicResult)
        length = buffer[position]
        position += 1
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("WritableTxnMarkerTopicResult.name", length, end - position)
        item.name = buffer[position:stop].decode()
        position = stop
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 7:
            raise bad_length("WritableTxnMarkerTopicResult.partitions", count, end - position)
        item.partitions, position = _read_writable_txn_marker_partition_result(
            buffer, position, end, version, count,
        )
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "WritableTxnMarkerTopicResult")
        items.append(item)
    return items, position


def _write_writable_txn_marker_topic_result(
    out: list[Buffer], items: Sequence[WritableTxnMarkerTopicResult], version: int,
) -> None:
    for item in items:
        raw = item.name.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        length = len(item.partitions) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.partitions:
            _write_writable_txn_marker_partition_result(out, item.partitions, version)
        out.append(b"\0")


def _read_writable_txn_marker_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[WritableTxnMarkerResult], int]:
    items: list[WritableTxnMarkerResult] = []
    for _ in range(number):
        item = new(WritableTxnMarkerResult)
        item.producer_id, count = _qB.unpack_from(buffer, position)
        position += 9
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 3:
            raise bad_length("WritableTxnMarkerResult.topics", count, end - position)
        item.topics, position = _read_writable_txn_marker_topic_result(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "WritableTxnMarkerResult")
        items.append(item)
    return items, position


def _write_writable_txn_marker_result(
    out: list[Buffer], items: Sequence[WritableTxnMarkerResult], version: int,
) -> None:
    for item in items:
        out.append(_q.pack(item.producer_id))
        length = len(item.topics) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.topics:
            _write_writable_txn_marker_topic_result(out, item.topics, version)
        out.append(b"\0")


def _read_write_txn_markers_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[WriteTxnMarkersResponse], int]:
    items: list[WriteTxnMarkersResponse] = []
    for _ in range(number):
        item = new(WriteTxnMarkersResponse)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = long_uvarint(buffer, position, count)
        count -= 1
        if count < 0 or count > (end - position) // 10:
            raise bad_length("WriteTxnMarkersResponse.markers", count, end - position)
        item.markers, position = _read_writable_txn_marker_result(buffer, position, end, version, count)
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "WriteTxnMarkersResponse")
        items.append(item)
    return items, position


def _write_write_txn_markers_response(
    out: list[Buffer], items: Sequence[WriteTxnMarkersResponse], version: int,
) -> None:
    for item in items:
        length = len(item.markers) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        if item.markers:
            _write_writable_txn_marker_result(out, item.markers, version)
        out.append(b"\0")
