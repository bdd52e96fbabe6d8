# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""ElectLeaders (43), versions 0 to 2."""

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

KEY: Final = 43
NAME: Final = "ElectLeaders"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 2
FLEXIBLE_FROM: Final = 2

new = object.__new__


class TopicPartitions(Message):
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


class ElectLeadersRequest(Message):
    __slots__ = ("election_type", "topic_partitions", "timeout_ms")
    election_type: int  # v1+
    topic_partitions: list[TopicPartitions] | None
    timeout_ms: int

    def __init__(
        self,
        election_type: int = 0,
        topic_partitions: list[TopicPartitions] | None = None,
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions = topic_partitions
        self.timeout_ms = timeout_ms


class PartitionResult(Message):
    __slots__ = ("partition_id", "error_code", "error_message")
    partition_id: int
    error_code: int
    error_message: str | None

    def __init__(
        self,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.error_code = error_code
        self.error_message = error_message


class ReplicaElectionResult(Message):
    __slots__ = ("topic", "partition_result")
    topic: str
    partition_result: list[PartitionResult]

    def __init__(
        self,
        topic: str = "",
        partition_result: list[PartitionResult] | None = None,
    ) -> None:
        self.topic = topic
        self.partition_result = [] if partition_result is None else partition_result


class ElectLeadersResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "replica_election_results")
    throttle_time_ms: int
    error_code: int  # v1+
    replica_election_results: list[ReplicaElectionResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ReplicaElectionResult] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results = [] if replica_election_results is None else replica_election_results


def decode_request(body: Buffer, version: int) -> ElectLeadersRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_elect_leaders_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ElectLeaders request", version, error) from None
    return items[0]


def encode_request(request: ElectLeadersRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_elect_leaders_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("ElectLeaders request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> ElectLeadersResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_elect_leaders_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("ElectLeaders response", version, error) from None
    return items[0]


def encode_response(response: ElectLeadersResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_elect_leaders_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("ElectLeaders response", version, error) from error
    return b"".join(out)


_b = Struct(">b")
_bB = Struct(">bB")
_bi = Struct(">bi")
_h = Struct(">h")
_i = Struct(">i")
_iB = Struct(">iB")
_ih = Struct(">ih")
_ihB = Struct(">ihB")
_ihh = Struct(">ihh")
_ihi = Struct(">ihi")
_ii = Struct(">ii")
_ix = Struct(">ix")


def _read_topic_partitions(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[TopicPartitions], int]:
    items: list[TopicPartitions] = []
    if version >= 2:
        for _ in range(number):
            item = new(TopicPartitions)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("TopicPartitions.topic", length, end - position)
            item.topic = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("TopicPartitions.partitions", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.partitions = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "TopicPartitions")
            items.append(item)
    else:
        for _ in range(number):
            item = new(TopicPartitions)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("TopicPartitions.topic", length, end - position)
            item.topic = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 4:
                raise bad_length("TopicPartitions.partitions", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.partitions = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            items.append(item)
    return items, position


def _write_topic_partitions(out: list[Buffer], items: Sequence[TopicPartitions], version: int) -> None:
    if version >= 2:
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
    else:
        for item in items:
            raw = item.topic.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                count = len(item.partitions)
                numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
                out.append(numbers.pack(*item.partitions))


def _read_elect_leaders_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ElectLeadersRequest], int]:
    items: list[ElectLeadersRequest] = []
    if version >= 2:
        for _ in range(number):
            item = new(ElectLeadersRequest)
            item.election_type, count = _bB.unpack_from(buffer, position)
            position += 2
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count == -1:
                item.topic_partitions = None
            else:
                if count < 0 or count > (end - position) // 3:
                    raise bad_length("ElectLeadersRequest.topic_partitions", count, end - position)
                item.topic_partitions, position = _read_topic_partitions(
                    buffer, position, end, version, count,
                )
            item.timeout_ms, tags = _iB.unpack_from(buffer, position)
            position += 5
            if tags:
                position = skip_tags(buffer, position, end, tags, "ElectLeadersRequest")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ElectLeadersRequest)
            if version >= 1:
                item.election_type, count = _bi.unpack_from(buffer, position)
                position += 5
            else:
                (count,) = _i.unpack_from(buffer, position)
                position += 4
                item.election_type = 0
            if count == -1:
                item.topic_partitions = None
            else:
                if count < 0 or count > (end - position) // 6:
                    raise bad_length("ElectLeadersRequest.topic_partitions", count, end - position)
                item.topic_partitions, position = _read_topic_partitions(
                    buffer, position, end, version, count,
                )
            (item.timeout_ms,) = _i.unpack_from(buffer, position)
            position += 4
            items.append(item)
    return items, position


def _write_elect_leaders_request(
    out: list[Buffer], items: Sequence[ElectLeadersRequest], version: int,
) -> None:
    if version >= 2:
        for item in items:
            out.append(_b.pack(item.election_type))
            if item.topic_partitions is None:
                out.append(b"\0")
            else:
                length = len(item.topic_partitions) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.topic_partitions:
                    _write_topic_partitions(out, item.topic_partitions, version)
            out.append(_ix.pack(item.timeout_ms))
    else:
        for item in items:
            if version >= 1:
                out.append(
                    _bi.pack(
                        item.election_type,
                        -1 if item.topic_partitions is None else len(item.topic_partitions),
                    )
                )
            else:
                out.append(_i.pack(-1 if item.topic_partitions is None else len(item.topic_partitions)))
            if item.topic_partitions:
                _write_topic_partitions(out, item.topic_partitions, version)
            out.append(_i.pack(item.timeout_ms))


def _read_partition_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[PartitionResult], int]:
    items: list[PartitionResult] = []
    if version >= 2:
        for _ in range(number):
            item = new(PartitionResult)
            item.partition_id, item.error_code, length = _ihB.unpack_from(buffer, position)
            position += 7
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("PartitionResult.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "PartitionResult")
            items.append(item)
    else:
        for _ in range(number):
            item = new(PartitionResult)
            item.partition_id, item.error_code, length = _ihh.unpack_from(buffer, position)
            position += 8
            if length == -1:
                item.error_message = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("PartitionResult.error_message", length, end - position)
                item.error_message = buffer[position:stop].decode()
                position = stop
            items.append(item)
    return items, position


def _write_partition_result(out: list[Buffer], items: Sequence[PartitionResult], version: int) -> None:
    if version >= 2:
        for item in items:
            out.append(_ih.pack(item.partition_id, item.error_code))
            if item.error_message is None:
                out.append(b"\0")
            else:
                raw = item.error_message.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            out.append(b"\0")
    else:
        for item in items:
            raw = b"" if item.error_message is None else item.error_message.encode()
            out.append(
                _ihh.pack(item.partition_id, item.error_code, -1 if item.error_message is None else len(raw))
            )
            out.append(raw)


def _read_replica_election_result(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ReplicaElectionResult], int]:
    items: list[ReplicaElectionResult] = []
    if version >= 2:
        for _ in range(number):
            item = new(ReplicaElectionResult)
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ReplicaElectionResult.topic", length, end - position)
            item.topic = buffer[position:stop].decode()
            position = stop
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 8:
                raise bad_length("ReplicaElectionResult.partition_result", count, end - position)
            item.partition_result, position = _read_partition_result(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "ReplicaElectionResult")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ReplicaElectionResult)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ReplicaElectionResult.topic", length, end - position)
            item.topic = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 8:
                raise bad_length("ReplicaElectionResult.partition_result", count, end - position)
            item.partition_result, position = _read_partition_result(buffer, position, end, version, count)
            items.append(item)
    return items, position


