"""ShareAcknowledge, by hand: what became of messages, outside of a fetch (API 79, versions 1–2).

Version 2 adds to the request whether locks are renewed, and to the response for how long (KIP-1222).
`wire.share_requests` has the rest of the layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from postroad.wire.leader_hints import CurrentLeader, NodeEndpoint, encode_endpoints, encode_leader
from postroad.wire.primitives import UNREADABLE, bad_bool, malformed, unsupported
from postroad.wire.share_requests import (
    InTransaction,
    PartitionAcknowledgements,
    by_topic,
    read_private_tags,
    read_text,
    read_topics,
    write_count,
    write_text,
)

KEY: Final = 79
MIN_VERSION: Final = 1
MAX_VERSION: Final = 2
FLEXIBLE_FROM: Final = 1
RENEW_FROM: Final = 2

_EPOCH: Final = Struct(">i")
_HEAD: Final = Struct(">ih")  # throttle time, error
_LOCK: Final = Struct(">i")
_PARTITION: Final = Struct(">ih")  # index, error


class ShareAcknowledgeRequest(NamedTuple):
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool
    partitions: list[PartitionAcknowledgements]
    lock_ms: int  # both NOT_GIVEN: as the subscription says
    delay_ms: int
    owner: str  # "": the member itself
    reason: str  # of what is rejected
    late: int  # what counts without a lock; NOT_GIVEN: accepts
    transaction: InTransaction | None  # of which the acknowledgements are a part


class PartitionAnswer(NamedTuple):
    topic: bytes
    index: int  # type: ignore[assignment]  # hides tuple.index
    error: int = 0
    message: str | None = None
    leader: CurrentLeader | None = None  # who leads instead (KIP-951)


def decode(body: memoryview | bytes, version: int) -> ShareAcknowledgeRequest:
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise unsupported("ShareAcknowledge", version, MIN_VERSION, MAX_VERSION)
    try:
        return _decode(bytes(body), version)
    except UNREADABLE as error:
        raise malformed("ShareAcknowledge request", version, error) from None


def encode(
    answers: Sequence[PartitionAnswer],
    version: int,
    lock_ms: int,
    error: int = 0,
    message: str | None = None,
    endpoints: Sequence[NodeEndpoint] = (),
) -> bytes:
    """The response; answers of one topic should stand together. `endpoints` are those of the leaders that
    the answers name."""
    topics = by_topic(answers)
    out = bytearray(_HEAD.pack(0, error))
    out += write_text(message)
    if version >= RENEW_FROM:
        out += _LOCK.pack(lock_ms)
    out += write_count(len(topics))
    for topic, group in topics:
        out += topic + write_count(len(group))
        for _, index, code, text, leader in group:
            out += _PARTITION.pack(index, code) + write_text(text) + encode_leader(leader)
            out.append(0)
        out.append(0)
    out += encode_endpoints(endpoints)
    out.append(0)
    return bytes(out)


def _decode(buffer: bytes, version: int) -> ShareAcknowledgeRequest:
    group_id, position = read_text(buffer, 0, "group_id")
    member_id, position = read_text(buffer, position, "member_id")
    (epoch,) = _EPOCH.unpack_from(buffer, position)
    position += _EPOCH.size
    renew = 0
    if version >= RENEW_FROM:
        renew = buffer[position]
        position += 1
        if renew > 1:
            raise bad_bool("is_renew_ack", renew)
    partitions, position = read_topics(buffer, position)
    tags = read_private_tags(buffer, position, "ShareAcknowledge request")
    return ShareAcknowledgeRequest(
        group_id,
        member_id,
        epoch,
        renew == 1,
        partitions,
        tags.lock_ms,
        tags.delay_ms,
        tags.owner,
        tags.reason,
        tags.late,
        tags.transaction,
    )
