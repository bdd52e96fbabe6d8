"""Fetch, by hand: the hot path of a message on its way out (API 1, versions 4–18).

A request becomes plain tuples; a response is a list of parts in which records are never copied:
each partition's records stand as the caller gave them (bytes, or a slice of a segment file that
the connection hands to sendfile). Layouts as in KIP-98 (v4), KIP-227 (v7: sessions), KIP-320 (v9:
leader epoch), KIP-392 (v11: rack), KIP-482 and KIP-595 (v12: diverging epochs), KIP-516 (v13: topic ids),
KIP-903 (v15: replica state moves to a tag), KIP-951 (v16: where the leader is).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple, Protocol

from postroad.errors import ProtocolError
from postroad.wire import fetch_tags
from postroad.wire.fetch_aborted import numbers_with_aborted
from postroad.wire.framing import read_uvarint, skip_tags, write_uvarint
from postroad.wire.leader_hints import (
    NO_TAGS,
    CurrentLeader,
    NodeEndpoint,
    encode_leader,
    endpoint_tags,
    write_tags,
)

KEY: Final = 1
MIN_VERSION: Final = 4
MAX_VERSION: Final = 18
FLEXIBLE_FROM: Final = 12
SESSIONS_FROM: Final = 7
TOPIC_IDS_FROM: Final = 13
RACKS_FROM: Final = 11
REPLICA_STATE_FROM: Final = 15
ENDPOINTS_FROM: Final = 16
PURGED_TAG: Final = 100  # of a partition's answer, between nodes: Kafka has no such field

READ_COMMITTED: Final = 1  # the isolation level; 0 reads what is not committed, too

TopicKey = str | bytes
"""A topic's name, or from version 13 on its id (16 bytes)."""

_HEAD: Final = Struct(">iiiib")  # replica, max wait, min bytes, max bytes, isolation
_HEAD_15: Final = Struct(">iiib")
_SESSION: Final = Struct(">ii")
_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")
_LONG: Final = Struct(">q")
# index, [leader epoch (9)], offset, [last fetched epoch (12)], [log start (5)], max bytes
_PARTITION_4: Final = Struct(">iqi")
_PARTITION_5: Final = Struct(">iqqi")
_PARTITION_9: Final = Struct(">iiqqi")
_PARTITION_12: Final = Struct(">iiqiqi")
_ANSWER_4: Final = Struct(">ihqqi")  # index, error, high watermark, stable, aborted count
_ANSWER_5: Final = Struct(">ihqqqi")  # … log start
_ANSWER_11: Final = Struct(">ihqqqii")  # … preferred replica
_ANSWER_12: Final = Struct(">ihqqqBi")
_EPOCH_END: Final = Struct(">iqB")  # epoch, end offset, no tags
# The whole body that a follower sends each time: one partition, nothing forgotten, no rack, who it is.
_FOLLOWER: Final = Struct(">iiibiiB16sBiiqiqi7siqB")
_FOLLOWER_OFFSET_AT: Final = 47
_FOLLOWER_REST: Final = b"\0\0\1\1\1\1\x0d"  # no tags, two empty arrays; tag 1 has 13 bytes

_new: Final = tuple.__new__  # a NamedTuple without the call of its constructor


class Sliced(Protocol):
    """Records that lie in a file."""

    @property
    def length(self) -> int: ...


Records = bytes | Sliced
Part = bytes | Sliced


class PartitionFetch(NamedTuple):
    topic: TopicKey
    index: int  # type: ignore[assignment]  # hides tuple.index
    leader_epoch: int
    offset: int
    max_bytes: int
    last_epoch: int = -1  # of a follower's last batch; -1 if it has none, or from a consumer
    start_offset: int = -1  # of a follower's log
    # Where a follower wants to read, if that is above `offset`, its promise; else -1. A leader that doesn't
    # know the field takes no promise for more than is safe.
    ahead: int = -1


