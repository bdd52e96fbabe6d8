"""Every error that Postroad answers with, in one tree.

    PostroadError
    ├── ApiError              has a Kafka code; an API answers with it
    │   ├── RequestRefused    the peer asked for something wrong: repeating it won't help
    │   └── TryAgain          right request, wrong moment: clients retry by themselves
    ├── ProtocolError         bytes that are no Kafka request: the connection is closed
    ├── CoordinationError     the coordination store can't do what was asked of it
    │   ├── StoreUnavailable  it does not answer, or failed: a commit's outcome is unknown
    │   ├── LeaseLost         the lease has ended and its keys are gone
    │   └── HistoryCompacted  a watch asks for revisions that are no longer kept: list again
    └── ConfigurationError    a setting is wrong: says which, where, and what would be right

"The peer is wrong" is an ApiError or a ProtocolError; "we are wrong" is an assert.
`by_code` finds the class for a code that another broker answered; a code is used once.
The texts are for people: they say what happened and what to do.
"""

from __future__ import annotations

from typing import ClassVar

NONE = 0


class PostroadError(Exception):
    """The root: whatever Postroad raises on purpose."""


class ProtocolError(PostroadError):
    """Bytes that can't be read as what they claim to be. The peer is wrong."""


class CoordinationError(PostroadError):
    """The coordination store can't do what was asked; the subclass says what the caller does next."""


class StoreUnavailable(CoordinationError):
    """The store does not answer or has failed. Whether a commit under way happened is unknown: read again."""


class LeaseLost(CoordinationError):
    """The lease has ended and its keys are deleted: grant a new one and register anew."""


class HistoryCompacted(CoordinationError):
    """The revisions after the one asked for are no longer kept: list, then watch from there."""


class ConfigurationError(PostroadError):
    """A setting that can't be used; the text names it and says what would be right."""


_by_code: dict[int, type[ApiError]] = {}


class ApiError(PostroadError):
    """An error with a Kafka code, answered in the field where the API wants it."""

    code: ClassVar[int] = -1
    retriable: ClassVar[bool] = False
    summary: ClassVar[str] = "The server met an error that it has no name for."

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in cls.__dict__:
            return
        if cls.code in _by_code:
            raise AssertionError(f"code {cls.code}: {cls.__name__} and {_by_code[cls.code].__name__}")
        _by_code[cls.code] = cls

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else self.summary


class RequestRefused(ApiError):
    """The request is at fault; the same request will be refused again."""


class TryAgain(ApiError):
    """The moment is at fault; clients refresh their metadata and retry."""

    retriable = True


def by_code(code: int, text: str | None = None) -> ApiError:
    """The exception for a code in an answer (text: the peer's own words, if it sent any)."""
    known = _by_code.get(code)
    if known is None:
        return UnknownServerError(text or f"The server answered error {code}.")
    return known(text) if text else known()


def describe(code: int) -> str:
    """`NAME: what it means`, for tables and messages."""
    known = _by_code.get(code)
    return f"{known.__name__}: {known.summary}" if known else f"error {code}"


# --- what the log and its disk say -------------------------------------------------------------


class StorageFailed(TryAgain):
    code = 56
    summary = "The disk refused; see the node's log. Reads go on; produce again when it has recovered."


class OffsetOutOfRange(RequestRefused):
    code = 1
    summary = "The offset is below the log's start or above its end."


class CorruptMessage(TryAgain):
    code = 2
    summary = "The batch's CRC, size or layout is wrong."


class MessageTooLarge(RequestRefused):
    code = 10
    summary = "The batch is larger than the topic's max.message.bytes."


class RecordListTooLarge(RequestRefused):
    code = 18
    summary = "The batch is larger than a segment may be."


class InvalidTimestamp(RequestRefused):
    code = 32
    summary = "The timestamp is outside the range that the topic accepts."


class UnsupportedForMessageFormat(RequestRefused):
    code = 43
    summary = "Only record batches of format 2 are accepted: use a client from 2017 or later."


class UnsupportedCompressionType(RequestRefused):
    code = 76
    summary = "The batch's compression is not one of none, gzip, snappy, lz4, zstd."


