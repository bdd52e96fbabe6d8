"""What a group says: records to append, and answers to requests.

An `Outcome` is a decision. Its records are appended in order; when they are committed they are applied, and
only then do the replies go out. If they can't be appended, nothing hard has changed, and every reply in the
outcome is answered with the coordinator's error instead. An outcome without records is answered at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from postroad.errors import ApiError
from postroad.groups.records import Record
from postroad.groups.requests import Partitions


class Joined(NamedTuple):
    member_id: str
    generation: int
    protocol_type: str
    protocol: str
    leader: str
    members: tuple[JoinedMember, ...] = ()  # for the leader only
    skip_assignment: bool = False


class JoinedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    metadata: bytes


class MemberIdGiven(NamedTuple):
    """The newcomer is told MEMBER_ID_REQUIRED, and joins again with this id."""

    member_id: str


class Synced(NamedTuple):
    protocol_type: str
    protocol: str
    assignment: bytes


class Left(NamedTuple):
    """For each identity of the request, in order: None, or why it is not a member that could leave."""

    errors: tuple[ApiError | None, ...]


class Committed(NamedTuple):
    """For each offset of the request, in order: None, or why it was not committed."""

    errors: tuple[ApiError | None, ...]


class OffsetsDeleted(NamedTuple):
    """For each topic-partition of the request, in order: None, or why it is still there."""

    errors: tuple[ApiError | None, ...]


class Deleted(NamedTuple):
    """The group is gone, its offsets too."""


class HeartbeatAnswer(NamedTuple):
    """ConsumerGroupHeartbeat. `assignment` is None when it is as the member knows it."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int
    assignment: Partitions | None = None


class ShareHeartbeatAnswer(NamedTuple):
    """ShareGroupHeartbeat. `assignment` is None when it is as the member knows it."""

    member_id: str
    epoch: int
    heartbeat_ms: int
    assignment: dict[bytes, list[int]] | None  # partitions by topic id, both in order
    topics: tuple[str, ...]  # what the member subscribes to, whether it exists or not


Answer = (
    Joined | MemberIdGiven | Synced | Left | Committed | OffsetsDeleted | Deleted | HeartbeatAnswer | ApiError
)


class Reply(NamedTuple):
    """The answer to the request that the broker passed in with this token; it may have waited since."""

    token: object
    answer: Answer


@dataclass(slots=True)
class Outcome:
    records: list[Record] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    def reply(self, token: object, answer: Answer) -> None:
        self.replies.append(Reply(token, answer))


class ListedGroup(NamedTuple):
    group_id: str
    protocol_type: str
    state: str
    group_type: str  # "classic", "consumer" or "share"


class ClassicMemberDescription(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class ClassicDescription(NamedTuple):
    """DescribeGroups. A group that isn't there is described as Dead."""

    group_id: str
    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[ClassicMemberDescription, ...] = ()


class ConsumerMemberDescription(NamedTuple):
    member_id: str
    instance_id: str | None
    rack_id: str | None
    epoch: int
    client_id: str
    client_host: str
    subscribed_names: tuple[str, ...]
    subscribed_regex: str | None
    assignment: Partitions
    target: Partitions
    is_classic: bool  # it speaks the classic protocol: the group is changing over


class ConsumerDescription(NamedTuple):
    """ConsumerGroupDescribe."""

    group_id: str
    state: str
    epoch: int
    target_epoch: int
    assignor: str
    members: tuple[ConsumerMemberDescription, ...]


class ShareMemberDescription(NamedTuple):
    member_id: str
    rack_id: str | None
    epoch: int
    client_id: str
    client_host: str
    subscribed_names: tuple[str, ...]
    assignment: Partitions


class ShareDescription(NamedTuple):
    """ShareGroupDescribe."""

    group_id: str
    state: str
    epoch: int
    target_epoch: int
    assignor: str
    members: tuple[ShareMemberDescription, ...]