class FetchRequest(NamedTuple):
    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: int
    session_id: int
    session_epoch: int
    partitions: list[PartitionFetch]
    forgotten: list[tuple[TopicKey, int]]
    offset_at: int  # where in the body the last partition's offset stands
    replica_epoch: int = -1
    rack: str = ""


class EpochEnd(NamedTuple):
    epoch: int
    end_offset: int


class PartitionAnswer(NamedTuple):
    topic: TopicKey
    index: int  # type: ignore[assignment]  # hides tuple.index
    error: int
    high_watermark: int
    stable_offset: int
    start_offset: int
    records: Records | None
    diverging: EpochEnd | None = None  # where a follower's log parts from this one (v12)
    leader: CurrentLeader | None = None  # who is asked instead (v12)
    preferred_replica: int = -1  # which replica near the consumer it should ask (v11)
    purged: int = 0  # told to a follower: below it tombstones and transaction markers may be missing (v12)
    aborted: Sequence[tuple[int, int]] = ()  # (producer id, first offset): what read_committed leaves out


class Repetition:
    """What a consumer asks again and again: one partition, from another offset on.

    Comparing the rest with the request before is cheaper than reading it again (as in `produce`).
    """

    __slots__ = (
        "_after",
        "_before",
        "_head",
        "_offset_at",
        "_tail",
        "_version",
        "max_bytes",
        "request",
        "wanted",
    )

    def __init__(self, request: FetchRequest, body: memoryview, version: int) -> None:
        assert len(request.partitions) == 1
        self.request = request  # both with the offset of the first time
        self.wanted = request.partitions[0]
        self.max_bytes = min(request.max_bytes, self.wanted.max_bytes)
        self._version = version
        self._offset_at = at = request.offset_at
        self._before = body[:at].tobytes()
        self._after = body[at + 8 :].tobytes()
        self._head = _head_of(version, self.wanted.topic, 0)
        self._tail = _TAGS if version >= FLEXIBLE_FROM else b""

    def offset_of(self, body: memoryview, version: int) -> int | None:
        """The offset that this request asks for, if that is all that is new in it."""
        at = self._offset_at
        if (
            version != self._version
            or body[:at].tobytes() != self._before
            or body[at + 8 :].tobytes() != self._after
        ):
            return None
        offset: int = _LONG.unpack_from(body, at)[0]
        return offset

    def request_from(self, offset: int) -> FetchRequest:
        """The whole request, with this offset."""
        topic, index, epoch, _, max_bytes, last_epoch, start, ahead = self.wanted
        wanted = _new(PartitionFetch, (topic, index, epoch, offset, max_bytes, last_epoch, start, ahead))
        request = self.request
        return _new(FetchRequest, (*request[:7], [wanted], *request[8:]))

    def response(self, high_watermark: int, stable_offset: int, start_offset: int, records: bytes) -> bytes:
        """The body of an answer without an error and without aborted transactions."""
        numbers = _numbers(
            self._version, self.wanted.index, 0, high_watermark, stable_offset, start_offset, len(records), -1
        )
        return self._head + numbers + records + self._tail


def decode(body: memoryview, version: int) -> FetchRequest:
    try:
        return _decode(body, version)
    except (struct_error, IndexError):
        raise ProtocolError("a Fetch request ends before its fields do") from None
    except UnicodeDecodeError:
        raise ProtocolError("a Fetch request has a string that is not UTF-8") from None


