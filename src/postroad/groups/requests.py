"""What the broker asks of a group, in the room's own words: API versions are the handlers' affair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

JOIN_EPOCH: Final = 0  # KIP-848: a member that wants to join
LEAVE_EPOCH: Final = -1  # … that leaves for good
STATIC_LEAVE_EPOCH: Final = -2  # … that will be back under the same instance id


class Client(NamedTuple):
    client_id: str = ""
    host: str = ""


class JoinRequest(NamedTuple):
    group_id: str
    member_id: str  # empty: a newcomer
    instance_id: str | None
    client: Client
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]  # name and metadata, the most wanted first
    member_id_required: bool = True  # JoinGroup v4+: a newcomer is given its id first (KIP-394)
    may_skip_assignment: bool = (
        True  # JoinGroup v9+: a returning static leader needn't assign again (KIP-814)
    )


class SyncRequest(NamedTuple):
    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None  # None: not said (before v5)
    protocol: str | None
    assignments: Mapping[str, bytes]  # by member id; empty but for the leader's


class MemberIdentity(NamedTuple):
    """A member that a LeaveGroup request names by its id; a static one perhaps by its instance id alone."""

    member_id: str
    instance_id: str | None = None
    reason: str | None = None


class OffsetToCommit(NamedTuple):
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class CommitRequest(NamedTuple):
    group_id: str
    member_id: str
    instance_id: str | None
    generation: int  # or the member epoch (KIP-848); -1: outside of both, by who assigns its own partitions
    offsets: tuple[OffsetToCommit, ...]
    retention_ms: int = -1  # OffsetCommit v2–4; -1: the node's setting


class TopicInfo(NamedTuple):
    topic_id: bytes
    partitions: int


class Topics(NamedTuple):
    """All topics that exist. A change of any of them comes with a higher version."""

    version: int
    by_name: Mapping[str, TopicInfo]


class TopicPartition(NamedTuple):
    topic_id: bytes
    partition: int


Partitions = frozenset[TopicPartition]


class HeartbeatRequest(NamedTuple):
    """ConsumerGroupHeartbeat. None and -1 mean: as in the last heartbeat."""

    group_id: str
    member_id: str  # empty: the server chooses (v0)
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_names: tuple[str, ...] | None = None
    subscribed_regex: str | None = None
    assignor: str | None = None
    owned: Partitions | None = None
    client: Client = Client()


class ShareHeartbeat(NamedTuple):
    """ShareGroupHeartbeat (KIP-932). None means: as in the last heartbeat."""

    group_id: str
    member_id: str  # the member chooses it
    epoch: int
    rack_id: str | None = None
    subscribed_names: tuple[str, ...] | None = None
    client: Client = Client()