class InvalidRecord(RequestRefused):
    code = 87
    summary = "A record is not valid here (for a compacted topic: it has no key)."


class OffsetNotAvailable(TryAgain):
    code = 78
    summary = "A new leader does not know its high watermark yet."


# --- producers ---------------------------------------------------------------------------------


class OutOfOrderSequence(RequestRefused):
    code = 45
    summary = "A batch before this one is missing: the sequence number skips."


class DuplicateSequence(RequestRefused):
    code = 46
    summary = "The batch was appended before, too long ago to say at which offset."


class InvalidProducerEpoch(RequestRefused):
    code = 47
    summary = "A newer producer with the same id has taken over."


class InvalidTransactionState(RequestRefused):
    code = 48
    summary = "The transaction is not in a state that allows this."


class InvalidProducerIdMapping(RequestRefused):
    code = 49
    summary = "The transactional id belongs to another producer id."


class UnknownProducerId(RequestRefused):
    code = 59
    summary = "Nothing is known of this producer id."


class ProducerFenced(RequestRefused):
    code = 90
    summary = "A newer producer with the same transactional id has taken over."


class TransactionalIdNotFound(RequestRefused):
    code = 105
    summary = "Nothing is known of this transactional id."


class InvalidRequiredAcks(RequestRefused):
    code = 21
    summary = "acks must be 0, 1 or all (-1)."


class NotEnoughReplicas(TryAgain):
    code = 19
    summary = "Fewer replicas are in sync than min.insync.replicas asks for."


class NotEnoughReplicasAfterAppend(TryAgain):
    code = 20
    summary = "The batch was appended, but too few replicas are in sync."


# --- topics and partitions ---------------------------------------------------------------------


class UnknownTopicOrPartition(TryAgain):
    code = 3
    summary = "This topic or partition does not exist."


class UnknownTopicId(TryAgain):
    code = 100
    summary = "No topic has this id."


class InconsistentTopicId(TryAgain):
    code = 103
    summary = "The topic's id differs from the one in the session: it was created anew."


class LeaderNotAvailable(TryAgain):
    code = 5
    summary = "The partition has no leader yet."


class NotLeaderOrFollower(TryAgain):
    code = 6
    summary = "This node does not lead the partition."


class FencedLeaderEpoch(TryAgain):
    code = 74
    summary = "The request's leader epoch is older than the partition's."


class UnknownLeaderEpoch(TryAgain):
    code = 75
    summary = "The request's leader epoch is newer than this node knows."


class InvalidTopic(RequestRefused):
    code = 17
    summary = "A topic's name is 1 to 249 of a-z A-Z 0-9 . _ - and neither '.' nor '..'."


class TopicAlreadyExists(RequestRefused):
    code = 36
    summary = "A topic of this name exists."


class InvalidPartitions(RequestRefused):
    code = 37
    summary = "The number of partitions is not valid."


class InvalidReplicationFactor(RequestRefused):
    code = 38
    summary = "There are not as many nodes as replicas."


class InvalidReplicaAssignment(RequestRefused):
    code = 39
    summary = "The replica assignment is not valid."


class InvalidConfig(RequestRefused):
    code = 40
    summary = "A config's name or value is not valid."


class PolicyViolation(RequestRefused):
    code = 44
    summary = "A policy of this cluster forbids it."


class TopicDeletionDisabled(RequestRefused):
    code = 73
    summary = "Deleting topics is turned off on this node."


# --- groups ------------------------------------------------------------------------------------


class OffsetMetadataTooLarge(RequestRefused):
    code = 12
    summary = "The text committed with an offset is too long."


class CoordinatorLoadInProgress(TryAgain):
    code = 14
    summary = "The coordinator is still reading its state."


class CoordinatorNotAvailable(TryAgain):
    code = 15
    summary = "The coordinator can't answer now."


class NotCoordinator(TryAgain):
    code = 16
    summary = "Another node coordinates this group."


class IllegalGeneration(RequestRefused):
    code = 22
    summary = "The group is in another generation: join again."