def encode(
    answers: Iterable[PartitionAnswer],
    version: int,
    error: int = 0,
    session_id: int = 0,
    endpoints: Sequence[NodeEndpoint] = (),
) -> list[Part]:
    """The response as parts in order; answers of one topic should stand together.

    `endpoints` are those of the leaders that the answers name.
    """
    if not error and not endpoints and isinstance(answers, list) and len(answers) == 1:
        return _encode_one(answers[0], version, session_id)
    flexible = version >= FLEXIBLE_FROM
    parts: list[Part] = []
    head = bytearray(4)  # throttle time
    if version >= SESSIONS_FROM:
        head += _SHORT.pack(error) + _INT.pack(session_id)
    topics = _by_topic(answers)
    head += write_uvarint(len(topics) + 1) if flexible else _INT.pack(len(topics))
    for topic, group in topics:
        _topic_head(head, topic, len(group), flexible)
        for answer in group:
            _, index, code, high, stable, start, records, diverging, leader, preferred, purged, aborted = (
                answer
            )
            size = _size(records)
            head += _numbers(version, index, code, high, stable, start, size, preferred, aborted)
            if records is not None:
                if isinstance(records, bytes):
                    head += records
                else:
                    parts.append(bytes(head))
                    parts.append(records)
                    head.clear()
            if flexible:
                if diverging is None and leader is None and not purged:
                    head.append(0)
                else:
                    head += _partition_tags(diverging, leader, purged)
        if flexible:
            head.append(0)
    if flexible:
        head += endpoint_tags(endpoints) if version >= ENDPOINTS_FROM else NO_TAGS
    if head:
        parts.append(bytes(head))
    return parts


def _encode_one(answer: PartitionAnswer, version: int, session_id: int) -> list[Part]:
    """One partition: what a consumer of a single partition gets each time, and a follower nearly so."""
    topic, index, error, high, stable, start, records, diverging, leader, preferred, purged, aborted = answer
    head = _head_of(version, topic, session_id) + _numbers(
        version, index, error, high, stable, start, _size(records), preferred, aborted
    )
    tail = _TAGS if version >= FLEXIBLE_FROM else b""
    if tail and (diverging is not None or leader is not None or purged):
        tail = _partition_tags(diverging, leader, purged) + NO_TAGS + NO_TAGS
    if records is None:
        return [head + tail]
    if isinstance(records, bytes):
        return [head + records + tail]
    return [head, records, tail] if tail else [head, records]


def _partition_tags(diverging: EpochEnd | None, leader: CurrentLeader | None, purged: int) -> bytes:
    fields = []
    if diverging is not None:
        fields.append((0, _EPOCH_END.pack(diverging.epoch, diverging.end_offset, 0)))
    if leader is not None:
        fields.append((1, encode_leader(leader)))
    if purged:
        fields.append((PURGED_TAG, _LONG.pack(purged)))
    return write_tags(*fields)


_TAGS: Final = b"\0\0\0"  # none, of the partition, its topic and the response
_heads: dict[tuple[int, TopicKey, int], bytes] = {}
_HEADS_MAX: Final = 10_000  # then all are forgotten: they are cheap to make anew


def _head_of(version: int, topic: TopicKey, session_id: int) -> bytes:
    """No throttling or error; one topic with one partition, up to where that begins."""
    known = _heads.get((version, topic, session_id))
    if known is not None:
        return known
    flexible = version >= FLEXIBLE_FROM
    head = bytearray(4)
    if version >= SESSIONS_FROM:
        head += _SHORT.pack(0) + _INT.pack(session_id)
    head += b"\2" if flexible else _INT.pack(1)
    _topic_head(head, topic, 1, flexible)
    if len(_heads) >= _HEADS_MAX:
        _heads.clear()
    _heads[version, topic, session_id] = bytes(head)
    return bytes(head)


