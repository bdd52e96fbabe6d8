"""About groups of consumers."""

from __future__ import annotations

from postroad.errors.base import RequestRefused, TryAgain


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
