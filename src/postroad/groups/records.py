"""The records of `__consumer_offsets`: key and value are JSON, so that any Kafka tool can read them.

    key                                      value
    ["offset", group, topic, partition]      OffsetValue
    ["pending", group, producer id, topic, partition]
                                             PendingValue    an offset that a transaction commits if it does
    ["classic", group]                       ClassicValue    the classic group, whole: generation and members
    ["consumer", group]                      ConsumerValue   KIP-848: epochs of the group
    ["member", group, member id]             MemberValue     KIP-848: what a member subscribes to
    ["target", group, member id]             PartitionsValue KIP-848: what it shall own
    ["current", group, member id]            CurrentValue    KIP-848: what it owns now

A null value is a tombstone: the thing is gone. The topic is compacted, so the last record of each key is
the state; applying each record in turn from the log's start rebuilds it.
Records of one decision are appended as one batch, which is there whole or not at all after a crash. A kind
that is not known is skipped, so that a node can read what a newer one has written. bytes are base64, topic
ids hexadecimal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import msgspec

from postroad.groups.requests import Partitions, TopicPartition

OFFSET: Final = "offset"
PENDING: Final = "pending"
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
MEMBER: Final = "member"
TARGET: Final = "target"
CURRENT: Final = "current"


class Record(NamedTuple):
    key: bytes
    value: bytes | None


class OffsetValue(msgspec.Struct, frozen=True, omit_defaults=True):
    offset: int
    commit_ms: int  # wall clock
    leader_epoch: int = -1
    metadata: str = ""
    expire_ms: int = -1  # wall clock; -1: by the node's retention


class PendingValue(msgspec.Struct, frozen=True, omit_defaults=True):
    offset: int
    commit_ms: int  # wall clock
    producer_epoch: int
    leader_epoch: int = -1
    metadata: str = ""


class ClassicMemberValue(msgspec.Struct, frozen=True, omit_defaults=True):
    member_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes = b""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""


class ClassicValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """One generation. Without members the group is empty since `changed_ms`. Members without a leader have
    come from a KIP-848 group: a rebalance is due."""

    generation: int
    changed_ms: int  # wall clock
    protocol_type: str = ""
    protocol: str = ""
    leader: str = ""
    members: tuple[ClassicMemberValue, ...] = ()


class ConsumerValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """`topics` is a digest of the subscribed topics' ids and partition counts at `epoch`."""

    epoch: int
    target_epoch: int
    changed_ms: int  # wall clock
    topics: str = ""


class ClassicSide(msgspec.Struct, frozen=True):
    """What a member of a KIP-848 group said when it joined by the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class MemberValue(msgspec.Struct, frozen=True, omit_defaults=True):
    rebalance_timeout_ms: int
    subscribed_names: tuple[str, ...] = ()
    subscribed_regex: str | None = None
    assignor: str | None = None
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    classic: ClassicSide | None = None  # None: the member speaks KIP-848


class PartitionsValue(msgspec.Struct, frozen=True):
    partitions: dict[str, list[int]]


class CurrentValue(msgspec.Struct, frozen=True, omit_defaults=True):
    epoch: int
    previous_epoch: int
    state: str
    assigned: dict[str, list[int]] = {}
    revoking: dict[str, list[int]] = {}


Value = (
    OffsetValue | PendingValue | ClassicValue | ConsumerValue | MemberValue | PartitionsValue | CurrentValue
)

_decode_key = msgspec.json.Decoder(list[str | int]).decode
_encode = msgspec.json.Encoder().encode
_decoders: Final[dict[str, Callable[[bytes], Value]]] = {
    OFFSET: msgspec.json.Decoder(OffsetValue).decode,
    PENDING: msgspec.json.Decoder(PendingValue).decode,
    CLASSIC: msgspec.json.Decoder(ClassicValue).decode,
    CONSUMER: msgspec.json.Decoder(ConsumerValue).decode,
    MEMBER: msgspec.json.Decoder(MemberValue).decode,
    TARGET: msgspec.json.Decoder(PartitionsValue).decode,
    CURRENT: msgspec.json.Decoder(CurrentValue).decode,
}


class Decoded(NamedTuple):
    kind: str
    group_id: str
    rest: tuple[str | int, ...]  # the key's further elements
    value: Value | None


def encode(kind: str, group_id: str, *rest: str | int, value: Value | None) -> Record:
    return Record(_encode((kind, group_id, *rest)), None if value is None else _encode(value))


def decode(record: Record) -> Decoded | None:
    """None for a kind that this version does not know. A record that is no JSON of its kind raises."""
    kind, group_id, *rest = _decode_key(record.key)
    decoder = _decoders.get(str(kind))
    if decoder is None:
        return None
    value: Value | None = None if record.value is None else decoder(record.value)
    return Decoded(str(kind), str(group_id), tuple(rest), value)


def pack(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    packed: dict[str, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        packed.setdefault(topic_id.hex(), []).append(partition)
    return packed


def unpack(packed: dict[str, list[int]]) -> Partitions:
    return frozenset(
        TopicPartition(bytes.fromhex(topic_id), partition)
        for topic_id, partitions in packed.items()
        for partition in partitions
    )