def _decode(body: memoryview, version: int) -> FetchRequest:
    if len(body) == _FOLLOWER.size and version >= REPLICA_STATE_FROM:
        request = _decode_follower(body)
        if request is not None:
            return request
    replica_id = -1
    if version >= REPLICA_STATE_FROM:
        max_wait_ms, min_bytes, max_bytes, isolation = _HEAD_15.unpack_from(body)
        at = 13
    else:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation = _HEAD.unpack_from(body)
        at = 17
    session_id, session_epoch = 0, -1
    if version >= SESSIONS_FROM:
        session_id, session_epoch = _SESSION.unpack_from(body, at)
        at += 8
    partitions, at, offset_at = _partitions(body, at, version)
    forgotten: list[tuple[TopicKey, int]] = []
    rack, replica_epoch = "", -1
    if version >= FLEXIBLE_FROM and body[at] <= 1:
        at += 1
    elif version >= SESSIONS_FROM:
        forgotten, at = _forgotten(body, at, version)
    if version >= FLEXIBLE_FROM and body[at] <= 1:  # nearly all consumers have no rack
        at += 1
    elif version >= FLEXIBLE_FROM or (version >= RACKS_FROM and _SHORT.unpack_from(body, at)[0] > 0):
        rack, at = _rack(body, at, version)
    if version >= REPLICA_STATE_FROM and body[at]:
        replica_id, replica_epoch = fetch_tags.replica_state(body, at)
    return FetchRequest(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation,
        session_id,
        session_epoch,
        partitions,
        forgotten,
        offset_at,
        replica_epoch,
        rack,
    )


def _decode_follower(body: memoryview) -> FetchRequest | None:
    """The request of a follower that names one log, read with one call; None if it is another one."""
    fields = _FOLLOWER.unpack_from(body)
    topics, topic_id, count, index, epoch, offset, last_epoch, start, max_bytes = fields[6:15]
    rest, replica_id, replica_epoch, tags = fields[15:]
    if rest != _FOLLOWER_REST or topics != 2 or count != 2 or tags:
        return None
    wanted = _new(PartitionFetch, (topic_id, index, epoch, offset, max_bytes, last_epoch, start, -1))
    request = (replica_id, *fields[:6], [wanted], [], _FOLLOWER_OFFSET_AT, replica_epoch, "")
    return _new(FetchRequest, request)


def _partitions(body: memoryview, at: int, version: int) -> tuple[list[PartitionFetch], int, int]:
    if version >= TOPIC_IDS_FROM and body[at] == 2 and body[at + 17] == 2 and not body[at + 50]:
        # One partition of one topic: what followers name each time, and many consumers.
        topic_id = bytes(body[at + 1 : at + 17])
        index, epoch, offset, last_epoch, start, max_bytes = _PARTITION_12.unpack_from(body, at + 18)
        one = _new(PartitionFetch, (topic_id, index, epoch, offset, max_bytes, last_epoch, start, -1))
        return [one], skip_tags(body, at + 51), at + 26
    flexible = version >= FLEXIBLE_FROM
    to_offset = 8 if version >= 9 else 4  # the leader epoch comes before it
    begin = at
    partitions: list[PartitionFetch] = []
    topics, at = _count(body, at, flexible)
    for _ in range(topics):
        topic, at = _topic(body, at, version)
        count, at = _count(body, at, flexible)
        for _ in range(count):
            epoch = last_epoch = start = ahead = -1
            begin = at
            if flexible:
                index, epoch, offset, last_epoch, start, max_bytes = _PARTITION_12.unpack_from(body, at)
                at += 32
                if body[at]:
                    ahead, at = fetch_tags.ahead(body, at)
                else:
                    at += 1
            elif version >= 9:
                index, epoch, offset, start, max_bytes = _PARTITION_9.unpack_from(body, at)
                at += 28
            elif version >= 5:
                index, offset, start, max_bytes = _PARTITION_5.unpack_from(body, at)
                at += 24
            else:
                index, offset, max_bytes = _PARTITION_4.unpack_from(body, at)
                at += 16
            partitions.append(
                _new(PartitionFetch, (topic, index, epoch, offset, max_bytes, last_epoch, start, ahead))
            )
        if flexible:
            at = skip_tags(body, at)
    return partitions, at, begin + to_offset


