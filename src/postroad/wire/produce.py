"""Produce, by hand: the hot path of a message on its way in (API 0, versions 3–13).

The generated codec makes an object for each topic and partition; here a request is read as plain
tuples and the record batches stay views of the receive buffer. Layouts as in KIP-98 (v3), KIP-467
(v8: record errors), KIP-482 (v9: flexible), KIP-951 (v10: leader hints), KIP-516 (v13: topic ids).
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple

from postroad.errors import ProtocolError
from postroad.wire.framing import CORRELATION_END, read_uvarint, skip_tags, write_uvarint
from postroad.wire.leader_hints import (
    NO_TAGS,
    CurrentLeader,
    NodeEndpoint,
    encode_leader,
    endpoint_tags,
    write_tags,
)

KEY: Final = 0
MIN_VERSION: Final = 3
MAX_VERSION: Final = 13
FLEXIBLE_FROM: Final = 9
LEADER_HINTS_FROM: Final = 10
TOPIC_IDS_FROM: Final = 13

TopicKey = str | bytes
"""A topic's name, or from version 13 on its id (16 bytes)."""

BEYOND_END: Final = "a Produce request has a length beyond its end"

_TAGS: Final = b"\0\0\0"  # none, of the last partition, its topic and the request

_ACKS: Final = Struct(">hii")  # acks, timeout, number of topics
_ACKS_FLEXIBLE: Final = Struct(">hi")
_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")
_PARTITION: Final = Struct(">ii")  # index, bytes of records
_KIND: Final = Struct(">ii")  # API and version as one number, correlation
_ANSWER: Final = Struct(">ihqq")  # index, error, base offset, append time
_ANSWER_START: Final = Struct(">ihqqq")  # … and log start offset


PartitionRecords = tuple[TopicKey, int, memoryview | None]
"""Topic, partition, its records."""


