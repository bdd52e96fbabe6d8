"""About topics and partitions."""

from __future__ import annotations

from postroad.errors.base import RequestRefused, TryAgain


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


class PreferredLeaderNotAvailable(RequestRefused):
    code = 80
    summary = "The preferred leader is not in sync, or its node does not run."


class EligibleLeadersNotAvailable(RequestRefused):
    code = 83
    summary = "No replica that may lead the partition is on a node that runs."


class ElectionNotNeeded(RequestRefused):
    code = 84
    summary = "The partition has the leader that was asked for."


class PolicyViolation(RequestRefused):
    code = 44
    summary = "A policy of this cluster forbids it."


class TopicDeletionDisabled(RequestRefused):
    code = 73
    summary = "Deleting topics is turned off on this node."


class ReassignmentInProgress(RequestRefused):
    code = 60
    summary = "The partition is being moved to other nodes; cancel that first, or wait."


class NoReassignmentInProgress(RequestRefused):
    code = 85
    summary = "The partition is not being moved, so there is nothing to cancel."


class IneligibleReplica(RequestRefused):
    code = 107
    summary = "The replica can't join those in sync: its node is starting, draining or gone."


class NewLeaderElected(RequestRefused):
    code = 108
    summary = "Another node leads the partition since this change."