def _forgotten(body: memoryview, at: int, version: int) -> tuple[list[tuple[TopicKey, int]], int]:
    flexible = version >= FLEXIBLE_FROM
    forgotten: list[tuple[TopicKey, int]] = []
    topics, at = _count(body, at, flexible)
    for _ in range(topics):
        topic, at = _topic(body, at, version)
        count, at = _count(body, at, flexible)
        for _ in range(count):
            forgotten.append((topic, _INT.unpack_from(body, at)[0]))
            at += 4
        if flexible:
            at = skip_tags(body, at)
    return forgotten, at


def _topic(body: memoryview, at: int, version: int) -> tuple[TopicKey, int]:
    if version >= TOPIC_IDS_FROM:
        return bytes(_take(body, at, 16)), at + 16
    size, at = _length(body, at, version)
    return str(_take(body, at, size), "utf-8"), at + size


def _rack(body: memoryview, at: int, version: int) -> tuple[str, int]:
    """Where the consumer is; clients without a rack send an empty one or null."""
    size, at = _length(body, at, version)
    return (str(_take(body, at, size), "utf-8"), at + size) if size > 0 else ("", at)


def _length(body: memoryview, at: int, version: int) -> tuple[int, int]:
    """A string's length, -1 for null, and where it begins."""
    if version >= FLEXIBLE_FROM:
        size, at = read_uvarint(body, at)
        return size - 1, at
    return _SHORT.unpack_from(body, at)[0], at + 2


def _take(body: memoryview, at: int, size: int) -> memoryview:
    if size < 0 or at + size > len(body):
        raise ProtocolError("a Fetch request has a length beyond its end")
    return body[at : at + size]


def _count(body: memoryview, at: int, flexible: bool) -> tuple[int, int]:
    """An array's count (null counts as empty); each element takes at least four bytes."""
    if flexible:
        count, at = read_uvarint(body, at)
        count = max(count - 1, 0)
    else:
        count = max(_INT.unpack_from(body, at)[0], 0)
        at += 4
    if count * 4 > len(body) - at:
        raise ProtocolError(f"a Fetch request counts {count} elements, more than it has bytes for")
    return count, at


def _by_topic(answers: Iterable[PartitionAnswer]) -> list[tuple[TopicKey, list[PartitionAnswer]]]:
    groups: list[tuple[TopicKey, list[PartitionAnswer]]] = []
    for answer in answers:
        if not groups or groups[-1][0] != answer.topic:
            groups.append((answer.topic, []))
        groups[-1][1].append(answer)
    return groups


def _topic_head(head: bytearray, topic: TopicKey, count: int, flexible: bool) -> None:
    if isinstance(topic, bytes):
        head += topic
    else:
        name = topic.encode()
        head += write_uvarint(len(name) + 1) if flexible else _SHORT.pack(len(name))
        head += name
    head += write_uvarint(count + 1) if flexible else _INT.pack(count)


def _size(records: Records | None) -> int:
    if records is None:
        return 0
    return len(records) if isinstance(records, bytes) else records.length


def _numbers(
    version: int,
    index: int,
    error: int,
    high: int,
    stable: int,
    start: int,
    size: int,
    preferred: int,
    aborted: Sequence[tuple[int, int]] = (),
) -> bytes:
    """What stands before a partition's records, their size included."""
    if aborted:
        numbers = index, error, high, stable, start, size, preferred
        return numbers_with_aborted(version, *numbers, aborted, flexible=version >= FLEXIBLE_FROM)
    if version >= FLEXIBLE_FROM:
        return _ANSWER_12.pack(index, error, high, stable, start, 1, preferred) + write_uvarint(size + 1)
    if version >= 11:
        return _ANSWER_11.pack(index, error, high, stable, start, 0, preferred) + _INT.pack(size)
    if version >= 5:
        return _ANSWER_5.pack(index, error, high, stable, start, 0) + _INT.pack(size)
    return _ANSWER_4.pack(index, error, high, stable, 0) + _INT.pack(size)
