"""Fetch as a follower speaks it (API 1, version 17): the request that it sends, the answer that it reads.

The other side is `wire.fetch`. A follower fetches with topic ids in an incremental session (KIP-227). It says
which node it is, in which registration (KIP-903), with which epoch its log ends (KIP-595), where it starts.
Records of an answer are not copied: they are views of the receive buffer, and valid as long as that is.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple

from postroad.errors import ProtocolError
from postroad.wire.fetch import PURGED_TAG, EpochEnd, FetchRequest, PartitionFetch, TopicKey
from postroad.wire.fetch_tags import AHEAD_TAG
from postroad.wire.framing import read_uvarint, skip_tags, write_uvarint
from postroad.wire.leader_hints import NO_TAGS, CurrentLeader, write_tags

KEY: Final = 1
VERSION: Final = 17

_FRAME: Final = Struct(">ihhih")  # size, api key, version, correlation, length of the client id
_HEAD: Final = Struct(">iiibii")  # max wait, min bytes, max bytes, isolation, session id and epoch
_WANTED: Final = Struct(">iiqiqi")  # index, epoch, offset, last epoch, log start, max bytes
_REPLICA: Final = Struct(">iqB")  # id, epoch, no tags
_INT: Final = Struct(">i")
_CORRELATION_END: Final = 4
_ANSWER: Final = Struct(">ihi")  # throttle time, error, session id
_PARTITION: Final = Struct(">ihqqq")  # index, error, high watermark, stable offset, log start
_EPOCH_END: Final = Struct(">iq")
_LEADER: Final = Struct(">ii")
_LONG: Final = Struct(">q")
_TOPIC_ID_BYTES: Final = 16
_ABORTED_BYTES: Final = 16  # producer id and first offset
_PREFERRED_BYTES: Final = 4
_PARTITION_BYTES_MIN: Final = _PARTITION.size + 1 + _PREFERRED_BYTES + 2
_TOPIC_BYTES_MIN: Final = _TOPIC_ID_BYTES + 2

_NOTHING: Final = b"\1"  # an empty array
# The body of a request that names one log; nothing is forgotten, and there is no rack.
_BODY_OF_ONE: Final = Struct(">iiibiiB16sBiiqiqi4s")
# An answer with one log, up to the size of its records.
_ANSWER_OF_ONE: Final = Struct(">iBihiB16sBihqqqBi")
_NO_MORE_TAGS: Final = b"\0\0\0"  # of the partition, its topic and the answer

_new: Final = tuple.__new__  # a NamedTuple without the call of its constructor


class Fetched(NamedTuple):
    """What a leader answers for one partition."""

    topic_id: bytes
    index: int  # type: ignore[assignment]  # hides tuple.index
    error: int
    watermark: int
    start_offset: int
    diverging: EpochEnd | None
    leader: CurrentLeader | None  # who to ask instead
    records: memoryview  # whole batches, and perhaps the beginning of one more
    purged: int = 0  # below it the leader may lack tombstones and transaction markers; 0: not above the fetch


class FetchedAnswer(NamedTuple):
    correlation: int
    error: int  # of the session
    session_id: int
    partitions: list[Fetched]


def encode_frame(request: FetchRequest, correlation: int, client_id: bytes) -> bytes:
    """The whole request, from the length of its frame on."""
    body = encode(request)
    size = _FRAME.size - 4 + len(client_id) + len(NO_TAGS) + len(body)
    return _FRAME.pack(size, KEY, VERSION, correlation, len(client_id)) + client_id + NO_TAGS + body


def encode(request: FetchRequest) -> bytes:
    """The body. Partitions of one topic should stand together; so should those that are forgotten."""
    replica_id, wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch, partitions = request[:8]
    if len(partitions) == 1 and not request.forgotten and not request.rack and partitions[0][-1] < 0:
        topic, index, epoch, offset, log_max_bytes, last_epoch, start, _ = partitions[0]
        limits = (wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch)
        log = (2, topic, 2, index, epoch, offset, last_epoch, start, log_max_bytes, b"\0\0\1\1")
        return _BODY_OF_ONE.pack(*limits, *log) + _replica_tags(replica_id, request.replica_epoch)
    head = _HEAD.pack(wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch)
    forgotten = _forgotten(request.forgotten) if request.forgotten else _NOTHING
    rack = request.rack.encode()
    replica = _replica_tags(replica_id, request.replica_epoch)
    return b"".join((head, _wanted(partitions), forgotten, write_uvarint(len(rack) + 1), rack, replica))


@lru_cache(maxsize=16)  # nodes in one process: one, but for tests
def _replica_tags(node_id: int, broker_epoch: int) -> bytes:
    """Who fetches: the same in each request of a process."""
    return write_tags((1, _REPLICA.pack(node_id, broker_epoch, 0)))


def decode(payload: memoryview) -> FetchedAnswer:
    """A whole response without the length of its frame. Raises ProtocolError."""
    try:
        return _decode(payload)
    except (struct_error, IndexError):
        raise ProtocolError("a Fetch response ends before its fields do") from None


def _wanted(partitions: Iterable[PartitionFetch]) -> bytes:
    topics: list[tuple[TopicKey, list[bytes]]] = []
    for topic, index, epoch, offset, max_bytes, last_epoch, start, ahead in partitions:
        if not topics or topics[-1][0] != topic:
            topics.append((topic, []))
        tags = NO_TAGS if ahead < 0 else write_tags((AHEAD_TAG, _LONG.pack(ahead)))
        topics[-1][1].append(_WANTED.pack(index, epoch, offset, last_epoch, start, max_bytes) + tags)
    return _array_of_topics(topics)


def _forgotten(partitions: Iterable[tuple[TopicKey, int]]) -> bytes:
    topics: list[tuple[TopicKey, list[bytes]]] = []
    for topic, index in partitions:
        if not topics or topics[-1][0] != topic:
            topics.append((topic, []))
        topics[-1][1].append(_INT.pack(index))
    return _array_of_topics(topics)


def _array_of_topics(topics: list[tuple[TopicKey, list[bytes]]]) -> bytes:
    parts = [write_uvarint(len(topics) + 1)]
    for topic, partitions in topics:
        assert isinstance(topic, bytes), "replicas name topics by id"
        parts += (topic, write_uvarint(len(partitions) + 1), *partitions, NO_TAGS)
    return b"".join(parts)


def _decode(payload: memoryview) -> FetchedAnswer:
    one = _decode_one(payload) if len(payload) > _ANSWER_OF_ONE.size else None
    if one is not None:
        return one
    (correlation,) = _INT.unpack_from(payload)
    at = skip_tags(payload, _CORRELATION_END)
    _, error, session_id = _ANSWER.unpack_from(payload, at)
    topics, at = _count(payload, at + _ANSWER.size, _TOPIC_BYTES_MIN)
    partitions: list[Fetched] = []
    for _ in range(topics):
        topic_id = payload[at : at + _TOPIC_ID_BYTES].tobytes()
        count, at = _count(payload, at + _TOPIC_ID_BYTES, _PARTITION_BYTES_MIN)
        for _ in range(count):
            fetched, at = _partition(payload, at, topic_id)
            partitions.append(fetched)
        at = skip_tags(payload, at)
    skip_tags(payload, at)
    return FetchedAnswer(correlation, error, session_id, partitions)


def _decode_one(payload: memoryview) -> FetchedAnswer | None:
    """An answer with one log and no tags, which nearly all are; None if it is another one."""
    (
        correlation,
        tags,
        _,
        error,
        session_id,
        topics,
        topic_id,
        count,
        index,
        log_error,
        watermark,
        _,
        start,
        aborted,
        _,
    ) = _ANSWER_OF_ONE.unpack_from(payload)
    if tags or topics != 2 or count != 2 or aborted > 1:
        return None
    size, at = read_uvarint(payload, _ANSWER_OF_ONE.size)
    end = at + size - 1 if size else at
    if payload[end:].tobytes() != _NO_MORE_TAGS:
        return None
    fetched = _new(Fetched, (topic_id, index, log_error, watermark, start, None, None, payload[at:end], 0))
    return _new(FetchedAnswer, (correlation, error, session_id, [fetched]))


def _partition(payload: memoryview, at: int, topic_id: bytes) -> tuple[Fetched, int]:
    index, error, watermark, _, start = _PARTITION.unpack_from(payload, at)
    at = _skip_aborted(payload, at + _PARTITION.size) + _PREFERRED_BYTES
    size, at = read_uvarint(payload, at)
    end = at + size - 1 if size else at  # null is as good as empty
    if end > len(payload):
        raise ProtocolError("a Fetch response has records beyond its end")
    records = payload[at:end]
    diverging, leader, purged = None, None, 0
    if payload[end]:
        diverging, leader, purged, end = _partition_tags(payload, end)
    else:
        end += 1
    fields = (topic_id, index, error, watermark, start, diverging, leader, records, purged)
    return _new(Fetched, fields), end


def _skip_aborted(payload: memoryview, at: int) -> int:
    """The position after the aborted transactions, which a replica has in its own log."""
    if payload[at] <= 1:
        return at + 1
    count, at = _count(payload, at, _ABORTED_BYTES + 1)
    for _ in range(count):
        at = skip_tags(payload, at + _ABORTED_BYTES)
    return at


def _partition_tags(payload: memoryview, at: int) -> tuple[EpochEnd | None, CurrentLeader | None, int, int]:
    diverging, leader, purged = None, None, 0
    tags, at = read_uvarint(payload, at)
    for _ in range(tags):
        tag, at = read_uvarint(payload, at)
        size, at = read_uvarint(payload, at)
        content = payload[at : at + size]
        if len(content) != size:
            raise ProtocolError("a Fetch response has a tagged field beyond its end")
        if tag == 0:
            diverging = EpochEnd._make(_EPOCH_END.unpack_from(content))
        elif tag == 1:
            leader = CurrentLeader._make(_LEADER.unpack_from(content))
        elif tag == PURGED_TAG:
            (purged,) = _LONG.unpack_from(content)
        at += size
    return diverging, leader, purged, at


def _count(payload: memoryview, at: int, bytes_min: int) -> tuple[int, int]:
    """An array's count (null counts as empty); each element takes at least so many bytes."""
    count, at = read_uvarint(payload, at)
    count = max(count - 1, 0)
    if count * bytes_min > len(payload) - at:
        raise ProtocolError(f"a Fetch response counts {count} elements, more than it has bytes for")
    return count, at
