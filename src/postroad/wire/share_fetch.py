"""ShareFetch, by hand: messages on their way to the members of a subscription (API 78, versions 1–2).

A request becomes plain tuples, the partitions of all topics in one list. A response is a list of parts in
which large records are never copied. Version 2 adds to the request how to acquire and whether locks are
renewed (KIP-1206, KIP-1222); the response is the same. `wire.share_requests` has the rest of the layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from postroad.wire.leader_hints import NO_LEADER, CurrentLeader, NodeEndpoint, encode_endpoints, encode_leader
from postroad.wire.primitives import UNREADABLE, bad_bool, malformed, unsupported
from postroad.wire.share_requests import (
    NO_TAGS,
    PartitionAcknowledgements,
    by_topic,
    read_forgotten,
    read_private_tags,
    read_text,
    read_topics,
    write_count,
    write_text,
)

KEY: Final = 78
MIN_VERSION: Final = 1
MAX_VERSION: Final = 2
FLEXIBLE_FROM: Final = 1
ACQUIRE_MODE_FROM: Final = 2

COPIED_BYTES_MAX: Final = 16 * 1024  # a piece of records up to here is cheaper copied than sent on its own

Part = bytes | memoryview

# epoch, max wait, min bytes, max bytes, max records, batch size, [acquire mode, renew (2)]
_NUMBERS_1: Final = Struct(">iiiiii")
_NUMBERS_2: Final = Struct(">iiiiiibB")
_USUAL_END: Final = b"\1\0"  # nothing forgotten, no tags
_HEAD: Final = Struct(">ih")  # throttle time, error
_HEAD_OF_ONE: Final = Struct(">ihBiB16sBih")  # throttle time … one topic … index and error of one partition
_LOCK: Final = Struct(">i")
_PARTITION: Final = Struct(">ih")  # index, error
_ERROR: Final = Struct(">h")
_ACQUIRED: Final = Struct(">qqhB")
_GOOD: Final = bytes(4) + NO_LEADER  # no messages, no error of the acknowledgement
_TAIL: Final = b"\1\0"  # no endpoints of nodes, no tags


class ShareFetchRequest(NamedTuple):
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    share_acquire_mode: int
    is_renew_ack: bool
    partitions: list[PartitionAcknowledgements]
    forgotten: list[tuple[bytes, int]]
    lock_ms: int  # NOT_GIVEN: as the subscription says
    owner: str  # "": the member itself
    run_max: int  # NOT_GIVEN: one message of a key


class PartitionAnswer(NamedTuple):
    topic: bytes
    index: int  # type: ignore[assignment]  # hides tuple.index
    records: Sequence[Part] = ()
    acquired: Sequence[tuple[int, int, int]] = ()  # first, last, how often they were delivered
    error: int = 0
    message: str | None = None
    acknowledge_error: int = 0
    acknowledge_message: str | None = None
    leader: CurrentLeader | None = None  # who leads instead (KIP-951)


def decode(body: memoryview | bytes, version: int) -> ShareFetchRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported("ShareFetch", version, MIN_VERSION, MAX_VERSION)
    try:
        return _decode(bytes(body), version)
    except UNREADABLE as error:
        raise malformed("ShareFetch request", version, error) from None


def encode(
    answers: Sequence[PartitionAnswer],
    lock_ms: int,
    error: int = 0,
    message: str | None = None,
    endpoints: Sequence[NodeEndpoint] = (),
) -> list[Part]:
    """The response, of any version, as parts in order; answers of one topic should stand together.

    `endpoints` are those of the leaders that the answers name.
    """
    if len(answers) == 1 and not (error or answers[0].error or answers[0].acknowledge_error):
        return _encode_one(answers[0], lock_ms)
    parts: list[Part] = []
    topics = by_topic(answers)
    out = bytearray(_HEAD.pack(0, error))
    out += write_text(message) + _LOCK.pack(lock_ms) + write_count(len(topics))
    for topic, group in topics:
        out += topic + write_count(len(group))
        for answer in group:
            out += _numbers(answer)
            for piece in answer.records:
                if len(piece) > COPIED_BYTES_MAX:
                    parts += (bytes(out), piece)
                    out.clear()
                else:
                    out += piece
            out += write_count(len(answer.acquired))
            for first, last, deliveries in answer.acquired:
                out += _ACQUIRED.pack(first, last, deliveries, 0)
            out.append(0)
        out.append(0)
    out += encode_endpoints(endpoints)
    out.append(0)
    parts.append(bytes(out))
    return parts


def _encode_one(answer: PartitionAnswer, lock_ms: int) -> list[Part]:
    """One partition and no error: what a member gets nearly each time."""
    topic, index, records, acquired, *_ = answer
    size = sum(map(len, records))
    head = _HEAD_OF_ONE.pack(0, 0, 0, lock_ms, 2, topic, 2, index, 0) + _GOOD + write_count(size)
    ranges = [_ACQUIRED.pack(first, last, deliveries, 0) for first, last, deliveries in acquired]
    tail = b"".join((write_count(len(acquired)), *ranges, b"\0\0", _TAIL))
    if size > COPIED_BYTES_MAX:
        return [head, *records, tail]
    return [b"".join((head, *records, tail))]


def _numbers(answer: PartitionAnswer) -> bytes:
    """What stands before a partition's records, their size included."""
    _, index, records, _, error, message, acknowledge_error, acknowledge_message, leader = answer
    size = write_count(sum(map(len, records)))
    if not error and not acknowledge_error:
        return _PARTITION.pack(index, 0) + _GOOD + size
    return b"".join(
        (
            _PARTITION.pack(index, error),
            write_text(message),
            _ERROR.pack(acknowledge_error),
            write_text(acknowledge_message),
            encode_leader(leader),
            size,
        )
    )


def _decode(buffer: bytes, version: int) -> ShareFetchRequest:
    group_id, position = read_text(buffer, 0, "group_id")
    member_id, position = read_text(buffer, position, "member_id")
    mode = renew = 0
    if version >= ACQUIRE_MODE_FROM:
        *numbers, mode, renew = _NUMBERS_2.unpack_from(buffer, position)
        position += _NUMBERS_2.size
        if renew > 1:
            raise bad_bool("is_renew_ack", renew)
    else:
        numbers = list(_NUMBERS_1.unpack_from(buffer, position))
        position += _NUMBERS_1.size
    partitions, position = read_topics(buffer, position)
    forgotten: list[tuple[bytes, int]] = []
    tags = NO_TAGS
    if buffer[position:] != _USUAL_END:
        forgotten, position = read_forgotten(buffer, position)
        tags = read_private_tags(buffer, position, "ShareFetch request")
    named = partitions, forgotten
    ours = tags.lock_ms, tags.owner, tags.run_max
    return _new(ShareFetchRequest, (group_id, member_id, *numbers, mode, renew == 1, *named, *ours))


_new = tuple.__new__  # half the time of the constructor
