"""About requests, sessions and the cluster."""

from __future__ import annotations

from postroad.errors.base import RequestRefused, TryAgain


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


class UnsupportedVersion(RequestRefused):
    code = 35
    summary = "This version of the API is not supported."


class NotController(TryAgain):
    code = 41
    summary = "Another node is the controller."


class InvalidRequest(RequestRefused):
    code = 42
    summary = "The request contradicts itself or the protocol."


class OperationNotAttempted(RequestRefused):
    code = 55
    summary = "Nothing was done, because something else in the same request is wrong."


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


class StaleBrokerEpoch(RequestRefused):
    code = 77
    summary = "The node has registered anew since it sent this."


class BrokerIdNotRegistered(RequestRefused):
    code = 102
    summary = "No node is registered under this id."
