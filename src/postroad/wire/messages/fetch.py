# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""Fetch (1), versions 4 to 18."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final

from postroad.wire.primitives import (
    INT32_ARRAYS,
    SHORT_UVARINTS,
    UNREADABLE,
    ZERO_UUID,
    Buffer,
    Message,
    bad_length,
    bad_tag_size,
    does_not_fit,
    long_uvarint,
    malformed,
    read_tag,
    skip_tags,
    tagged_field,
    unsupported,
    uvarint,
)

KEY: Final = 1
NAME: Final = "Fetch"
MIN_VERSION: Final = 4
MAX_VERSION: Final = 18
FLEXIBLE_FROM: Final = 12

new = object.__new__


class ReplicaState(Message):
    __slots__ = ("replica_id", "replica_epoch")
    replica_id: int
    replica_epoch: int

    def __init__(
        self,
        replica_id: int = -1,
        replica_epoch: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch


class FetchPartition(Message):
    __slots__ = (
        "partition", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "log_start_offset",
        "partition_max_bytes", "replica_directory_id", "high_watermark",
    )
    partition: int
    current_leader_epoch: int  # v9+
    fetch_offset: int
    last_fetched_epoch: int  # v12+
    log_start_offset: int  # v5+
    partition_max_bytes: int
    replica_directory_id: bytes  # v17+, tag 0
    high_watermark: int  # v18+, tag 1

    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        high_watermark: int = 9223372036854775807,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_max_bytes = partition_max_bytes
        self.replica_directory_id = replica_directory_id
        self.high_watermark = high_watermark


class FetchTopic(Message):
    __slots__ = ("topic", "topic_id", "partitions")
    topic: str  # v4–v12
    topic_id: bytes  # v13+
    partitions: list[FetchPartition]

    def __init__(
        self,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[FetchPartition] | None = None,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class ForgottenTopic(Message):
    __slots__ = ("topic", "topic_id", "partitions")
    topic: str  # v7–v12
    topic_id: bytes  # v13+
    partitions: list[int]

    def __init__(
        self,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] | None = None,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class FetchRequest(Message):
    __slots__ = (
        "cluster_id", "replica_id", "replica_state", "max_wait_ms", "min_bytes", "max_bytes",
        "isolation_level", "session_id", "session_epoch", "topics", "forgotten_topics_data", "rack_id",
    )
    cluster_id: str | None  # v12+, tag 0
    replica_id: int  # v4–v14
    replica_state: ReplicaState | None  # v15+, tag 1
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int  # v7+
    session_epoch: int  # v7+
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic]  # v7+
    rack_id: str  # v11+

    def __init__(
        self,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: ReplicaState | None = None,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchTopic] | None = None,
        forgotten_topics_data: list[ForgottenTopic] | None = None,
        rack_id: str = "",
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.replica_state = replica_state
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = [] if topics is None else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is None else forgotten_topics_data
        self.rack_id = rack_id


class EpochEndOffset(Message):
    __slots__ = ("epoch", "end_offset")
    epoch: int
    end_offset: int

    def __init__(
        self,
        epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.epoch = epoch
        self.end_offset = end_offset


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_id", "leader_epoch")
    leader_id: int
    leader_epoch: int

    def __init__(
        self,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class SnapshotId(Message):
    __slots__ = ("end_offset", "epoch")
    end_offset: int
    epoch: int

    def __init__(
        self,
        end_offset: int = -1,
        epoch: int = -1,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


class AbortedTransaction(Message):
    __slots__ = ("producer_id", "first_offset")
    producer_id: int
    first_offset: int

    def __init__(
        self,
        producer_id: int = 0,
        first_offset: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset


class PartitionData(Message):
    __slots__ = (
        "partition_index", "error_code", "high_watermark", "last_stable_offset", "log_start_offset",
        "diverging_epoch", "current_leader", "snapshot_id", "aborted_transactions", "preferred_read_replica",
        "records",
    )
    partition_index: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int  # v5+
    diverging_epoch: EpochEndOffset | None  # v12+, tag 0
    current_leader: LeaderIdAndEpoch | None  # v12+, tag 1
    snapshot_id: SnapshotId | None  # v12+, tag 2
    aborted_transactions: list[AbortedTransaction] | None
    preferred_read_replica: int  # v11+
    records: Buffer | None

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: EpochEndOffset | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        snapshot_id: SnapshotId | None = None,
        aborted_transactions: list[AbortedTransaction] | None = None,
        preferred_read_replica: int = -1,
        records: Buffer | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.diverging_epoch = diverging_epoch
        self.current_leader = current_leader
        self.snapshot_id = snapshot_id
        self.aborted_transactions = aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.records = records


class FetchableTopicResponse(Message):
    __slots__ = ("topic", "topic_id", "partitions")
    topic: str  # v4–v12
    topic_id: bytes  # v13+
    partitions: list[PartitionData]

    def __init__(
        self,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] | None = None,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is None else partitions


class NodeEndpoint(Message):
    __slots__ = ("node_id", "host", "port", "rack")
    node_id: int
    host: str
    port: int
    rack: str | None

    def __init__(
        self,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class FetchResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints")
    throttle_time_ms: int
    error_code: int  # v7+
    session_id: int  # v7+
    responses: list[FetchableTopicResponse]
    node_endpoints: list[NodeEndpoint]  # v16+, tag 0

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchableTopicResponse] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses = [] if responses is None else responses
        self.node_endpoints = [] if node_endpoints is None else node_endpoints


def decode_request(body: Buffer, version: int) -> FetchRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = bytes(body)
    try:
        items, _ = _read_fetch_request(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("Fetch request", version, error) from None
    return items[0]


def encode_request(request: FetchRequest, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_fetch_request(out, (request,), version)
    except struct_error as error:
        raise does_not_fit("Fetch request", version, error) from error
    return b"".join(out)


def decode_response(body: Buffer, version: int) -> FetchResponse:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    buffer = memoryview(body).cast("B")
    try:
        items, _ = _read_fetch_response(buffer, 0, len(buffer), version, 1)
    except UNREADABLE as error:
        raise malformed("Fetch response", version, error) from None
    return items[0]


def encode_response(response: FetchResponse, version: int) -> bytes:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)
    out: list[Buffer] = []
    try:
        _write_fetch_response(out, (response,), version)
    except struct_error as error:
        raise does_not_fit("Fetch response", version, error) from error
    return b"".join(out)


_16s = Struct(">16s")
_16sB = Struct(">16sB")
_h = Struct(">h")
_i = Struct(">i")
_iB = Struct(">iB")
_ihi = Struct(">ihi")
_ihiB = Struct(">ihiB")
_ihii = Struct(">ihii")
_ihqqi = Struct(">ihqqi")
_ihqqq = Struct(">ihqqq")
_ihqqqB = Struct(">ihqqqB")
_ihqqqi = Struct(">ihqqqi")
_ii = Struct(">ii")
_iiB = Struct(">iiB")
_iiibii = Struct(">iiibii")
_iiibiiB = Struct(">iiibiiB")
_iiiibi = Struct(">iiiibi")
_iiiibii = Struct(">iiiibii")
_iiiibiiB = Struct(">iiiibiiB")
_iiiibiii = Struct(">iiiibiii")
_iiqiqi = Struct(">iiqiqi")
_iiqiqiB = Struct(">iiqiqiB")
_iiqqi = Struct(">iiqqi")
_iix = Struct(">iix")
_iqB = Struct(">iqB")
_iqi = Struct(">iqi")
_iqqi = Struct(">iqqi")
_iqx = Struct(">iqx")
_q = Struct(">q")
_qiB = Struct(">qiB")
_qix = Struct(">qix")
_qq = Struct(">qq")
_qqB = Struct(">qqB")
_qqx = Struct(">qqx")


def _read_replica_state(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ReplicaState], int]:
    items: list[ReplicaState] = []
    for _ in range(number):
        item = new(ReplicaState)
        item.replica_id, item.replica_epoch, tags = _iqB.unpack_from(buffer, position)
        position += 13
        if tags:
            position = skip_tags(buffer, position, end, tags, "ReplicaState")
        items.append(item)
    return items, position


def _write_replica_state(out: list[Buffer], items: Sequence[ReplicaState], version: int) -> None:
    for item in items:
        out.append(_iqx.pack(item.replica_id, item.replica_epoch))


def _read_fetch_partition(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[FetchPartition], int]:
    items: list[FetchPartition] = []
    if version >= 12:
        for _ in range(number):
            item = new(FetchPartition)
            (
                item.partition, item.current_leader_epoch, item.fetch_offset, item.last_fetched_epoch,
                item.log_start_offset, item.partition_max_bytes, tags,
            ) = _iiqiqiB.unpack_from(buffer, position)
            position += 33
            item.replica_directory_id = ZERO_UUID
            item.high_watermark = 9223372036854775807
            if tags:
                if tags > 127:
                    tags, position = long_uvarint(buffer, position, tags)
                tag = -1
                for _ in range(tags):
                    tag, position, stop_tag = read_tag(buffer, position, end, tag, "FetchPartition")
                    if tag == 0 and version >= 17:
                        (item.replica_directory_id,) = _16s.unpack_from(buffer, position)
                        position += 16
                    elif tag == 1 and version >= 18:
                        (item.high_watermark,) = _q.unpack_from(buffer, position)
                        position += 8
                    else:
                        position = stop_tag
                    if position != stop_tag:
                        raise bad_tag_size("FetchPartition", tag)
            items.append(item)
    else:
        for _ in range(number):
            item = new(FetchPartition)
            if version >= 9:
                (
                    item.partition, item.current_leader_epoch, item.fetch_offset, item.log_start_offset,
                    item.partition_max_bytes,
                ) = _iiqqi.unpack_from(buffer, position)
                position += 28
            elif version >= 5:
                (
                    item.partition, item.fetch_offset, item.log_start_offset, item.partition_max_bytes,
                ) = _iqqi.unpack_from(buffer, position)
                position += 24
                item.current_leader_epoch = -1
            else:
                (
                    item.partition, item.fetch_offset, item.partition_max_bytes,
                ) = _iqi.unpack_from(buffer, position)
                position += 16
                item.current_leader_epoch = -1
                item.log_start_offset = -1
            item.last_fetched_epoch = -1
            item.replica_directory_id = ZERO_UUID
            item.high_watermark = 9223372036854775807
            items.append(item)
    return items, position


def _write_fetch_partition(out: list[Buffer], items: Sequence[FetchPartition], version: int) -> None:
    if version >= 12:
        for item in items:
            out.append(
                _iiqiqi.pack(
                    item.partition, item.current_leader_epoch, item.fetch_offset, item.last_fetched_epoch,
                    item.log_start_offset, item.partition_max_bytes,
                )
            )
            tagged: list[Buffer] = []
            if version >= 17 and item.replica_directory_id != ZERO_UUID:
                tagged.append(tagged_field(0, [_16s.pack(item.replica_directory_id)]))
            if version >= 18 and item.high_watermark != 9223372036854775807:
                tagged.append(tagged_field(1, [_q.pack(item.high_watermark)]))
            out.append(SHORT_UVARINTS[len(tagged)])
            out += tagged
    else:
        for item in items:
            if version >= 9:
                out.append(
                    _iiqqi.pack(
                        item.partition, item.current_leader_epoch, item.fetch_offset, item.log_start_offset,
                        item.partition_max_bytes,
                    )
                )
            elif version >= 5:
                out.append(
                    _iqqi.pack(
                        item.partition, item.fetch_offset, item.log_start_offset, item.partition_max_bytes,
                    )
                )
            else:
                out.append(_iqi.pack(item.partition, item.fetch_offset, item.partition_max_bytes))


def _read_fetch_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[FetchTopic], int]:
    items: list[FetchTopic] = []
    if version >= 12:
        for _ in range(number):
            item = new(FetchTopic)
            if version <= 12:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("FetchTopic.topic", length, end - position)
                item.topic = buffer[position:stop].decode()
                position = stop
            else:
                item.topic = ""
            if version >= 13:
                item.topic_id, count = _16sB.unpack_from(buffer, position)
                position += 17
            else:
                count = buffer[position]
                position += 1
                item.topic_id = ZERO_UUID
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 33:
                raise bad_length("FetchTopic.partitions", count, end - position)
            item.partitions, position = _read_fetch_partition(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "FetchTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(FetchTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("FetchTopic.topic", length, end - position)
            item.topic = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 16:
                raise bad_length("FetchTopic.partitions", count, end - position)
            item.partitions, position = _read_fetch_partition(buffer, position, end, version, count)
            item.topic_id = ZERO_UUID
            items.append(item)
    return items, position


def _write_fetch_topic(out: list[Buffer], items: Sequence[FetchTopic], version: int) -> None:
    if version >= 12:
        for item in items:
            if version <= 12:
                raw = item.topic.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if version >= 13:
                out.append(item.topic_id)
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                _write_fetch_partition(out, item.partitions, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.topic.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                _write_fetch_partition(out, item.partitions, version)


def _read_forgotten_topic(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[ForgottenTopic], int]:
    items: list[ForgottenTopic] = []
    if version >= 12:
        for _ in range(number):
            item = new(ForgottenTopic)
            if version <= 12:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("ForgottenTopic.topic", length, end - position)
                item.topic = buffer[position:stop].decode()
                position = stop
            else:
                item.topic = ""
            if version >= 13:
                item.topic_id, count = _16sB.unpack_from(buffer, position)
                position += 17
            else:
                count = buffer[position]
                position += 1
                item.topic_id = ZERO_UUID
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 4:
                raise bad_length("ForgottenTopic.partitions", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.partitions = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "ForgottenTopic")
            items.append(item)
    else:
        for _ in range(number):
            item = new(ForgottenTopic)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("ForgottenTopic.topic", length, end - position)
            item.topic = buffer[position:stop].decode()
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 4:
                raise bad_length("ForgottenTopic.partitions", count, end - position)
            numbers = INT32_ARRAYS[count] if count < 17 else Struct(f">{count}i")
            item.partitions = [*numbers.unpack_from(buffer, position)]
            position += count * 4
            item.topic_id = ZERO_UUID
            items.append(item)
    return items, position


def _write_forgotten_topic(out: list[Buffer], items: Sequence[ForgottenTopic], version: int) -> None:
    if version >= 12:
        for item in items:
            if version <= 12:
                raw = item.topic.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if version >= 13:
                out.append(item.topic_id)
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


def _read_fetch_request(
    buffer: bytes, position: int, end: int, version: int, number: int
) -> tuple[list[FetchRequest], int]:
    items: list[FetchRequest] = []
    if version >= 12:
        for _ in range(number):
            item = new(FetchRequest)
            if version >= 15:
                (
                    item.max_wait_ms, item.min_bytes, item.max_bytes, item.isolation_level, item.session_id,
                    item.session_epoch, count,
                ) = _iiibiiB.unpack_from(buffer, position)
                position += 22
                item.replica_id = -1
            else:
                (
                    item.replica_id, item.max_wait_ms, item.min_bytes, item.max_bytes, item.isolation_level,
                    item.session_id, item.session_epoch, count,
                ) = _iiiibiiB.unpack_from(buffer, position)
                position += 26
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("FetchRequest.topics", count, end - position)
            item.topics, position = _read_fetch_topic(buffer, position, end, version, count)
            count = buffer[position]
            position += 1
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("FetchRequest.forgotten_topics_data", count, end - position)
            item.forgotten_topics_data, position = _read_forgotten_topic(
                buffer, position, end, version, count,
            )
            length = buffer[position]
            position += 1
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("FetchRequest.rack_id", length, end - position)
            item.rack_id = buffer[position:stop].decode()
            position = stop
            tags = buffer[position]
            position += 1
            item.cluster_id = None
            item.replica_state = None
            if tags:
                if tags > 127:
                    tags, position = long_uvarint(buffer, position, tags)
                tag = -1
                for _ in range(tags):
                    tag, position, stop_tag = read_tag(buffer, position, end, tag, "FetchRequest")
                    if tag == 0:
                        length = buffer[position]
                        position += 1
                        if length > 127:
                            length, position = long_uvarint(buffer, position, length)
                        length -= 1
                        if length == -1:
                            item.cluster_id = None
                        else:
                            stop = position + length
                            if length < 0 or stop > end:
                                raise bad_length("FetchRequest.cluster_id", length, end - position)
                            item.cluster_id = buffer[position:stop].decode()
                            position = stop
                    elif tag == 1 and version >= 15:
                        (
                            item.replica_state, ), position = _read_replica_state(buffer, position, end,
                            version, 1,
                        )
                    else:
                        position = stop_tag
                    if position != stop_tag:
                        raise bad_tag_size("FetchRequest", tag)
            items.append(item)
    else:
        for _ in range(number):
            item = new(FetchRequest)
            if version >= 7:
                (
                    item.replica_id, item.max_wait_ms, item.min_bytes, item.max_bytes, item.isolation_level,
                    item.session_id, item.session_epoch, count,
                ) = _iiiibiii.unpack_from(buffer, position)
                position += 29
            else:
                (
                    item.replica_id, item.max_wait_ms, item.min_bytes, item.max_bytes, item.isolation_level,
                    count,
                ) = _iiiibi.unpack_from(buffer, position)
                position += 21
                item.session_id = 0
                item.session_epoch = -1
            if count < 0 or count > (end - position) // 6:
                raise bad_length("FetchRequest.topics", count, end - position)
            item.topics, position = _read_fetch_topic(buffer, position, end, version, count)
            if version >= 7:
                (count,) = _i.unpack_from(buffer, position)
                position += 4
                if count < 0 or count > (end - position) // 6:
                    raise bad_length("FetchRequest.forgotten_topics_data", count, end - position)
                item.forgotten_topics_data, position = _read_forgotten_topic(
                    buffer, position, end, version, count,
                )
            else:
                item.forgotten_topics_data = []
            if version >= 11:
                (length,) = _h.unpack_from(buffer, position)
                position += 2
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("FetchRequest.rack_id", length, end - position)
                item.rack_id = buffer[position:stop].decode()
                position = stop
            else:
                item.rack_id = ""
            item.cluster_id = None
            item.replica_state = None
            items.append(item)
    return items, position


def _write_fetch_request(out: list[Buffer], items: Sequence[FetchRequest], version: int) -> None:
    if version >= 12:
        for item in items:
            if version >= 15:
                out.append(
                    _iiibii.pack(
                        item.max_wait_ms, item.min_bytes, item.max_bytes, item.isolation_level,
                        item.session_id, item.session_epoch,
                    )
                )
            else:
                out.append(
                    _iiiibii.pack(
                        item.replica_id, item.max_wait_ms, item.min_bytes, item.max_bytes,
                        item.isolation_level, item.session_id, item.session_epoch,
                    )
                )
            length = len(item.topics) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.topics:
                _write_fetch_topic(out, item.topics, version)
            length = len(item.forgotten_topics_data) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.forgotten_topics_data:
                _write_forgotten_topic(out, item.forgotten_topics_data, version)
            raw = item.rack_id.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
            tagged: list[Buffer] = []
            value: list[Buffer]
            if item.cluster_id is not None:
                value = []
                raw = item.cluster_id.encode()
                length = len(raw) + 1
                value.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                value.append(raw)
                tagged.append(tagged_field(0, value))
            if version >= 15 and item.replica_state is not None and item.replica_state != ReplicaState():
                value = []
                _write_replica_state(value, (item.replica_state,), version)
                tagged.append(tagged_field(1, value))
            out.append(SHORT_UVARINTS[len(tagged)])
            out += tagged
    else:
        for item in items:
            if version >= 7:
                out.append(
                    _iiiibiii.pack(
                        item.replica_id, item.max_wait_ms, item.min_bytes, item.max_bytes,
                        item.isolation_level, item.session_id, item.session_epoch, len(item.topics),
                    )
                )
            else:
                out.append(
                    _iiiibi.pack(
                        item.replica_id, item.max_wait_ms, item.min_bytes, item.max_bytes,
                        item.isolation_level, len(item.topics),
                    )
                )
            if item.topics:
                _write_fetch_topic(out, item.topics, version)
            if version >= 7:
                out.append(_i.pack(len(item.forgotten_topics_data)))
                if item.forgotten_topics_data:
                    _write_forgotten_topic(out, item.forgotten_topics_data, version)
            if version >= 11:
                raw = item.rack_id.encode()
                out.append(_h.pack(len(raw)))
                out.append(raw)


def _read_epoch_end_offset(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[EpochEndOffset], int]:
    items: list[EpochEndOffset] = []
    for _ in range(number):
        item = new(EpochEndOffset)
        item.epoch, item.end_offset, tags = _iqB.unpack_from(buffer, position)
        position += 13
        if tags:
            position = skip_tags(buffer, position, end, tags, "EpochEndOffset")
        items.append(item)
    return items, position


def _write_epoch_end_offset(out: list[Buffer], items: Sequence[EpochEndOffset], version: int) -> None:
    for item in items:
        out.append(_iqx.pack(item.epoch, item.end_offset))


def _read_leader_id_and_epoch(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[LeaderIdAndEpoch], int]:
    items: list[LeaderIdAndEpoch] = []
    for _ in range(number):
        item = new(LeaderIdAndEpoch)
        item.leader_id, item.leader_epoch, tags = _iiB.unpack_from(buffer, position)
        position += 9
        if tags:
            position = skip_tags(buffer, position, end, tags, "LeaderIdAndEpoch")
        items.append(item)
    return items, position


def _write_leader_id_and_epoch(out: list[Buffer], items: Sequence[LeaderIdAndEpoch], version: int) -> None:
    for item in items:
        out.append(_iix.pack(item.leader_id, item.leader_epoch))


def _read_snapshot_id(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[SnapshotId], int]:
    items: list[SnapshotId] = []
    for _ in range(number):
        item = new(SnapshotId)
        item.end_offset, item.epoch, tags = _qiB.unpack_from(buffer, position)
        position += 13
        if tags:
            position = skip_tags(buffer, position, end, tags, "SnapshotId")
        items.append(item)
    return items, position


def _write_snapshot_id(out: list[Buffer], items: Sequence[SnapshotId], version: int) -> None:
    for item in items:
        out.append(_qix.pack(item.end_offset, item.epoch))


def _read_aborted_transaction(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[AbortedTransaction], int]:
    items: list[AbortedTransaction] = []
    if version >= 12:
        for _ in range(number):
            item = new(AbortedTransaction)
            item.producer_id, item.first_offset, tags = _qqB.unpack_from(buffer, position)
            position += 17
            if tags:
                position = skip_tags(buffer, position, end, tags, "AbortedTransaction")
            items.append(item)
    else:
        for _ in range(number):
            item = new(AbortedTransaction)
            item.producer_id, item.first_offset = _qq.unpack_from(buffer, position)
            position += 16
            items.append(item)
    return items, position


def _write_aborted_transaction(out: list[Buffer], items: Sequence[AbortedTransaction], version: int) -> None:
    if version >= 12:
        for item in items:
            out.append(_qqx.pack(item.producer_id, item.first_offset))
    else:
        for item in items:
            out.append(_qq.pack(item.producer_id, item.first_offset))


def _read_partition_data(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[PartitionData], int]:
    items: list[PartitionData] = []
    if version >= 12:
        for _ in range(number):
            item = new(PartitionData)
            (
                item.partition_index, item.error_code, item.high_watermark, item.last_stable_offset,
                item.log_start_offset, count,
            ) = _ihqqqB.unpack_from(buffer, position)
            position += 31
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count == -1:
                item.aborted_transactions = None
            else:
                if count < 0 or count > (end - position) // 17:
                    raise bad_length("PartitionData.aborted_transactions", count, end - position)
                item.aborted_transactions, position = _read_aborted_transaction(
                    buffer, position, end, version, count,
                )
            item.preferred_read_replica, length = _iB.unpack_from(buffer, position)
            position += 5
            if length > 127:
                length, position = long_uvarint(buffer, position, length)
            length -= 1
            if length == -1:
                item.records = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("PartitionData.records", length, end - position)
                item.records = buffer[position:stop]
                position = stop
            tags = buffer[position]
            position += 1
            item.diverging_epoch = None
            item.current_leader = None
            item.snapshot_id = None
            if tags:
                if tags > 127:
                    tags, position = long_uvarint(buffer, position, tags)
                tag = -1
                for _ in range(tags):
                    tag, position, stop_tag = read_tag(buffer, position, end, tag, "PartitionData")
                    if tag == 0:
                        (
                            item.diverging_epoch, ), position = _read_epoch_end_offset(buffer, position, end,
                            version, 1,
                        )
                    elif tag == 1:
                        (
                            item.current_leader, ), position = _read_leader_id_and_epoch(buffer, position,
                            end, version, 1,
                        )
                    elif tag == 2:
                        (item.snapshot_id,), position = _read_snapshot_id(buffer, position, end, version, 1)
                    else:
                        position = stop_tag
                    if position != stop_tag:
                        raise bad_tag_size("PartitionData", tag)
            items.append(item)
    else:
        for _ in range(number):
            item = new(PartitionData)
            if version >= 5:
                (
                    item.partition_index, item.error_code, item.high_watermark, item.last_stable_offset,
                    item.log_start_offset, count,
                ) = _ihqqqi.unpack_from(buffer, position)
                position += 34
            else:
                (
                    item.partition_index, item.error_code, item.high_watermark, item.last_stable_offset,
                    count,
                ) = _ihqqi.unpack_from(buffer, position)
                position += 26
                item.log_start_offset = -1
            if count == -1:
                item.aborted_transactions = None
            else:
                if count < 0 or count > (end - position) // 16:
                    raise bad_length("PartitionData.aborted_transactions", count, end - position)
                item.aborted_transactions, position = _read_aborted_transaction(
                    buffer, position, end, version, count,
                )
            if version >= 11:
                item.preferred_read_replica, length = _ii.unpack_from(buffer, position)
                position += 8
            else:
                (length,) = _i.unpack_from(buffer, position)
                position += 4
                item.preferred_read_replica = -1
            if length == -1:
                item.records = None
            else:
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("PartitionData.records", length, end - position)
                item.records = buffer[position:stop]
                position = stop
            item.diverging_epoch = None
            item.current_leader = None
            item.snapshot_id = None
            items.append(item)
    return items, position


def _write_partition_data(out: list[Buffer], items: Sequence[PartitionData], version: int) -> None:
    if version >= 12:
        for item in items:
            out.append(
                _ihqqq.pack(
                    item.partition_index, item.error_code, item.high_watermark, item.last_stable_offset,
                    item.log_start_offset,
                )
            )
            if item.aborted_transactions is None:
                out.append(b"\0")
            else:
                length = len(item.aborted_transactions) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.aborted_transactions:
                    _write_aborted_transaction(out, item.aborted_transactions, version)
            out.append(_i.pack(item.preferred_read_replica))
            if item.records is None:
                out.append(b"\0")
            else:
                records = item.records
                length = len(records) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(records)
            tagged: list[Buffer] = []
            value: list[Buffer]
            if item.diverging_epoch is not None and item.diverging_epoch != EpochEndOffset():
                value = []
                _write_epoch_end_offset(value, (item.diverging_epoch,), version)
                tagged.append(tagged_field(0, value))
            if item.current_leader is not None and item.current_leader != LeaderIdAndEpoch():
                value = []
                _write_leader_id_and_epoch(value, (item.current_leader,), version)
                tagged.append(tagged_field(1, value))
            if item.snapshot_id is not None and item.snapshot_id != SnapshotId():
                value = []
                _write_snapshot_id(value, (item.snapshot_id,), version)
                tagged.append(tagged_field(2, value))
            out.append(SHORT_UVARINTS[len(tagged)])
            out += tagged
    else:
        for item in items:
            if version >= 5:
                out.append(
                    _ihqqqi.pack(
                        item.partition_index, item.error_code, item.high_watermark, item.last_stable_offset,
                        item.log_start_offset,
                        -1 if item.aborted_transactions is None else len(item.aborted_transactions),
                    )
                )
            else:
                out.append(
                    _ihqqi.pack(
                        item.partition_index, item.error_code, item.high_watermark, item.last_stable_offset,
                        -1 if item.aborted_transactions is None else len(item.aborted_transactions),
                    )
                )
            if item.aborted_transactions:
                _write_aborted_transaction(out, item.aborted_transactions, version)
            records = b"" if item.records is None else item.records
            if version >= 11:
                out.append(
                    _ii.pack(item.preferred_read_replica, -1 if item.records is None else len(records))
                )
            else:
                out.append(_i.pack(-1 if item.records is None else len(records)))
            out.append(records)


def _read_fetchable_topic_response(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[FetchableTopicResponse], int]:
    items: list[FetchableTopicResponse] = []
    if version >= 12:
        for _ in range(number):
            item = new(FetchableTopicResponse)
            if version <= 12:
                length = buffer[position]
                position += 1
                if length > 127:
                    length, position = long_uvarint(buffer, position, length)
                length -= 1
                stop = position + length
                if length < 0 or stop > end:
                    raise bad_length("FetchableTopicResponse.topic", length, end - position)
                item.topic = str(buffer[position:stop], "utf-8")
                position = stop
            else:
                item.topic = ""
            if version >= 13:
                item.topic_id, count = _16sB.unpack_from(buffer, position)
                position += 17
            else:
                count = buffer[position]
                position += 1
                item.topic_id = ZERO_UUID
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 37:
                raise bad_length("FetchableTopicResponse.partitions", count, end - position)
            item.partitions, position = _read_partition_data(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            if tags:
                position = skip_tags(buffer, position, end, tags, "FetchableTopicResponse")
            items.append(item)
    else:
        for _ in range(number):
            item = new(FetchableTopicResponse)
            (length,) = _h.unpack_from(buffer, position)
            position += 2
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("FetchableTopicResponse.topic", length, end - position)
            item.topic = str(buffer[position:stop], "utf-8")
            position = stop
            (count,) = _i.unpack_from(buffer, position)
            position += 4
            if count < 0 or count > (end - position) // 30:
                raise bad_length("FetchableTopicResponse.partitions", count, end - position)
            item.partitions, position = _read_partition_data(buffer, position, end, version, count)
            item.topic_id = ZERO_UUID
            items.append(item)
    return items, position


def _write_fetchable_topic_response(
    out: list[Buffer], items: Sequence[FetchableTopicResponse], version: int,
) -> None:
    if version >= 12:
        for item in items:
            if version <= 12:
                raw = item.topic.encode()
                length = len(raw) + 1
                out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                out.append(raw)
            if version >= 13:
                out.append(item.topic_id)
            length = len(item.partitions) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.partitions:
                _write_partition_data(out, item.partitions, version)
            out.append(b"\0")
    else:
        for item in items:
            raw = item.topic.encode()
            out.append(_h.pack(len(raw)))
            out.append(raw)
            out.append(_i.pack(len(item.partitions)))
            if item.partitions:
                _write_partition_data(out, item.partitions, version)


def _read_node_endpoint(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[NodeEndpoint], int]:
    items: list[NodeEndpoint] = []
    for _ in range(number):
        item = new(NodeEndpoint)
        item.node_id, length = _iB.unpack_from(buffer, position)
        position += 5
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        stop = position + length
        if length < 0 or stop > end:
            raise bad_length("NodeEndpoint.host", length, end - position)
        item.host = str(buffer[position:stop], "utf-8")
        position = stop
        item.port, length = _iB.unpack_from(buffer, position)
        position += 5
        if length > 127:
            length, position = long_uvarint(buffer, position, length)
        length -= 1
        if length == -1:
            item.rack = None
        else:
            stop = position + length
            if length < 0 or stop > end:
                raise bad_length("NodeEndpoint.rack", length, end - position)
            item.rack = str(buffer[position:stop], "utf-8")
            position = stop
        tags = buffer[position]
        position += 1
        if tags:
            position = skip_tags(buffer, position, end, tags, "NodeEndpoint")
        items.append(item)
    return items, position


def _write_node_endpoint(out: list[Buffer], items: Sequence[NodeEndpoint], version: int) -> None:
    for item in items:
        out.append(_i.pack(item.node_id))
        raw = item.host.encode()
        length = len(raw) + 1
        out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
        out.append(raw)
        out.append(_i.pack(item.port))
        if item.rack is None:
            out.append(b"\0")
        else:
            raw = item.rack.encode()
            length = len(raw) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            out.append(raw)
        out.append(b"\0")


def _read_fetch_response(
    buffer: memoryview, position: int, end: int, version: int, number: int
) -> tuple[list[FetchResponse], int]:
    items: list[FetchResponse] = []
    if version >= 12:
        for _ in range(number):
            item = new(FetchResponse)
            (
                item.throttle_time_ms, item.error_code, item.session_id, count,
            ) = _ihiB.unpack_from(buffer, position)
            position += 11
            if count > 127:
                count, position = long_uvarint(buffer, position, count)
            count -= 1
            if count < 0 or count > (end - position) // 3:
                raise bad_length("FetchResponse.responses", count, end - position)
            item.responses, position = _read_fetchable_topic_response(buffer, position, end, version, count)
            tags = buffer[position]
            position += 1
            item.node_endpoints = []
            if tags:
                if tags > 127:
                    tags, position = long_uvarint(buffer, position, tags)
                tag = -1
                for _ in range(tags):
                    tag, position, stop_tag = read_tag(buffer, position, end, tag, "FetchResponse")
                    if tag == 0 and version >= 16:
                        count = buffer[position]
                        position += 1
                        if count > 127:
                            count, position = long_uvarint(buffer, position, count)
                        count -= 1
                        if count < 0 or count > (end - position) // 11:
                            raise bad_length("FetchResponse.node_endpoints", count, end - position)
                        item.node_endpoints, position = _read_node_endpoint(
                            buffer, position, end, version, count,
                        )
                    else:
                        position = stop_tag
                    if position != stop_tag:
                        raise bad_tag_size("FetchResponse", tag)
            items.append(item)
    else:
        for _ in range(number):
            item = new(FetchResponse)
            if version >= 7:
                (
                    item.throttle_time_ms, item.error_code, item.session_id, count,
                ) = _ihii.unpack_from(buffer, position)
                position += 14
            else:
                item.throttle_time_ms, count = _ii.unpack_from(buffer, position)
                position += 8
                item.error_code = 0
                item.session_id = 0
            if count < 0 or count > (end - position) // 6:
                raise bad_length("FetchResponse.responses", count, end - position)
            item.responses, position = _read_fetchable_topic_response(buffer, position, end, version, count)
            item.node_endpoints = []
            items.append(item)
    return items, position


def _write_fetch_response(out: list[Buffer], items: Sequence[FetchResponse], version: int) -> None:
    if version >= 12:
        for item in items:
            out.append(_ihi.pack(item.throttle_time_ms, item.error_code, item.session_id))
            length = len(item.responses) + 1
            out.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
            if item.responses:
                _write_fetchable_topic_response(out, item.responses, version)
            tagged: list[Buffer] = []
            value: list[Buffer]
            if version >= 16 and item.node_endpoints:
                value = []
                length = len(item.node_endpoints) + 1
                value.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))
                if item.node_endpoints:
                    _write_node_endpoint(value, item.node_endpoints, version)
                tagged.append(tagged_field(0, value))
            out.append(SHORT_UVARINTS[len(tagged)])
            out += tagged
    else:
        for item in items:
            if version >= 7:
                out.append(
                    _ihii.pack(item.throttle_time_ms, item.error_code, item.session_id, len(item.responses))
                )
            else:
                out.append(_ii.pack(item.throttle_time_ms, len(item.responses)))
            if item.responses:
                _write_fetchable_topic_response(out, item.responses, version)