class InconsistentGroupProtocol(RequestRefused):
    code = 23
    summary = "The member has no assignor in common with the group."


class InvalidGroupId(RequestRefused):
    code = 24
    summary = "The group id is empty or not valid."


class UnknownMemberId(RequestRefused):
    code = 25
    summary = "The group has no such member: join again."


class InvalidSessionTimeout(RequestRefused):
    code = 26
    summary = "The session timeout is outside the range that this node allows."


class RebalanceInProgress(RequestRefused):
    code = 27
    summary = "The group is rebalancing: join again."


class InvalidCommitOffsetSize(RequestRefused):
    code = 28
    summary = "The committed offset or its metadata is too large."


class NonEmptyGroup(RequestRefused):
    code = 68
    summary = "The group still has members."


class GroupIdNotFound(RequestRefused):
    code = 69
    summary = "There is no such group."


class MemberIdRequired(RequestRefused):
    code = 79
    summary = "Join again with the member id in this answer."


class GroupMaxSizeReached(RequestRefused):
    code = 81
    summary = "The group has as many members as it may have."


class FencedInstanceId(RequestRefused):
    code = 82
    summary = "Another member has joined with the same group.instance.id."


class GroupSubscribedToTopic(RequestRefused):
    code = 86
    summary = "Offsets of a topic that the group is subscribed to can't be deleted."


class UnstableOffsetCommit(TryAgain):
    code = 88
    summary = "Offsets of an open transaction are pending."


class FencedMemberEpoch(RequestRefused):
    code = 110
    summary = "The member's epoch is not the one the coordinator knows: join again."


class UnreleasedInstanceId(RequestRefused):
    code = 111
    summary = "The group.instance.id is still held by another member."


class UnsupportedAssignor(RequestRefused):
    code = 112
    summary = "The server knows the assignors uniform and range."


class StaleMemberEpoch(RequestRefused):
    code = 113
    summary = "The member's epoch is behind: heartbeat, then commit again."


class InvalidRegularExpression(RequestRefused):
    code = 128
    summary = "The subscription's regular expression can't be compiled."


# --- requests, sessions, cluster ---------------------------------------------------------------


class UnknownServerError(ApiError):
    code = -1
    summary = "The server met an error that it did not expect; see its log."


class RequestTimedOut(TryAgain):
    code = 7
    summary = "The request was not done within its timeout."


class BrokerNotAvailable(RequestRefused):
    code = 8
    summary = "The node is not there."


class ReplicaNotAvailable(TryAgain):
    code = 9
    summary = "The replica is not on this node."


class NetworkException(TryAgain):
    code = 13
    summary = "The connection ended before the answer."


class TopicAuthorizationFailed(RequestRefused):
    code = 29
    summary = "Not authorized for this topic."


class GroupAuthorizationFailed(RequestRefused):
    code = 30
    summary = "Not authorized for this group."


class ClusterAuthorizationFailed(RequestRefused):
    code = 31
    summary = "Not authorized for this cluster."


class UnsupportedVersion(RequestRefused):
    code = 35
    summary = "This version of the API is not supported."


class NotController(TryAgain):
    code = 41
    summary = "Another node is the controller."


class InvalidRequest(RequestRefused):
    code = 42
    summary = "The request contradicts itself or the protocol."


class SecurityDisabled(RequestRefused):
    code = 54
    summary = "Security features are turned off."


class TransactionalIdAuthorizationFailed(RequestRefused):
    code = 53
    summary = "Transactional ids are not supported yet: produce without transactional.id (idempotence works)."


class FetchSessionIdNotFound(TryAgain):
    code = 70
    summary = "The fetch session was evicted; the client starts a new one."


class InvalidFetchSessionEpoch(TryAgain):
    code = 71
    summary = "The fetch session's epoch is not the expected one."


class FetchSessionTopicIdError(TryAgain):
    code = 106
    summary = "The session mixes topic names and topic ids."


class ThrottlingQuotaExceeded(TryAgain):
    code = 89
    summary = "The quota is used up; wait for the throttle time."