class ProduceRequest(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    partitions: list[PartitionRecords]


class PartitionAnswer:
    """What one partition answers; an error has no offset."""

    __slots__ = (
        "append_time_ms",
        "base_offset",
        "error",
        "index",
        "leader",
        "message",
        "start_offset",
        "topic",
        "wrong_records",
    )

    def __init__(self, topic: TopicKey, index: int) -> None:
        self.topic = topic
        self.index = index
        self.error = 0
        self.base_offset = -1
        self.append_time_ms = -1
        self.start_offset = -1
        self.message: str | None = None
        self.leader: CurrentLeader | None = None  # who is asked instead (v10)
        self.wrong_records: Sequence[int] = ()  # of the batch, if the error is theirs (KIP-467)


Answers = Sequence[PartitionAnswer]


class Repetition:
    """What a producer says again and again: a request for one partition, up to where its records begin.

    Two requests of one producer differ in their correlation id and their records, seldom in more.
    Comparing some seventy bytes with those of the request before is a tenth of the price of reading
    them again. The same goes for the answer: all but three numbers is known.
    """

    __slots__ = (
        "_answer",
        "_answer_bytes",
        "_head",
        "_kind",
        "_prefix",
        "_records_at",
        "_response",
        "_tail",
        "acks",
        "index",
        "timeout_ms",
        "topic",
        "transactional_id",
        "version",
    )

    def __init__(
        self, request: ProduceRequest, frame: memoryview, version: int, response_head: bytes
    ) -> None:
        """`response_head`: what stands between correlation id and body of a response (tags, if any)."""
        self.topic, self.index, records = request.partitions[0]
        self.acks = request.acks
        self.transactional_id = request.transactional_id
        self.timeout_ms = request.timeout_ms
        self.version = version
        size = len(records) if records is not None else 0
        is_flexible = version >= FLEXIBLE_FROM
        tail = len(_TAGS) if is_flexible else 0
        end = len(frame) - tail - size - len(_size_of_records(size, version))
        self._kind, _ = _KIND.unpack_from(frame)
        self._prefix = frame[CORRELATION_END:end].tobytes()
        # Kind, correlation, prefix; then how many bytes of records follow, or the first bytes of that number.
        self._head = Struct(f">ii{len(self._prefix)}s{'3B' if is_flexible else 'i'}")
        self._records_at = end if is_flexible else end + 4
        answer = _encode_one(PartitionAnswer(self.topic, self.index), version)
        at = len(answer) - len(_tail_of(version)) - _ANSWER_START.size
        self._response = response_head + answer[:at]
        self._tail = answer[at + _ANSWER_START.size :]
        self._answer = Struct(f">ii{len(self._response)}sihqqq{len(self._tail)}s")
        self._answer_bytes = self._answer.size - 4

    def read(self, frame: memoryview) -> tuple[int, memoryview] | None:
        """Correlation id and records of a request of the same kind; None if it is of another kind."""
        if len(frame) < self._head.size:
            return None
        if self.version >= FLEXIBLE_FROM:
            return self._read_flexible(frame)
        kind, correlation, prefix, size = self._head.unpack_from(frame)
        at = self._records_at
        if prefix != self._prefix or kind != self._kind or size != len(frame) - at:
            return None
        return correlation, frame[at:]

    def _read_flexible(self, frame: memoryview) -> tuple[int, memoryview] | None:
        kind, correlation, prefix, low, middle, high = self._head.unpack_from(frame)
        if prefix != self._prefix or kind != self._kind:
            return None
        at = self._records_at
        if low < 0x80:
            size, at = low, at + 1
        elif middle < 0x80:
            size, at = low & 0x7F | middle << 7, at + 2
        elif high < 0x80:
            size, at = low & 0x7F | (middle & 0x7F) << 7 | high << 14, at + 3
        else:
            size, at = read_uvarint(frame, at)
        stop = at + size - 1
        if not size or stop + len(_TAGS) != len(frame) or frame[stop:].tobytes() != _TAGS:
            return None
        return correlation, frame[at:stop]

    def response(self, correlation: int, base_offset: int, append_time_ms: int, start_offset: int) -> bytes:
        """The whole frame of the answer to one of them, if all went well."""
        return self._answer.pack(
            self._answer_bytes,
            correlation,
            self._response,
            self.index,
            0,
            base_offset,
            append_time_ms,
            start_offset,
            self._tail,
        )


def can_repeat(request: ProduceRequest, version: int) -> bool:
    """Whether it is of the kind that producers send most; only for requests that are right as a whole."""
    return len(request.partitions) == 1 and version >= 5 and request.acks != 0


def decode(body: memoryview, version: int) -> ProduceRequest:
    try:
        return _decode_flexible(body, version) if version >= FLEXIBLE_FROM else _decode_classic(body)
    except (struct_error, IndexError):
        raise ProtocolError("a Produce request ends before its fields do") from None
    except UnicodeDecodeError:
        raise ProtocolError("a Produce request has a string that is not UTF-8") from None


def encode(
    answers: Answers, version: int, throttle_ms: int = 0, endpoints: Sequence[NodeEndpoint] = ()
) -> bytes:
    """The response; answers of one topic stand together. `endpoints` are those of the leaders they name."""
    if len(answers) == 1 and version >= 5 and not throttle_ms and not endpoints and not answers[0].leader:
        return _encode_one(answers[0], version)
    if version >= FLEXIBLE_FROM:
        return _encode_flexible(answers, version, throttle_ms, endpoints)
    return _encode_classic(answers, version, throttle_ms)


def _decode_classic(body: memoryview) -> ProduceRequest:
    (size,) = _SHORT.unpack_from(body)
    transactional_id = None if size == -1 else str(_take(body, 2, size), "utf-8")
    at = 2 + max(size, 0)
    acks, timeout_ms, topics = _ACKS.unpack_from(body, at)
    at += 10
    end = len(body)
    partitions: list[PartitionRecords] = []
    for _ in range(_bounded(topics, body, at)):
        (size,) = _SHORT.unpack_from(body, at)
        topic = str(_take(body, at + 2, size), "utf-8")
        at += 2 + size
        (count,) = _INT.unpack_from(body, at)
        at += 4
        for _ in range(_bounded(count, body, at)):
            index, size = _PARTITION.unpack_from(body, at)
            at += 8
            if size == -1:
                partitions.append((topic, index, None))
                continue
            if size < 0 or at + size > end:
                raise ProtocolError(BEYOND_END)
            partitions.append((topic, index, body[at : at + size]))
            at += size
    return ProduceRequest(transactional_id, acks, timeout_ms, partitions)


def _decode_flexible(body: memoryview, version: int) -> ProduceRequest:
    size, at = read_uvarint(body, 0)
    transactional_id = None if size == 0 else str(_take(body, at, size - 1), "utf-8")
    at += max(size - 1, 0)
    acks, timeout_ms = _ACKS_FLEXIBLE.unpack_from(body, at)
    topics, at = read_uvarint(body, at + 6)
    partitions: list[PartitionRecords] = []
    topic: TopicKey
    for _ in range(_bounded(topics - 1, body, at)):
        if version >= TOPIC_IDS_FROM:
            topic = bytes(_take(body, at, 16))
            at += 16
        else:
            size, at = read_uvarint(body, at)
            topic = str(_take(body, at, size - 1), "utf-8")
            at += size - 1
        count, at = read_uvarint(body, at)
        for _ in range(_bounded(count - 1, body, at)):
            (index,) = _INT.unpack_from(body, at)
            size, at = read_uvarint(body, at + 4)
            records = None if size == 0 else _take(body, at, size - 1)
            at = skip_tags(body, at + max(size - 1, 0))
            partitions.append((topic, index, records))
        at = skip_tags(body, at)
    return ProduceRequest(transactional_id, acks, timeout_ms, partitions)


def _size_of_records(size: int, version: int) -> bytes:
    return write_uvarint(size + 1) if version >= FLEXIBLE_FROM else _INT.pack(size)


def _tail_of(version: int) -> bytes:
    """What follows the only partition's numbers: no errors of single records, no message, no throttling."""
    if version >= FLEXIBLE_FROM:  # … and no tags, of partition, topic and response
        return b"\1\0\0\0\0\0\0\0\0"
    return b"\0\0\0\0\xff\xff\0\0\0\0" if version >= 8 else b"\0\0\0\0"


def _encode_one(answer: PartitionAnswer, version: int) -> bytes:
    """Nearly every response: one partition, not throttled."""
    topic, message = answer.topic, answer.message
    head = _heads.get((version, topic)) or _remember_head(version, topic)
    answered = _ANSWER_START.pack(
        answer.index, answer.error, answer.base_offset, answer.append_time_ms, answer.start_offset
    )
    if message is None or version < 8:
        return head + answered + _tail_of(version)
    if version >= FLEXIBLE_FROM:
        return head + answered + _record_errors(answer, version) + _compact(message) + b"\0\0\0\0\0\0\0"
    return head + answered + _record_errors(answer, version) + _nullable(message) + b"\0\0\0\0"


def _record_errors(answer: PartitionAnswer, version: int) -> bytes:
    """Each wrong record by its place in the batch, with the partition's message."""
    count = len(answer.wrong_records)
    if version >= FLEXIBLE_FROM:
        text = _compact(answer.message or "") + b"\0"
        return write_uvarint(count + 1) + b"".join(
            _INT.pack(number) + text for number in answer.wrong_records
        )
    text = _nullable(answer.message)
    return _INT.pack(count) + b"".join(_INT.pack(number) + text for number in answer.wrong_records)


_heads: dict[tuple[int, TopicKey], bytes] = {}
_HEADS_MAX: Final = 10_000  # then all are forgotten: they are cheap to make anew


def _remember_head(version: int, topic: TopicKey) -> bytes:
    """One topic with one partition, up to where the partition begins."""
    name = topic.encode() if isinstance(topic, str) else topic
    if version >= TOPIC_IDS_FROM:
        head = b"\2" + name + b"\2"
    elif version >= FLEXIBLE_FROM:
        head = b"\2" + write_uvarint(len(name) + 1) + name + b"\2"
    else:
        head = _INT.pack(1) + _SHORT.pack(len(name)) + name + _INT.pack(1)
    if len(_heads) >= _HEADS_MAX:
        _heads.clear()
    _heads[version, topic] = head
    return head


def _encode_classic(answers: Answers, version: int, throttle_ms: int) -> bytes:
    topics = by_topic(answers)
    parts = [_INT.pack(len(topics))]
    for topic, group in topics:
        name = topic.encode() if isinstance(topic, str) else topic
        parts += (_SHORT.pack(len(name)), name, _INT.pack(len(group)))
        for a in group:
            if version < 5:
                parts.append(_ANSWER.pack(a.index, a.error, a.base_offset, a.append_time_ms))
                continue
            parts.append(
                _ANSWER_START.pack(a.index, a.error, a.base_offset, a.append_time_ms, a.start_offset)
            )
            if version >= 8:
                parts.append(_record_errors(a, version))
                parts.append(_nullable(a.message))
    parts.append(_INT.pack(throttle_ms))
    return b"".join(parts)


def _encode_flexible(
    answers: Answers, version: int, throttle_ms: int, endpoints: Sequence[NodeEndpoint]
) -> bytes:
    topics = by_topic(answers)
    parts = [write_uvarint(len(topics) + 1)]
    for topic, group in topics:
        if isinstance(topic, str):
            name = topic.encode()
            parts.append(write_uvarint(len(name) + 1))
            parts.append(name)
        else:
            parts.append(topic)
        parts.append(write_uvarint(len(group) + 1))
        for a in group:
            parts.append(
                _ANSWER_START.pack(a.index, a.error, a.base_offset, a.append_time_ms, a.start_offset)
            )
            if a.message is None:  # nor errors of single records
                parts.append(b"\1\0")
            else:
                parts.append(_record_errors(a, version) + _compact(a.message))
            leader = a.leader if version >= LEADER_HINTS_FROM else None
            parts.append(NO_TAGS if leader is None else write_tags((0, encode_leader(leader))))
        parts.append(NO_TAGS)
    parts.append(_INT.pack(throttle_ms))
    parts.append(endpoint_tags(endpoints) if version >= LEADER_HINTS_FROM else NO_TAGS)
    return b"".join(parts)


def by_topic(answers: Answers) -> list[tuple[TopicKey, list[PartitionAnswer]]]:
    """Neighbours of one topic gathered."""
    groups: list[tuple[TopicKey, list[PartitionAnswer]]] = []
    for answer in answers:
        if not groups or groups[-1][0] != answer.topic:
            groups.append((answer.topic, []))
        groups[-1][1].append(answer)
    return groups


def _take(body: memoryview, at: int, size: int) -> memoryview:
    if size < 0 or at + size > len(body):
        raise ProtocolError(BEYOND_END)
    return body[at : at + size]


def _bounded(count: int, body: memoryview, at: int) -> int:
    """An array's count; each element takes at least six bytes."""
    if count < 0 or count * 6 > len(body) - at:
        raise ProtocolError(f"a Produce request counts {count} elements, more than it has bytes for")
    return count


def _nullable(text: str | None) -> bytes:
    if text is None:
        return b"\xff\xff"
    data = text.encode()
    return _SHORT.pack(len(data)) + data


def _compact(text: str) -> bytes:
    data = text.encode()
    return write_uvarint(len(data) + 1) + data