def _write_replica_election_result(
    out: list[Buffer], items: Sequence[ReplicaElectionResult], version: int,
) -> None:
    if version >= 2:
        for item in items:
            raw = item.topic.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            length = len(item.partition_result) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partition_result:
                _write_partition_result(out, item.partition_result, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.topic.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partition_result)))
            if item.partition_result:
                _write_partition_result(out, item.partition_result, version)


def _read_elect_leaders_response(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ElectLeadersResponse], int]:
    items: list[ElectLeadersResponse] = []
    if version >= 2:
        for _ in range(number):
            item = new(ElectLeadersResponse)
            item.throttle_time_ms, item.error_code, count = _ihB.unpack_from(buffer, position)
            position += 7
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("ElectLeadersResponse.replica_election_results", count, end - position)
            item.replica_election_results, position = _read_replica_election_result(
                buffer, position, end, version, count,
            )
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "ElectLeadersResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ElectLeadersResponse)
            if version >= 1:
                item.throttle_time_ms, item.error_code, count = _ihi.unpack_from(buffer, position)
                position += 10
            else:
                item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
                position += 8
                item.error_code = 0
            if count < 0 or count > (end - position) // 6:
                raise bad_length("ElectLeadersResponse.replica_election_results", count, end - position)
            item.replica_election_results, position = _read_replica_election_result(
                buffer, position, end, version, count,
            )
            items.append(item)
    return items, position


def _write_elect_leaders_response(
    out: list[Buffer], items: Sequence[ElectLeadersResponse], version: int,
) -> None:
    if version >= 2:
        for item in items:
            out.append(_ih.pack(item.throttle_time_ms, item.error_code))
            length = len(item.replica_election_results) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.replica_election_results:
                _write_replica_election_result(out, item.replica_election_results, version)
            out.append(b"\0")
    else:
        for item in items:
            if version >= 1:
                out.append(
                    _ihi.pack(item.throttle_time_ms, item.error_code, len(item.replica_election_results))
                )
            else:
                out.append(_ii.pack(item.throttle_time_ms, len(item.replica_election_results)))
            if item.replica_election_results:
                _write_replica_election_result(out, item.replica_election_results, version)
