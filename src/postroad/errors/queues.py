"""About share groups: locks, share sessions."""

from __future__ import annotations

from postroad.errors.base import RequestRefused, TryAgain


class InvalidRecordState(RequestRefused):
    code = 121
    summary = "The message is not held by this member: its lock has ended, or it was settled before."


class ShareSessionNotFound(TryAgain):
    code = 122
    summary = "The share session is not known here; the client starts a new one."


class InvalidShareSessionEpoch(TryAgain):
    code = 123
    summary = "The share session's epoch is not the expected one; the client starts a new session."


class ShareSessionLimitReached(TryAgain):
    code = 133
    summary = "There are too many share sessions; try again later."
