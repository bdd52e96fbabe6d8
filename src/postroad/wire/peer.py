"""Peer (10004), version 0: what nodes of a cluster ask each other about subscriptions, groups and leaders.

Postroad's own API, not listed by ApiVersions, for the same reason as `wire.peek`. The coordinator of a group
asks the leaders of partitions, where the ledgers lie; a leader asks coordinators how far their groups are.

    request  := question (MessagePack, a map with its `type`)
    response := answer (MessagePack, a map)

Unknown fields are passed over, and those that are missing have their defaults. A question of a type that the
node does not know is malformed: it ends the connection.
"""

from __future__ import annotations

from typing import Final

import msgspec

from postroad.wire.own_codec import OwnCodec

KEY: Final = 10_004
NAME: Final = "Peer"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0

NO_EPOCH: Final = -1  # of a node of an earlier version

TopicPartition = tuple[bytes, int]
"""A topic's id and a partition's index."""


class PeerQuestion(msgspec.Struct, tag_field="type", frozen=True):
    """What one node asks another."""


class EnsureLedgers(PeerQuestion, tag="ensure", frozen=True):
    """The group begins at these partitions, if it has not; answered when that is durable."""

    group: str
    partitions: list[TopicPartition]
    revision: int  # of the coordination store: what the asking node has seen is seen here first
    from_first: bool = False  # the partitions came later than the subscription: from their first message


class FindPositions(PeerQuestion, tag="positions", frozen=True):
    """How far the group has come at these partitions."""

    group: str
    partitions: list[TopicPartition]


class ResetLedger(PeerQuestion, tag="reset", frozen=True):
    """The group goes on from this offset."""

    group: str
    partition: TopicPartition
    start: int
    coordinator_epoch: int = NO_EPOCH
    number: int = 0  # of the changes that this coordinator has asked for


class RemoveLedgers(PeerQuestion, tag="remove", frozen=True):
    """The group is as if it had never met these partitions."""

    group: str
    partitions: list[TopicPartition]
    coordinator_epoch: int = NO_EPOCH
    number: int = 0  # of the changes that this coordinator has asked for


class FindHeld(PeerQuestion, tag="held", frozen=True):
    """At which of the partitions that the node leads the group has a ledger."""

    group: str
    topic_id: bytes = b""  # only of this topic
    all_known: bool = False  # an error instead, while one of these ledgers can't be read


class FindGroups(PeerQuestion, tag="groups", frozen=True):
    """Which groups have a ledger at a partition that the node leads."""


class FindCommitted(PeerQuestion, tag="committed", frozen=True):
    """The lowest offset that groups have committed there, or `below` if that is lower.

    Of all groups in these partitions of `__consumer_offsets`, of which the node must be the coordinator."""

    coordinators: list[int]
    topic: str
    index: int
    below: int


class FollowStore(PeerQuestion, tag="follow", frozen=True):
    """Answered when the node has followed the coordination store up to this revision, and hands over nothing
    that it leads; with the revision that it has followed to by then."""

    revision: int


class HandOver(PeerQuestion, tag="hand-over", frozen=True):
    """The preferred leaders of these partitions are to lead them; the node that is asked leads them now."""

    partitions: list[TopicPartition]


class FindLogEnds(PeerQuestion, tag="ends", frozen=True):
    """How far the node's logs of these partitions go, whatever their role."""

    partitions: list[TopicPartition]


class VerifyTransaction(PeerQuestion, tag="verify", frozen=True):
    """Answered without an error if these are part of the producer's open transaction."""

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: list[TopicPartition]
    groups: list[str]


class JoinTransaction(PeerQuestion, tag="join", frozen=True):
    """Answered when these are part of the producer's transaction, which begins with them (KIP-890)."""

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: list[TopicPartition]
    groups: list[str]


class CompleteOffsets(PeerQuestion, tag="complete", frozen=True):
    """A producer's transaction has ended: so its offsets in this group count, or are dropped."""

    group: str
    producer_id: int
    epoch: int
    commit: bool
    coordinator_epoch: int
    strict: bool = False  # the epoch is above that of the offsets (KIP-890)


class EndPledges(PeerQuestion, tag="end-pledges", frozen=True):
    """A producer's transactions below this epoch have ended, the last of them so: what subscriptions have
    accepted in them at these partitions is done, or released."""

    partitions: list[TopicPartition]
    producer_id: int
    epoch: int
    commit: bool


class FindTransactions(PeerQuestion, tag="transactions", frozen=True):
    """Which of these producers have a transaction at a partition or a group, open or being ended.

    Of all in these partitions of `__transaction_state`, of which the node must be the coordinator."""

    coordinators: list[int]
    producer_ids: list[int]
    where: TopicPartition | str


AnyQuestion = (
    EnsureLedgers
    | FindPositions
    | ResetLedger
    | RemoveLedgers
    | FindHeld
    | FindGroups
    | FindCommitted
    | FollowStore
    | HandOver
    | FindLogEnds
    | VerifyTransaction
    | JoinTransaction
    | CompleteOffsets
    | EndPledges
    | FindTransactions
)


class LogEnd(msgspec.Struct, frozen=True):
    """The epoch of a log's last batch, and its end."""

    epoch: int
    offset: int


class PeerPosition(msgspec.Struct, frozen=True):
    """A group's position at a partition; -1: it has not met it."""

    start: int = -1
    leader_epoch: int = 0
    lag: int = -1


class PartitionResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one partition of a question, in the question's order."""

    error_code: int = 0
    error_message: str | None = None
    position: PeerPosition | None = None
    log_end: LogEnd | None = None


class PeerAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer to any question: the fields that it asked for are filled."""

    error_code: int = 0
    error_message: str | None = None
    results: list[PartitionResult] = []
    partitions: list[TopicPartition] = []
    groups: list[str] = []
    offset: int = -1
    revision: int = 0  # of the coordination store
    producer_ids: list[int] = []


_request: Final[msgspec.msgpack.Decoder[AnyQuestion]] = msgspec.msgpack.Decoder(AnyQuestion)
_codec: Final = OwnCodec(NAME, MIN_VERSION, MAX_VERSION, _request, msgspec.msgpack.Decoder(PeerAnswer))

decode_request, encode_request = _codec.decode_request, _codec.encode_request
decode_response, encode_response = _codec.decode_response, _codec.encode_response
